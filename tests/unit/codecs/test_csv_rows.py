"""Rows of numbers as comma-separated values, there and back, and what is none."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from trivium.codecs import csv_rows
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"1,2\n3,4", [[1, 2], [3, 4]]),
        (b" 1 , -2.5e1\r\n\r\n3,4\n", [[1, -25], [3, 4]]),
        (b"7", [[7]]),
        (b"nan,inf", [[np.nan, np.inf]]),
    ],
)
def test_lines_are_rows(data, rows):
    (tensor,) = csv_rows.decode(data)
    assert (tensor.name, tensor.datatype, tensor.shape) == ("", DataType.FP32, np.shape(rows))
    np.testing.assert_array_equal(tensor.array, np.array(rows, "<f4"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no numbers"),
        (b"\n\n", "no numbers"),
        (b"1,2\n3", "2 and 1 numbers"),
        (b"1,two", "line 1 is '1,two'"),
        (b"1\n\n2,", "line 3"),
        (b"a,b\n1,2", "line 1"),
        (b"\xff", "line 1"),
        (b"1," * csv_rows.MOST_COLUMNS + b"1", "more than 65536 numbers"),
        (b"1" * (csv_rows.LONGEST_LINE + 1), "more than 2097152 bytes"),
    ],
)
def test_what_is_none(data, words):
    with pytest.raises(ServeError, match=words) as caught:
        csv_rows.decode(data)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_slices_end_anywhere(size):
    (tensor,) = csv_rows.decode(b"1.25,2\r\n\n30,-4\n5,6", size)
    assert tensor.array.tolist() == [[1.25, 2], [30, -4], [5, 6]]
    with pytest.raises(ServeError, match="line 3 is '5,x'"):
        csv_rows.decode(b"1,2\n3,4\n5,x\n7,8", size)
    with pytest.raises(ServeError, match="lines have 2 and 3 numbers"):
        csv_rows.decode(b"1,2\n3,4,5\n6", size)


def test_what_is_read_takes_little_beside_what_is_made():
    text = b"1\n" * 2**14
    tracemalloc.start()
    try:
        (tensor,) = csv_rows.decode(text, 256)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * tensor.array.nbytes


@given(arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2), elements=st.floats(width=32)))
def test_there_and_back(array):
    data = b"".join(csv_rows.encode(Tensors.of({"x": array}).items))
    (found,) = csv_rows.decode(data)
    np.testing.assert_array_equal(found.array, array)


def test_a_line_for_each_row_of_each_tensor():
    tensors = Tensors.of({"a": np.arange(4).reshape(2, 2), "b": np.float32(0.5), "c": np.array([True])})
    assert b"".join(csv_rows.encode(tensors.items)) == b"0,1\n2,3\n0.5\nTrue\n"
    assert list(csv_rows.encode(Tensors.of({"e": np.zeros((0, 3))}).items)) == []


def test_text_is_no_row():
    text = Tensor("t", DataType.BYTES, (1,), np.array([b"a"], object))
    with pytest.raises(ServeError, match="BYTES") as caught:
        list(csv_rows.encode([text]))
    assert caught.value.code is Code.UNSUPPORTED
