"""What admission tells beside its sentences: the facts that another server's words are made of."""

from pathlib import Path

import numpy as np
import pytest

from trivium.core.queueing.input_rules import InputRules
from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.errors import ServeError
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import Tensor, Tensors
from trivium.types.spec import Batching, Join, ModelSpec, TensorSpec

A, B = (TensorSpec(name, DataType.INT32, (2,)) for name in ("A", "B"))
MAYBE = TensorSpec("M", DataType.INT32, (2,), optional=True)
ROWS = Batching(batch_axis=True, max_rows=4)
ALONE = Batching()


def given(name, *shape, datatype=DataType.INT32):
    return Tensor(name, datatype, shape, np.zeros(shape, datatype.dtype))


def told(inputs, *tensors, outputs=(), batching=ROWS):
    spec = ModelSpec("m", "1", Path("m"), "identity", "", inputs, outputs=(A,), batching=batching)
    infer = Infer("m", Tensors(tensors), outputs=tuple(map(WantedOutput, outputs)))
    with pytest.raises(ServeError) as refusal:
        InputRules(spec).admit(infer, infer.payload)
    fault = refusal.value.info
    assert fault is not None
    return fault.reason, dict(fault.metadata)


ROW_A, ROW_B = given("A", 1, 2), given("B", 1, 2)
COUNTED = {"model": "m", "least": 2, "most": 2}


@pytest.mark.parametrize(
    ("found", "kind", "facts"),
    [
        (told((A,), given("C", 1, 2)), reasons.UNKNOWN_INPUT, {"model": "m", "input": "C"}),
        (told((A, B), ROW_A), reasons.INPUT_COUNT, COUNTED | {"got": ["A"], "missing": ["B"]}),
        (told((A, B)), reasons.INPUT_COUNT, COUNTED | {"got": [], "missing": ["A", "B"]}),
        (
            told((A, B), ROW_A, ROW_B, given("C", 1, 2)),
            reasons.INPUT_COUNT,
            COUNTED | {"got": ["A", "B", "C"], "missing": []},
        ),
        (told((A, B), ROW_A, given("C", 1, 2)), reasons.UNKNOWN_INPUT, {"model": "m", "input": "C"}),
        (told((A, B), ROW_A, ROW_A), reasons.INPUT_TWICE, {"input": "A"}),
        (
            told((A, MAYBE), given("M", 1, 2)),
            reasons.INPUT_COUNT,
            {"model": "m", "least": 1, "most": 2, "got": ["M"], "missing": ["A"]},
        ),
        (told((A,), ROW_A, outputs=["O"]), reasons.UNKNOWN_OUTPUT, {"model": "m", "output": "O"}),
        (
            told((A,), given("A", 1, 2, datatype=DataType.FP32)),
            reasons.DATATYPE,
            {"model": "m", "input": "A", "found": "FP32", "expected": "INT32"},
        ),
        (
            told((A,), given("A", 1, 3)),
            reasons.SHAPE,
            {"model": "m", "input": "A", "found": (1, 3), "expected": (-1, 2), "has_rows": True},
        ),
        (
            told((A,), given("A", 3), batching=ALONE),
            reasons.SHAPE,
            {"model": "m", "input": "A", "found": (3,), "expected": (2,), "has_rows": False},
        ),
        (told((A,), given("A")), reasons.NO_SHAPE, {"model": "m", "input": "A"}),
        (told((A,), given("A", 5, 2)), reasons.TOO_MANY_ROWS, {"model": "m", "most": 4}),
        (
            told((TensorSpec("T", DataType.BYTES, (3, -1)),), given("T", 0, 3, 1, datatype=DataType.BYTES)),
            reasons.FEW_STRINGS,
            {"input": "T", "expected": 3, "found": 0},
        ),
        (told((A,), given("A", 0, 2)), reasons.BYTE_SIZE, {"input": "A", "expected": 8, "found": 0}),
        (told((A, B), ROW_A, given("B", 2, 2)), reasons.ROWS_APART, {"model": "m", "input": "A"}),
    ],
)
def test_facts(found, kind, facts):
    assert found == (kind, facts)


OPEN = tuple(TensorSpec(name, DataType.FP32, (-1,), optional=name == "C", open=True) for name in "ABC")
MANY = TensorSpec("all", DataType.FP32, (-1,), open=True, many=True)


def rules(inputs, batching=ALONE):
    return InputRules(ModelSpec("m", "1", Path("m"), "torch", "", inputs, batching=batching))


@pytest.mark.parametrize("shape", [(), (1,), (2, 3, 4), (0,)])
@pytest.mark.parametrize("datatype", [DataType.INT64, DataType.FP16, DataType.BOOL])
def test_open_inputs_take_any_numbers(shape, datatype):
    one = given("A", *shape, datatype=datatype)
    infer = Infer("m", Tensors((one, given("B"))), outputs=(WantedOutput("whatever"),))
    assert rules(OPEN).admit(infer, infer.payload) == 1
    infer = Infer("m", Tensors((one, given("any"))))
    assert rules((MANY,)).admit(infer, infer.payload) == 1


def test_names_of_open_inputs_count_and_text_is_refused():
    assert told(OPEN, given("A"), batching=ALONE)[0] is reasons.INPUT_COUNT
    assert told(OPEN, given("A"), given("X"), batching=ALONE)[0] is reasons.UNKNOWN_INPUT
    text = Tensor("A", DataType.BYTES, (1,), np.array([b"a"], object))
    assert told(OPEN, text, given("B"), batching=ALONE)[0] is reasons.DATATYPE
    assert told((MANY,), text, batching=ALONE)[0] is reasons.DATATYPE
    assert told(OPEN[:1], given("A"))[0] is reasons.NO_SHAPE
    assert told((MANY,), given("A"), given("A"), batching=ALONE)[0] is reasons.INPUT_TWICE


@pytest.mark.parametrize(
    ("join", "other", "fits"),
    [
        (Join.ROWS, (3, 2), True),
        (Join.ROWS, (1, 3), False),
        (Join.STACK, (1, 2), True),
        (Join.STACK, (3, 2), False),
        (Join.PAD, (3, 5), True),
        (Join.PAD, (2,), False),
    ],
)
def test_open_inputs_share_a_batch_where_they_can_be_joined(join, other, fits):
    one = rules(OPEN[:1], Batching(batch_axis=join is Join.ROWS, max_rows=4, merge=True, join=join))
    assert one.needs_key
    keys = [one.shape_key(Infer("m", Tensors((given("A", *shape),)))) for shape in ((1, 2), other)]
    assert (keys[0] == keys[1]) is fits
    float_key = one.shape_key(Infer("m", Tensors((given("A", 1, 2, datatype=DataType.FP32),))))
    assert float_key != keys[0]
