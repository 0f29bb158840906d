"""Large JSON arrays, cut: whatever they hold, the slices hold the same in the same order."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.codecs import json_slices, jsontensors
from trivium.codecs.json_slices import flat_slices
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import PackedTensor, Tensor

TEXTS = st.text(alphabet='a",[]\\ \n€\t', max_size=8)
NUMBERS = st.one_of(st.integers(-9, 10**6), st.floats(allow_nan=False, allow_infinity=False))


def nested(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(
        st.recursive(elements, lambda inner: st.lists(inner, max_size=4), max_leaves=20), max_size=12
    )


def flat(value: Any) -> list[Any]:
    return [each for part in value for each in flat(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("indent", [None, 1])
@settings(max_examples=examples(60))
@given(st.data())
def test_slices_hold_what_the_array_holds(size: int, indent: int | None, data: Any) -> None:
    has_strings = data.draw(st.booleans())
    value = data.draw(nested(TEXTS if has_strings else NUMBERS))
    text = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_slices, "SLICE_BYTES", size)
        found = [json.loads(part) for part in flat_slices(text, has_strings)]
    assert [each for part in found for each in part] == flat(value)


@pytest.mark.parametrize(
    ("datatype", "data", "shape"),
    [
        (DataType.FP32, [[0.5, -1, 3e9]] * 50_000, (50_000, 3)),
        (DataType.INT64, list(range(-9, 100_000)), (100_009,)),
        (DataType.UINT64, [2**64 - 1] * 30_000, (30_000,)),
        (DataType.BOOL, [[[True], [False]]] * 40_000, (40_000, 2, 1)),
        (DataType.BYTES, ["", "a,b", '"]', "\\", "€"] * 20_000, (100_000,)),
    ],
)
def test_a_large_tensor_is_read_and_written_as_a_small_one_is(
    datatype: DataType, data: list[Any], shape: tuple[int, ...]
) -> None:
    text = msgspec.json.encode(data)
    assert len(text) > json_slices.SLICE_BYTES
    tensor = jsontensors.decode("x", datatype, shape, msgspec.Raw(text))
    assert jsontensors.is_large(tensor)
    elements = flat(data)
    if datatype is DataType.BYTES:
        assert type(tensor) is PackedTensor
        elements = [each.encode() for each in elements]
    assert tensor.array.shape == shape
    assert tensor.array.ravel().tolist() == np.array(elements, datatype.dtype).tolist()
    assert json.loads(jsontensors.encode(tensor)) == flat(data)


@pytest.mark.parametrize(
    ("datatype", "data", "found"),
    [
        (DataType.INT8, [1] * 300_000 + [128, 1], "Element 300000"),
        (DataType.INT32, [1] * 300_000 + ["1,2"], "Element 300000"),
        (DataType.FP32, [1] * 300_000 + [{"a": 1, "b": 2}], "x"),
        (DataType.BYTES, [""] * 300_000 + [1], "Element 300000"),
        (DataType.UINT64, [1] * 300_000 + [2**64], "Element 300000"),
        (DataType.FP32, [1] * 300_000, "300000 elements"),
        (DataType.BYTES, "x" * 300_000, "expected an array"),
    ],
)
def test_faults_in_a_large_tensor_are_told_with_their_place(
    datatype: DataType, data: Any, found: str
) -> None:
    with pytest.raises(ServeError, match=found) as refused:
        jsontensors.decode("x", datatype, (7,), msgspec.Raw(msgspec.json.encode(data)))
    assert refused.value.code is Code.INVALID


def test_nan_in_a_large_tensor_is_written_where_it_is() -> None:
    array = np.zeros(50_000, np.float32)
    array[[3, 40_000]] = np.nan, np.inf
    text = jsontensors.encode(Tensor("x", DataType.FP32, (50_000,), array))
    np.testing.assert_array_equal(json.loads(text), array)


def test_one_string_that_is_longer_than_a_slice_stays_whole() -> None:
    value = ["a", '\\"' * 400_000, "b", "]" * 400_000]
    found = [json.loads(part) for part in flat_slices(json.dumps(value).encode(), True)]
    assert [each for part in found for each in part] == value
