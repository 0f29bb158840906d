"""Batches of items whose shapes differ: how they are put together, what is told of them, how outputs are divided."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs.ragged import RaggedRules, tell
from trivium.codecs.rows import Stacker
from trivium.types.batch_shapes import BatchInput, BatchOutput, BatchShapes, ShapeFact
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensors
from trivium.types.spec import Batching, ModelSpec, TensorSpec

SHAPES = [(1, 3), (2, 2), (1, 0)]


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (ShapeFact.COUNTS, [3, 4, 0]),
        (ShapeFact.SUMS, [3, 7, 7]),
        (ShapeFact.SUMS_FROM_ZERO, [0, 3, 7, 7]),
        (ShapeFact.GREATEST_AS_SHAPE, [0, 0, 0, 0]),
        (ShapeFact.SHAPES, [[3], [2], [2], [0]]),
        (ShapeFact.SHAPES_FLAT, [3, 2, 2, 0]),
    ],
)
@pytest.mark.parametrize("datatype", [DataType.INT32, DataType.FP32])
def test_what_is_told(told, found, datatype):
    array = tell(BatchInput(("n",), told, datatype, "x"), SHAPES)
    assert (array.dtype, array.tolist()) == (datatype.dtype, found)


def test_shapes_of_several_sizes():
    told = BatchInput(("n",), ShapeFact.SHAPES_FLAT, DataType.INT32, "x")
    assert tell(told, [(2, 3, 4), (1, 5, 6)]).tolist() == [3, 4, 3, 4, 5, 6]


def rules(*told, follows=()):
    inputs = (TensorSpec("x", DataType.FP32, (-1,), ragged=True), TensorSpec("w", DataType.FP32, (1,)))
    outputs = tuple(TensorSpec(name, DataType.FP32, (-1,)) for name in ("y", "z"))
    shapes = BatchShapes(tuple(told), follows)
    spec = ModelSpec(
        "m", "1", Path("/"), "e", "f", inputs, outputs, Batching(True, 8, True), batch_shapes=shapes
    )
    return RaggedRules(spec)


def items(*shapes):
    return [
        Tensors.of({"x": np.full(shape, at, np.float32), "w": np.full((shape[0], 1), at, np.float32)})
        for at, shape in enumerate(shapes)
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_inputs_are_put_one_behind_the_other(count):
    told = BatchInput(("n", "also n"), ShapeFact.COUNTS, DataType.INT32, "x")
    found = rules(told).stack(Stacker(), items(*SHAPES)[:count])
    assert {name: array.tolist() for name, array in found.items()} == {
        "x": ([0.0] * 3 + [1.0] * 4)[: 3 if count == 1 else 7],
        "w": [[0.0], [1.0], [1.0], [2.0]][: 1 if count == 1 else 4],
        "n": [3, 4, 0][:count],
        "also n": [3, 4, 0][:count],
    }


def test_outputs_follow_an_input_or_the_rows():
    parts = items(*SHAPES)
    outputs = Tensors.of({"y": np.arange(7, dtype=np.float32), "z": np.arange(4, dtype=np.float32)})
    answers = rules(follows=(BatchOutput(("y",), "x"),)).divide(outputs, parts, [1, 2, 1])
    assert [answer["y"].tolist() for answer in answers] == [[[0, 1, 2]], [[3, 4], [5, 6]], [[]]]
    assert [answer["z"].tolist() for answer in answers] == [[0], [1, 2], [3]]
    assert [[tensor.name for tensor in answer.items] for answer in answers] == [["y", "z"]] * 3
    assert all(tensor.array.shape == tensor.shape for answer in answers for tensor in answer.items)


def test_an_output_of_another_size_is_the_models_fault():
    outputs = Tensors.of({"y": np.zeros(6, np.float32)})
    with pytest.raises(
        ServeError, match="'y' with 6 elements for a batch whose input 'x' asks for 7"
    ) as error:
        rules(follows=(BatchOutput(("y",), "x"),)).divide(outputs, items(*SHAPES), [1, 2, 1])
    assert error.value.code is Code.MODEL_FAILED


def test_a_plain_model_has_no_part_in_this():
    spec = ModelSpec("m", "1", Path("/"), "e", "f", (TensorSpec("x", DataType.FP32, (-1,)),))
    assert RaggedRules(spec).are_none
    assert not rules().are_none


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5)), min_size=1, max_size=6))
def test_what_went_in_comes_out(shapes):
    """A model that answers what it is sent."""
    follow = rules(follows=(BatchOutput(("y",), "x"),))
    parts = items(*shapes)
    stacked = follow.stack(Stacker(), parts)
    answers = follow.divide(Tensors.of({"y": stacked["x"]}), parts, [rows for rows, _ in shapes])
    for part, answer in zip(parts, answers, strict=True):
        np.testing.assert_array_equal(part["x"], answer["y"])
