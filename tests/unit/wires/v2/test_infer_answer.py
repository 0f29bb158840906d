import json
import math

import numpy as np
import pytest

from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Readiness, ResponsePart
from trivium.types.payload import Raw, RawPart, Tensor, Tensors
from trivium.types.wire import CostlyAnswer
from trivium.wires.v2.infer_answer import InferEncoder, KnownAnswers

A = np.array([[0.1, 2]], "<f4")
B = np.array([[b"x", b"yy"]], object)
PAYLOAD = Tensors.of({"a": A, "b": B})


def encode(part, id="", forms=None, binary=False, known=None):
    answer = InferEncoder(id, forms or {}, binary, KnownAnswers() if known is None else known).encode(part)
    assert answer.size == sum(map(len, answer.buffers))
    return answer


def answered(payload, **more):
    return ResponsePart(payload, model="m", version="1", **more)


def test_json():
    answer = encode(answered(PAYLOAD), id="r")
    assert (answer.status, answer.fields) == (200, b"Content-Type: application/json\r\n")
    assert b"".join(answer.buffers) == (
        b'{"id":"r","model_name":"m","model_version":"1","outputs":['
        b'{"name":"a","datatype":"FP32","shape":[1,2],"data":[0.10000000149011612,2.0]},'
        b'{"name":"b","datatype":"BYTES","shape":[1,2],"data":["x","yy"]}]}'
    )


def test_binary():
    answer = encode(answered(PAYLOAD), binary=True)
    text, *blobs = answer.buffers
    assert answer.fields == (
        b"Content-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\n" % len(text)
    )
    assert text == (
        b'{"model_name":"m","model_version":"1","outputs":['
        b'{"name":"a","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}},'
        b'{"name":"b","datatype":"BYTES","shape":[1,2],"parameters":{"binary_data_size":11}}]}'
    )
    assert b"".join(blobs) == A.tobytes() + b"\1\0\0\0x\2\0\0\0yy"


def test_a_blob_is_not_copied():
    blob = encode(answered(PAYLOAD), binary=True).buffers[1]
    assert np.shares_memory(np.frombuffer(blob, "u1"), PAYLOAD["a"])


def test_only_what_was_asked_for_in_the_form_it_was_asked_for():
    mixed = encode(answered(PAYLOAD), forms={"b": True, "a": False})
    outputs = json.loads(mixed.buffers[0])["outputs"]
    assert [(output["name"], "data" in output) for output in outputs] == [("a", True), ("b", False)]
    assert len(mixed.buffers) == 2
    one = encode(answered(PAYLOAD), forms={"b": False}, binary=True)
    assert [output["name"] for output in json.loads(one.buffers[0])["outputs"]] == ["b"]
    assert b"octet-stream" not in one.fields


def test_parameters_and_outputs_without_elements():
    part = answered(Tensors.of({"a": np.zeros((1, 0))}), parameters={"k": 1, "s": "x"})
    assert encode(part).buffers == (
        b'{"model_name":"m","model_version":"1","parameters":{"k":1,"s":"x"},'
        b'"outputs":[{"name":"a","datatype":"FP64","shape":[1,0],"data":[]}]}',
    )
    assert b"".join(encode(part, binary=True).buffers[1:]) == b""


def test_nan_is_written_bare():
    text = encode(answered(Tensors.of({"a": np.array([math.nan, math.inf])}))).buffers[0]
    assert b'"data":[NaN,Infinity]' in text


@pytest.mark.parametrize(
    ("part", "status", "words"),
    [
        (ResponsePart(error=ServeError(Code.QUEUE_FULL, "full", 2)), 503, "full"),
        (answered(None), 500, "'m' ended the request without an answer"),
        (answered(PAYLOAD, final=False), 501, "several parts"),
        (answered(Raw((RawPart(b"x"),))), 501, "something that cannot be made tensors"),
        (ResponsePart(answer=Readiness(True)), 501, "something that cannot be made tensors"),
        (answered(Tensors.of({"a": np.zeros(1, "<f2")})), 400, "binary_data set to true"),
        (answered(Tensors.of({"a": np.array([b"\xff"])})), 400, "not UTF-8"),
        (answered(Tensors.of({"\ud800": A})), 500, "could not be written"),
        (
            answered(Tensors((Tensor("a", DataType.BYTES, (1,), np.array([3], object)),))),
            500,
            "could not be written",
        ),
    ],
)
def test_what_cannot_be_written_is_an_error(part, status, words):
    answer = encode(part)
    assert answer.status == status
    assert words in json.loads(answer.buffers[0])["error"]
    assert answer.final


def test_a_known_head_goes_with_the_answers_it_fits():
    known = KnownAnswers()
    seen = []
    for array, id in [
        (A, ""),
        (A + 1, ""),
        (np.zeros((2, 2), "<f4"), ""),
        (A, "r"),
        (B, ""),
        (B[:, :1], ""),
        (A, ""),
    ]:
        part = answered(Tensors.of({"a": array}))
        answer = encode(part, id=id, binary=True, known=known)
        anew = encode(part, id=id, binary=True)
        assert (answer.fields, b"".join(answer.buffers)) == (anew.fields, b"".join(anew.buffers))
        seen.append(answer.buffers[0])
    assert seen[0] is seen[1] is seen[-1]
    assert len(set(seen)) == 5


def test_a_large_answer_in_json_is_written_elsewhere_and_is_what_a_small_one_would_be() -> None:
    array = np.arange(40_000, dtype=np.float32).reshape(2, 20_000)
    items = (
        Tensor("a", DataType.FP32, (2, 20_000), array),
        Tensor("b", DataType.INT32, (2,), np.array([1, 2], np.int32)),
        Tensor("c", DataType.FP32, (0, 3), np.zeros((0, 3), np.float32)),
        Tensor("d", DataType.INT8, (20_000,), np.ones(20_000, np.int8)),
    )
    part = ResponsePart(payload=Tensors(items), model="m", version="1")
    answer = InferEncoder("7", {}, False, KnownAnswers()).encode(part)
    assert type(answer) is CostlyAnswer
    assert answer.status == 0
    written = answer.write()
    document = json.loads(b"".join(written.buffers))
    assert written.size == sum(map(len, written.buffers))
    assert written.status == 200
    assert (document["id"], document["model_name"], document["model_version"]) == ("7", "m", "1")
    assert [output["name"] for output in document["outputs"]] == ["a", "b", "c", "d"]
    assert document["outputs"][0]["data"] == array.ravel().tolist()
    assert [document["outputs"][at]["data"] for at in (1, 2)] == [[1, 2], []]
    assert document["outputs"][3] == {
        "name": "d",
        "datatype": "INT8",
        "shape": [20_000],
        "data": [1] * 20_000,
    }


def test_a_large_answer_that_json_cannot_carry_is_refused_elsewhere() -> None:
    data = b"\xff" * 400_000
    array = np.empty(1, object)
    array[0] = data
    part = ResponsePart(payload=Tensors((Tensor("a", DataType.BYTES, (1,), array),)), model="m", version="1")
    answer = InferEncoder("", {}, False, KnownAnswers()).encode(part)
    assert type(answer) is CostlyAnswer
    assert answer.write().status == 400
