"""What a handler gets in each envelope, and what its clients get; numbers as NumPy has them, with and without it."""

import base64
import json
import sys
from typing import Any

import numpy as np
import pytest
from tests.harness.torchserve_child import TorchServeChildHarness, body, failures, stage

from trivium_worker.dialects.torchserve.arrays import flattened, reshaped
from trivium_worker.wire.values import Part

__all__ = ["stage"]

GIVES = """
SEEN = []
GIVES = [None]
def handle(data, context):
    if data is None:
        return None
    SEEN.append(data)
    return data if GIVES[0] is None else GIVES[0]
"""
BYTES = b"\x00\xff"
B64 = {"b64": base64.b64encode(BYTES).decode()}
KIND = "application/json"


class EnvelopeHarness:
    """One handler in an envelope: what it is given, and what its clients are."""

    def __init__(self, stage: TorchServeChildHarness, envelope: str) -> None:
        manifest = {"model": {"modelName": "mine", "modelVersion": "1.5"}}
        self._stage = stage
        self._adapter = stage.load(GIVES, envelope=envelope, manifest=manifest)

    def run(self, *payloads: Any, gives: Any = None, kind: str = KIND, **about: Any) -> Any:
        """What the handler got, and the outcomes: payloads are parts, or documents of a body."""
        module: Any = sys.modules["handler"]
        module.GIVES[0] = gives
        bodies = [each if isinstance(each, list) else json.dumps(each).encode() for each in payloads]
        outcomes = self._adapter.run([self._stage.item(each, kind, **about) for each in bodies])
        return (module.SEEN[-1] if module.SEEN else None), outcomes


def documents(outcomes: Any) -> list[Any]:
    return [json.loads(body(outcome)) for outcome in outcomes]


def tensor(data: Any, shape: list[int], datatype: str = "INT64", name: str = "x") -> dict[str, Any]:
    return {"name": name, "shape": shape, "datatype": datatype, "data": data}


def test_without_one_rows_are_rows(stage: TorchServeChildHarness) -> None:
    seen, _ = EnvelopeHarness(stage, "").run({"a": 1})
    assert seen == [{"body": {"a": 1}}]


def test_body_gives_the_data_alone_and_an_empty_one_is_none(stage: TorchServeChildHarness) -> None:
    harness = EnvelopeHarness(stage, "body")
    seen, outcomes = harness.run({"a": 1}, "x", 0)
    assert (seen, [body(each) for each in outcomes]) == ([{"a": 1}, "x", 0], [b'{\n  "a": 1\n}', b"x", b"0"])
    seen, _ = harness.run([Part(b"first", "", "data"), Part(b"second", "", "body")], [Part(b"", "", "data")])
    assert seen == [bytearray(b"first"), None]


def test_json_joins_the_instances_and_splits_the_predictions(stage: TorchServeChildHarness) -> None:
    harness = EnvelopeHarness(stage, "json")
    seen, outcomes = harness.run({"instances": [1]}, {"instances": [2, 3]}, gives=["a", "b", "c"])
    assert seen == [1, 2, 3]
    assert [body(each) for each in outcomes] == [b'{"predictions": ["a"]}', b'{"predictions": ["b", "c"]}']
    seen, _ = harness.run({"instances": [B64, {"a": B64, "b": 1, "c": {"b64": "", "d": 1}}]}, gives=[1, 2])
    assert seen == [BYTES, {"a": BYTES, "b": 1, "c": {"b64": "", "d": 1}}]


@pytest.mark.parametrize(
    ("method", "member"),
    [("predict", "predictions"), ("explain", "explanations"), ("describe", "predictions")],
)
def test_kserve_answers_predictions_or_explanations(
    stage: TorchServeChildHarness, method: str, member: str
) -> None:
    harness = EnvelopeHarness(stage, "kserve")
    seen, outcomes = harness.run({"instances": [[1], [2]]}, gives=[3, 4], method=method)
    assert (seen, documents(outcomes)) == ([[1], [2]], [{member: [3, 4]}])
    seen, outcomes = harness.run({"instances": [1]}, kind="")
    assert (seen, documents(outcomes)) == ([1], [{"predictions": [1]}])


def test_kservev2_answers_outputs_under_the_names_of_the_inputs(stage: TorchServeChildHarness) -> None:
    harness = EnvelopeHarness(stage, "kservev2")
    inputs = [tensor([1, 2, 3, 4], [2, 2], name="a"), tensor(["t", "u"], [2], "BYTES", name="b")]
    seen, outcomes = harness.run({"id": "given", "inputs": inputs}, gives=[[[1.5], [2]], "text"])
    assert [each["data"] for each in seen] == [[[1, 2], [3, 4]], "t"]
    assert documents(outcomes) == [
        {
            "id": "given",
            "model_name": "mine",
            "model_version": "1.5",
            "outputs": [
                {"name": "a", "datatype": "FP64", "data": [1.5, 2.0], "shape": [2]},
                {"name": "b", "datatype": "BYTES", "data": ["text"], "shape": [1]},
            ],
        }
    ]
    for named in ({}, {"id": " "}):
        _, outcomes = harness.run({**named, "inputs": inputs[:1]}, gives=[1], request_id="ours")
        assert documents(outcomes)[0]["id"] == "ours"


