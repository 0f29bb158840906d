"""Tensors with one shape for clients and another for the engine: on their way in and out, and at the door."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.core.models.warmup import batches
from trivium.core.queueing.payload_adapter import ONLY_TENSORS, PayloadAdapter
from trivium.core.queueing.reshaping import Reshapes, moved
from trivium.core.request import Item
from trivium.types.datatype import DataType
from trivium.types.errors import ServeError
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import Tensors
from trivium.types.spec import Batching, ModelSpec, TensorSpec
from trivium.types.warmups import SyntheticFill, Warmup, WarmupInput

FP32 = DataType.FP32


def spec_of(outer, inner, rows=0, **fields):
    tensors = [TensorSpec(name, FP32, outer, inner=inner) for name in ("IN", "OUT")]
    batching = Batching(True, rows) if rows else Batching()
    return ModelSpec("m", "1", Path("/m"), "e", "f", (tensors[0],), (tensors[1],), batching, **fields)


def through(spec, shape, answered=None, datatype=np.float32):
    """The shape that the engine sees of an input, and that of an output that a client sees."""
    parts = []
    item = Item(1, Infer("m", Tensors.of({"IN": np.zeros(shape, np.float32)})), parts.append, 0.0, None)
    PayloadAdapter(spec, ONLY_TENSORS).admit(item)
    seen = item.operation.payload.items[0]
    assert seen.array.shape == seen.shape
    item.sink(ResponsePart(Tensors.of({"OUT": np.zeros(answered or seen.shape, datatype)})))
    out = parts[0].payload.items[0]
    assert out.array.shape == out.shape
    return seen.shape, out.shape


@pytest.mark.parametrize(
    ("outer", "inner", "rows", "shape", "seen"),
    [
        ((4,), (2, 2), 4, (3, 4), (3, 2, 2)),
        ((4,), (2, 2), 0, (4,), (2, 2)),
        ((1,), (), 4, (2, 1), (2,)),
        ((1, -1, 4), (-1, 2, 2), 0, (1, 3, 4), (3, 2, 2)),
        ((-1, 2, -1), (-1, 1, 2, -1), 4, (2, 5, 2, 7), (2, 5, 1, 2, 7)),
        ((2,), None, 4, (2, 2), (2, 2)),
    ],
)
def test_shapes_in_and_out(outer, inner, rows, shape, seen):
    assert through(spec_of(outer, inner, rows), shape) == (seen, shape)


def test_what_is_not_as_declared_is_left_as_it_is():
    spec = spec_of((4,), (2, 2), 4)
    assert through(spec, (1, 4), (1, 3))[1] == (1, 3)
    assert through(spec, (1, 4), (4,))[1] == (4,)
    assert through(spec, (1, 4), (1, 2, 2), np.int64)[1] == (1, 2, 2), "classes are no numbers of the model's"


def test_the_clients_shape_is_the_one_that_is_judged():
    with pytest.raises(ServeError, match=r"got shape \[1,2,2\] for input 'IN'; it takes \[-1,4\]"):
        through(spec_of((4,), (2, 2), 4), (1, 2, 2))


def test_what_has_no_payload_passes():
    parts = []
    sink = Reshapes(spec_of((4,), (2, 2))).around(parts.append)
    error = ResponsePart(error=ServeError("invalid", "no"))
    sink(error)
    assert parts == [error]


def test_a_model_with_one_shape_for_all_has_no_part_in_this():
    assert Reshapes(spec_of((4,), None)).are_none
    assert not Reshapes(spec_of((4,), (4,))).are_none


def test_warm_up_runs_with_the_engines_shape():
    warmup = Warmup("w", 2, 1, (WarmupInput("IN", FP32, (4,), SyntheticFill.ZERO, None),))
    (batch,) = batches(spec_of((4,), (2, 2), 4, warmups=(warmup,)))
    assert batch.operations[0].payload.items[0].shape == (2, 2, 2)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 4)), max_size=4))
def test_there_and_back_again(parts):
    """Sizes that vary, each before a pair of fixed ones that the other side has as one."""
    shape = tuple(size for varying, a, b in parts for size in (varying, a, b))
    source = tuple(size for _, a, b in parts for size in (-1, a, b))
    target = tuple(size for _, a, b in parts for size in (a * b, -1))
    there = moved(shape, source, target)
    assert np.prod(there) == np.prod(shape)
    assert moved(there, target, source) == shape
