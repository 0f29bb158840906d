import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs.classification import UNRANKED, classify
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor


def ranked(values, most, datatype=DataType.FP32, labels=(), has_rows=False):
    array = np.array(values, datatype.dtype)
    made = classify(Tensor("y", datatype, array.shape, array), most, labels, has_rows)
    assert (made.name, made.datatype) == ("y", DataType.BYTES)
    assert made.array.shape == made.shape
    return made.shape, [text.decode() for text in made.array.ravel()]


def test_the_highest_come_first_with_their_labels():
    found = ranked([0.5, 4, -1, 2], 3, labels=("cat", "dog"))
    assert found == ((3,), ["4.000000:1:dog", "2.000000:3", "0.500000:0:cat"])
    assert ranked([1, 2], 2, labels=("", "a:b"))[1] == ["2.000000:1:a:b", "1.000000:0"]


def test_each_row_by_itself():
    assert ranked([[1, 2], [4, 3]], 9, has_rows=True) == (
        (2, 2),
        ["2.000000:1", "1.000000:0", "4.000000:0", "3.000000:1"],
    )
    assert ranked([[1, 2], [4, 3]], 1) == ((1,), ["4.000000:2"])


@pytest.mark.parametrize("datatype", [DataType.UINT8, DataType.INT64, DataType.UINT64])
def test_whole_numbers_have_no_fraction(datatype):
    assert ranked([3, 7, 0], 2, datatype) == ((2,), ["7:1", "3:0"])


def test_of_equals_the_first_comes_first_and_what_is_no_number_last():
    assert ranked([1, 2, 2, 1], 4)[1] == ["2.000000:1", "2.000000:2", "1.000000:0", "1.000000:3"]
    assert ranked([1, 2, 2, 1], 4, DataType.INT8)[1] == ["2:1", "2:2", "1:0", "1:3"]
    assert ranked([np.nan, 1, np.inf], 3)[1] == ["inf:2", "1.000000:1", "nan:0"]


def test_half_precision():
    assert ranked([1.5, 2], 1, DataType.FP16)[1] == ["2.000000:1"]
    bits = (np.array([1.5, -2], "<f4").view("<u4") >> 16).astype("<u2")
    assert ranked(bits, 2, DataType.BF16)[1] == ["1.500000:0", "-2.000000:1"]


def test_nothing_to_rank():
    assert ranked([], 3) == ((0,), [])
    assert ranked(np.zeros((0, 4)), 3, has_rows=True) == ((0, 0), [])
    assert ranked(5.0, 3) == ((1,), ["5.000000:0"])


@pytest.mark.parametrize("datatype", sorted(UNRANKED, key=lambda datatype: datatype.wire))
def test_what_has_no_order(datatype):
    with pytest.raises(ServeError) as caught:
        ranked([0], 1, datatype)
    assert caught.value.code is Code.MODEL_FAILED


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), st.integers(1, 25))
def test_they_are_those_that_sorting_finds(values, most):
    found = [text.split(":") for text in ranked(values, most, DataType.INT64)[1]]
    assert [int(value) for value, _ in found] == sorted(values, reverse=True)[:most]
    assert all(values[int(index)] == int(value) for value, index in found)