@pytest.mark.parametrize("data", ["abc", 1, 1.5, True, None, {"a": 1}])
@pytest.mark.parametrize("datatype", ["BYTES", "FP32"])
def test_kservev2_refuses_data_that_is_no_list(
    stage: TorchServeChildHarness, data: Any, datatype: str
) -> None:
    harness = EnvelopeHarness(stage, "kservev2")
    seen, outcomes = harness.run({"inputs": [tensor(data, [1], datatype, name="pixels")]})
    ((code, message, status),) = failures(outcomes)
    assert (seen, code, status) == (None, "model failed", 400)
    assert "The data of the input 'pixels' is " in message
    assert "takes a list of elements" in message


@pytest.mark.parametrize(
    ("envelope", "document", "gives"),
    [
        ("json", {}, None),
        ("json", {"instances": []}, None),
        ("json", 1, None),
        ("json", {"instances": [{"b64": "A"}]}, None),
        ("kserve", 1, None),
        ("kserve", "no JSON", None),
        ("kservev2", {}, None),
        ("kservev2", {"inputs": [tensor([1, 2, 3], [2])]}, None),
        ("kservev2", {"inputs": [tensor([[1], [2, 3]], [3])]}, None),
        ("kservev2", {"inputs": [{"name": "x"}]}, None),
        ("kservev2", {"inputs": [tensor([1], [1])]}, [1, 2]),
        ("kservev2", {"inputs": [tensor([1], [1])]}, [b"bytes"]),
    ],
)
def test_what_does_not_fit_an_envelope_is_the_handlers_failure(
    stage: TorchServeChildHarness, envelope: str, document: Any, gives: Any
) -> None:
    harness = EnvelopeHarness(stage, envelope)
    _, outcomes = harness.run(document, gives=gives)
    ((code, message, status),) = failures(outcomes)
    assert (message.partition(":")[0], status) == ("Prediction failed", 503), (code, message)
    fine = {"instances": [1], "inputs": [tensor([1], [1])]}
    _, outcomes = harness.run(fine, gives=[1])  # and the next one is served
    assert documents(outcomes)


def test_an_empty_result_passes_as_it_is(stage: TorchServeChildHarness) -> None:
    _, outcomes = EnvelopeHarness(stage, "json").run({"instances": [1]}, gives=[])
    ((_, message, status),) = failures(outcomes)
    assert (message.partition(":")[0], status) == ("number of batch response mismatched", 503)


VALUES = [
    1,
    True,
    1.5,
    "a",
    [1, 2],
    [[True, False], [False, True]],
    [1, 2.5, True],
    [True, 2],
    [1, "a", 2.5, True],
    [],
    [[], []],
    [2**63],
    [-(2**63)],
    [2**64],
    [None],
    [{"a": 1}],
    [[1, None]],
    ("a", "b"),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_numbers_are_as_numpy_has_them_without_it(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    found = flattened(value)
    nested = np.array(value)
    flat = reshaped(value, [nested.size])
    again = reshaped(flat, list(nested.shape))
    monkeypatch.delitem(sys.modules, "numpy")
    assert repr(flattened(value)) == repr(found)
    assert repr((flat, again)) == repr((nested.flatten().tolist(), nested.tolist()))


@pytest.mark.parametrize("value", [b"x", [b"x"], [[1], [2, 3]], [1, [2]]])
def test_what_is_no_array(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    with pytest.raises(ValueError):
        flattened(value)
    monkeypatch.delitem(sys.modules, "numpy")
    with pytest.raises(ValueError):
        flattened(value)


@pytest.mark.parametrize(
    ("value", "datatype", "elements"),
    [
        (np.ones((2, 1), np.float32), "FP32", [1.0, 1.0]),
        ([np.int16(1)], "INT16", [1]),
        ([np.float16(0.5), np.float16(1)], "FP16", [0.5, 1.0]),
    ],
)
def test_arrays_of_numpy(value: Any, datatype: str, elements: list[Any]) -> None:
    assert flattened(value) == (datatype, elements)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([4], [1, 2, 3, 4]),
        ([2, 2], [[1, 2], [3, 4]]),
        ([-1, 2], [[1, 2], [3, 4]]),
        ([1, 4, 1], [[[1], [2], [3], [4]]]),
        ([3], None),
        ([-1, 3], None),
        ([-1, -1], None),
        ([-2, -2], None),
        (["4"], None),
        ([4.0], None),
        ([0, -1], None),
        ([], None),
    ],
)
def test_shapes(shape: Any, expected: Any) -> None:
    if expected is None:
        with pytest.raises(ValueError):
            reshaped([1, 2, 3, 4], shape)
    else:
        assert reshaped([[1, 2], [3, 4]], shape) == expected
