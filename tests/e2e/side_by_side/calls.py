"""Calls of one model by another (BLS, section 8.6 of the sheet): each is told to the model `caller`, which makes it.

The rows say what to call; what `caller` found is its answer: outputs, an error's text and code, or what was raised.
"""

import json
from collections.abc import Mapping
from typing import Any

from tests.e2e.side_by_side.http_requests import infer, tensor

CALLER = """
import json

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        told = json.loads(pb.get_input_tensor_by_name(request, "CALL").as_numpy().ravel()[0])
        try:
            found = self.call(told, told.pop("decoupled", False))
        except Exception as error:
            found = {"raised": type(error).__name__, "text": str(error)}
        text = json.dumps(found, sort_keys=True).encode()
        return pb.InferenceResponse([pb.Tensor("FOUND", np.array([text], object))])

    def call(self, told, decoupled):
        told["inputs"] = [
            pb.Tensor(name, np.array(value, object if kind == "object" else kind))
            for name, kind, value in told["inputs"]
        ]
        response = pb.InferenceRequest(**told).exec(decoupled=decoupled)
        return [self.read(each) for each in response] if decoupled else self.read(response)

    def read(self, response):
        if response.has_error():
            return {"code": int(response.error().code()), "text": response.error().message()}
        return {each.name(): self.plain(each.as_numpy()) for each in response.output_tensors()}

    def plain(self, array):
        values = [each.decode() for each in array.ravel()] if array.dtype.kind == "O" else array.ravel().tolist()
        return [str(array.dtype), list(array.shape), values]
"""

CONFIG = """input [ { name: "CALL" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "FOUND" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""

_ROW = list(range(16))


def _call(
    model: str, *inputs: tuple[str, str, Any], outputs: tuple[str, ...] = ("OUTPUT0",), **more: Any
) -> bytes:
    """Inputs are names, words of numpy for datatypes, and values."""
    told = {"model_name": model, "inputs": inputs, "requested_output_names": outputs} | more
    return infer("caller", {"inputs": [tensor("CALL", "BYTES", [1], data=[json.dumps(told)])]})


def _simple(**more: Any) -> bytes:
    return _call("simple", ("INPUT0", "int32", [_ROW]), ("INPUT1", "int32", [_ROW]), **more)


def _way(word: str) -> bytes:
    return _call("failing", ("WAY", "object", [word]), outputs=("NOTHING",))


def _repeat(times: int, **more: Any) -> bytes:
    return _call("repeat", ("TIMES", "int32", [times]), outputs=("INDEX",), **more)


def _count(**more: Any) -> bytes:
    return _call("counter", ("VALUE", "int32", [[5]]), outputs=("SUM",), **more)


CALLS: Mapping[str, bytes] = {
    "all outputs": _simple(outputs=("OUTPUT0", "OUTPUT1")),
    "one output": _simple(outputs=("OUTPUT1",)),
    "no outputs": _simple(outputs=()),
    "an unknown output": _simple(outputs=("OUTPUT0", "OUTPUT7")),
    "an output twice": _simple(outputs=("OUTPUT0", "OUTPUT0")),
    "texts": _call("ident_string", ("INPUT0", "object", [["a", "äöü", ""]])),
    "bytes": _call("ident_int8", ("INPUT0", "int8", [1, -2, 3])),
    "a batch": _call("ident_fp32", ("INPUT0", "float32", [[1, 2, 3], [4, 5, 6]])),
    "an unknown model": _call("nobody"),
    "an unknown version": _simple(model_version=7),
    "a version": _call("spare", ("INPUT0", "int32", [1, 2]), model_version=1),
    "the newest version": _call("spare", ("INPUT0", "int32", [1, 2]), model_version=-1),
    "no inputs": _call("simple"),
    "an input that lacks": _call("simple", ("INPUT0", "int32", [_ROW])),
    "an unknown input": _call("simple", ("INPUT0", "int32", [_ROW]), ("INPUT7", "int32", [_ROW])),
    "an input twice": _call("simple", ("INPUT0", "int32", [_ROW]), ("INPUT0", "int32", [_ROW])),
    "an input too many": _call(
        "ident_fp32", ("INPUT0", "float32", [[1, 2, 3]]), ("INPUT1", "float32", [[1, 2, 3]])
    ),
    "another datatype": _call("ident_fp32", ("INPUT0", "int32", [[1, 2, 3]])),
    "another shape": _call("ident_fp32", ("INPUT0", "float32", [[1, 2]])),
    "another shape, no batch": _call("ident_nobatch", ("INPUT0", "float32", [1, 2])),
    "too many rows": _call("ident_fp32", ("INPUT0", "float32", [[1, 2, 3]] * 5)),
    "unequal rows": _call("simple", ("INPUT0", "int32", [_ROW]), ("INPUT1", "int32", [_ROW] * 2)),
    "a model that raises": _way("raises"),
    "a model that raises deep": _way("raises_deep"),
    "a model that returns none of one": _way("returns_none_of_one"),
    "a model that returns a number": _way("returns_a_number"),
    "a model that finds nothing": _way("not_found"),
    "a model that will not": _way("invalid"),
    "a model that cannot now": _way("unavailable"),
    "a model that fails plainly": _way("plain"),
    "a model without an answer": _way("answers_nothing"),
    "a decoupled one": _repeat(3, decoupled=True),
    "a decoupled one that says nothing": _repeat(0, decoupled=True),
    "a decoupled one, asked for one answer": _repeat(1),
    "a plain one, asked for several answers": _simple(decoupled=True),
    "an unknown one, asked for several answers": _call("nobody", decoupled=True),
    "one that raises, asked for several answers": _call(
        "failing", ("WAY", "object", ["raises"]), outputs=("NOTHING",), decoupled=True
    ),
    "a sequence": _count(correlation_id=7, flags=1),
    "a sequence goes on": _count(correlation_id=7, flags=0),
    "a sequence ends": _count(correlation_id=7, flags=2),
    "a sequence without its start": _count(correlation_id=9, flags=0),
    "a sequence without its number": _count(flags=1),
    "a sequence by a text": _count(correlation_id="seven", flags=3),
    "parameters": _call(
        "prompt",
        ("PROMPT", "object", [["x"]]),
        outputs=("TEXT", "TOLD"),
        parameters={"b": 1, "a": "w", "c": True},
    ),
    "a parameter that is none": _call(
        "prompt", ("PROMPT", "object", [["x"]]), outputs=("TEXT",), parameters={"b": [1]}
    ),
    "an optional input": _call(
        "prompt", ("PROMPT", "object", [["x"]]), ("SUFFIX", "object", [["!"]]), outputs=("TEXT",)
    ),
    "a request id": _simple(request_id="r1", timeout=5_000_000),
}
"""What is called -> the request to `caller` for it, which is answered in every case."""
