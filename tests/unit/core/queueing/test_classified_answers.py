"""Outputs asked for with classification, and generate requests, at the door of one model."""

from dataclasses import replace

import numpy as np
import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.observability.statistics import VersionCounters
from trivium.core.queueing.payload_adapter import PayloadAdapter
from trivium.core.queueing.responses import ResponseDispatcher
from trivium.core.request import Item
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import PayloadKind, Raw, RawForm, RawPart, Tensors
from trivium.types.running import Part
from trivium.types.spec import Batching, TensorSpec

SCORES = TensorSpec("scores", DataType.FP32, (2,), labels=("cat", "dog"))
TEXT = TensorSpec("text", DataType.BYTES, (1,))
ANSWER = Tensors.of({"scores": np.array([[1, 2]], "f4"), "text": np.array([[b"t"]], object)})


def scene(*outputs, payload=None, counters=None):
    parts = []
    spec = replace(make_spec(Batching(True, 8)), outputs=(SCORES, TEXT))
    door = PayloadAdapter(spec, frozenset({PayloadKind.TENSORS}))
    infer = Infer("m", payload or Tensors.of({"x": np.zeros((1, 2), "f4")}), outputs=outputs)
    item = Item(1, infer, parts.append, 0.0, None)
    return door, item, ResponseDispatcher(spec, door, counters or VersionCounters(), lambda: 0.0), parts


def test_one_output_is_ranked_and_the_other_plain():
    _, item, answers, parts = scene(WantedOutput("scores", 1), WantedOutput("text"))
    answers.answer(item, ANSWER)
    (part,) = parts
    assert part.payload["scores"].tolist() == [[b"2.000000:1:dog"]]
    assert part.payload["text"].tolist() == [[b"t"]]


def test_each_part_of_a_stream_is_ranked():
    _, item, answers, parts = scene(WantedOutput("scores", 2))
    assert answers.part(item, Part(1, ANSWER, final=False))
    assert answers.part(item, Part(1, ANSWER))
    for part in parts:
        assert part.payload["scores"].tolist() == [[b"2.000000:1:dog", b"1.000000:0:cat"]]


def test_what_has_no_order_is_refused_at_the_door():
    door, item, *_ = scene(WantedOutput("text", 1))
    with pytest.raises(ServeError, match="no order") as caught:
        door.admit(item)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize("is_final", [True, False])
def test_a_model_that_answers_otherwise_than_it_declares(is_final):
    counters = VersionCounters()
    _, item, answers, parts = scene(WantedOutput("scores", 1), counters=counters)
    wrong = Tensors.of({"scores": np.array([[b"x"]], object)})
    if is_final:
        assert not answers.answer(item, wrong)
    else:
        assert not answers.part(item, Part(1, wrong, final=False))
    (part,) = parts
    assert (part.error.code, part.final) == (Code.MODEL_FAILED, True)
    report = counters.report("m", "1", 0)
    assert (report.success.count, report.fail.count) == (0, 1)


def test_the_inputs_of_a_generate_request_are_no_parameters():
    door, item, *_ = scene(payload=Raw((RawPart(b'{"x": [1, 2], "own": 3}'),), form=RawForm.FIELDS))
    item.operation = Infer("m", item.operation.payload, parameters={"x": 0, "own": 3})
    door.admit(item)
    assert item.operation.payload["x"].tolist() == [[1, 2]]
    assert item.operation.parameters == {"own": 3}
    assert item.rows == 1


def test_bare_data_are_the_only_input():
    door, item, *_ = scene(payload=Raw((RawPart(np.array([1, 2], "<f4").tobytes()),), form=RawForm.TENSOR))
    door.admit(item)
    assert item.operation.payload["x"].tolist() == [[1, 2]]


@pytest.mark.parametrize("form", [RawForm.FIELDS, RawForm.TENSOR])
def test_a_handler_gets_such_bodies_as_they_are(form):
    door = PayloadAdapter(make_spec(), frozenset({PayloadKind.RAW}))
    item = Item(1, Infer("m", Raw((RawPart(b"{}", "a/b"),), form=form)), None, 0.0, None)
    door.admit(item)
    assert item.operation.payload.parts == (RawPart(b"{}", "a/b"),)
