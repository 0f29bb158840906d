"""Hypothesis strategies for tensors of every datatype, and how two tensors compare."""

import math

import numpy as np
from hypothesis import strategies as st

from trivium.types.datatype import DataType
from trivium.types.payload import Tensor

any_bytes = st.binary(max_size=6)
shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@st.composite
def tensors(draw, datatypes, elements=any_bytes, shape=shapes):
    """Tensors of any bits, NaN included; `elements` are those of BYTES, any bytes unless given."""
    datatype, dims = draw(datatypes), draw(shape)
    count = math.prod(dims)
    if datatype is DataType.BYTES:
        array = np.empty(count, object)
        array[:] = draw(st.lists(elements, min_size=count, max_size=count))
    else:
        size = count * datatype.itemsize
        raw = draw(st.binary(min_size=size, max_size=size))
        if datatype is DataType.BOOL:
            raw = bytes(byte & 1 for byte in raw)
        array = np.frombuffer(raw, datatype.dtype)
    return Tensor("t", datatype, dims, array.reshape(dims))


def same(left: Tensor, right: Tensor) -> bool:
    """Equal in every field; floats by value, any NaN like any other."""
    return (
        (left.name, left.datatype, left.shape) == (right.name, right.datatype, right.shape)
        and left.array.shape == right.array.shape == left.shape
        and left.array.dtype == right.array.dtype == left.datatype.dtype
        and np.array_equal(left.array, right.array, equal_nan=left.array.dtype.kind == "f")
    )
