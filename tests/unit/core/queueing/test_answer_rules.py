"""What user code answers is held against what is declared."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.queueing.answer_rules import AnswerRules, answer_rules
from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.payload import Tensors
from trivium.types.spec import Batching, Handler, TensorSpec

OUTPUTS = (TensorSpec("y", DataType.FP32, (2,)), TensorSpec("n", DataType.INT64, (1,)))
SPEC = replace(
    make_spec(outputs=OUTPUTS), name="m", handler=Handler(), batching=Batching(batch_axis=True, max_rows=4)
)
TWO_ROWS = np.zeros((2, 2), np.float32)


def answered(**arrays):
    return Tensors.of(arrays)


@pytest.mark.parametrize(
    "answer",
    [
        answered(y=TWO_ROWS, n=np.zeros((2, 1), np.int64)),
        answered(y=TWO_ROWS),
        answered(y=np.zeros((2, 7, 7), np.float32)),
        answered(unknown=np.zeros(5)),
        answered(),
    ],
)
def test_what_is_as_declared_passes(answer):
    assert AnswerRules(SPEC, binding=True).fault(answer, 2) is None


@pytest.mark.parametrize(
    ("answer", "rows", "output", "found", "expected"),
    [
        (answered(y=TWO_ROWS.astype(np.float64)), 2, "y", "FP64", "FP32"),
        (answered(y=TWO_ROWS, n=np.zeros((2, 1), np.int32)), 2, "n", "INT32", "INT64"),
        (answered(y=np.array([["a", "b"]])), 1, "y", "BYTES", "FP32"),
        (answered(y=TWO_ROWS.astype(np.float64)), None, "y", "FP64", "FP32"),
        (answered(y=TWO_ROWS), 3, "y", (2, 2), 3),
        (answered(y=np.float32(1)), 1, "y", (), 1),
    ],
)
def test_what_differs_is_named(answer, rows, output, found, expected):
    fault = AnswerRules(SPEC, binding=True).fault(answer, rows)
    assert fault.info.reason is reasons.UNLIKE_ANSWER
    assert fault.info.metadata == {"model": "m", "output": output, "found": found, "expected": expected}
    shown = str(list(found)) if isinstance(found, tuple) else found
    assert f"'{output}'" in fault.message
    assert shown in fault.message
    assert str(expected) in fault.message


def test_a_part_may_have_any_number_of_rows_and_a_model_without_a_batch_any_shape():
    assert AnswerRules(SPEC, binding=True).fault(answered(y=TWO_ROWS), None) is None
    assert (
        AnswerRules(replace(SPEC, batching=Batching()), binding=True).fault(answered(y=TWO_ROWS), 1) is None
    )


def test_where_it_does_not_bind_it_is_logged_once_for_each_output(caplog):
    rules = AnswerRules(SPEC, binding=False)
    wrong = answered(y=np.zeros((1, 2)), n=np.zeros((1, 1)))
    with caplog.at_level(logging.WARNING):
        assert [rules.fault(wrong, 1) for _ in range(3)] == [None] * 3
    assert ["'y'" in text or "'n'" in text for text in caplog.messages] == [True, True]


def test_only_the_answers_of_user_code_are_looked_at():
    assert answer_rules(replace(SPEC, handler=None), binding=True) is None
    assert answer_rules(replace(SPEC, outputs=()), binding=True) is None
    assert answer_rules(SPEC, binding=True) is not None
