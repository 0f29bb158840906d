import json
import math
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples
from tests.harness.tensor_strategies import same, tensors

from trivium.codecs import jsontensors
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors

IN_JSON = [kind for kind in DataType if kind not in (DataType.FP16, DataType.BF16)]
utf8 = st.text(max_size=5).map(str.encode)


def decode(datatype, shape, text):
    return jsontensors.decode("x", datatype, shape, msgspec.Raw(text))


def elements(datatype, text):
    return decode(datatype, (len(json.loads(text)),), text).array.tolist()


@settings(max_examples=examples(120))
@given(tensors(st.sampled_from(IN_JSON), elements=utf8))
def test_round_trip(tensor):
    text = jsontensors.encode(tensor)
    assert same(jsontensors.decode("t", tensor.datatype, tensor.shape, msgspec.Raw(text)), tensor)


@settings(max_examples=examples(60))
@given(tensors(st.sampled_from(IN_JSON), elements=utf8))
def test_nested_data_are_the_flat_data(tensor):
    flat = json.loads(jsontensors.encode(tensor))
    nested = json.dumps(np.array(flat, object).reshape(tensor.shape).tolist() if tensor.shape else [[flat]])
    assert same(jsontensors.decode("t", tensor.datatype, tensor.shape, msgspec.Raw(nested)), tensor)


@pytest.mark.parametrize(
    ("datatype", "text", "values"),
    [
        (DataType.FP32, b"[1, 2.5, -0.0]", [1.0, 2.5, 0.0]),
        (DataType.FP32, b"[1e39, -1e39]", [math.inf, -math.inf]),
        (DataType.FP64, b"[Infinity, -Infinity, 1]", [math.inf, -math.inf, 1.0]),
        (DataType.FP64, b"[1e999]", [math.inf]),
        (DataType.UINT64, b"[18446744073709551615, 0]", [2**64 - 1, 0]),
        (DataType.INT64, b"[-9223372036854775808, 9223372036854775807]", [-(2**63), 2**63 - 1]),
        (DataType.INT8, b"[-128, 127]", [-128, 127]),
        (DataType.BOOL, b"[true, false]", [True, False]),
        (DataType.BYTES, '["a\\u0000", "ä", ""]'.encode(), [b"a\0", "ä".encode(), b""]),
    ],
)
def test_decodes(datatype, text, values):
    assert elements(datatype, text) == values


def test_mixed_depths_are_row_major():
    assert decode(DataType.INT32, (5,), b"[1, [2, [3]], [[4]], 5]").array.tolist() == [1, 2, 3, 4, 5]


def test_nan_comes_in_bare():
    assert np.isnan(decode(DataType.FP32, (2,), b"[[NaN], 1]").array).tolist() == [True, False]


def test_no_dimensions_take_one_element():
    assert decode(DataType.INT32, (), b"[7]").array.shape == ()


@pytest.mark.parametrize(
    ("datatype", "text", "words"),
    [
        (DataType.INT32, b"[1, 5000000000]", "Element 1 .* is 5000000000, .* from -2147483648 to 2147483647"),
        (DataType.UINT8, b"[-1]", "Element 0 .* from 0 to 255"),
        (DataType.UINT64, b"[18446744073709551616]", "Element 0 .* from 0 to 18446744073709551615"),
        (DataType.UINT64, b"[-1]", "Element 0"),
        (DataType.INT64, b"[9223372036854775808]", "Element 0"),
        (DataType.INT64, b"[[" + b"9" * 400 + b"]]", r"Element 0 .* is 9{37}\.\.\.,"),
        (DataType.INT32, b"[[1, 1.5]]", "Element 1 .* is 1.5"),
        (DataType.INT32, b"[1.0]", "Element 0 .* is 1.0"),
        (DataType.INT32, b"[NaN]", "Element 0 .* is NaN"),
        (DataType.INT32, b"[true]", "Element 0 .* is true"),
        (DataType.BOOL, b"[true, 1]", "Element 1 .* is 1, but BOOL takes true or false"),
        (DataType.FP32, b'[1, "2"]', "Element 1"),
        (DataType.FP32, b"[null]", "is null, but FP32 takes a number"),
        (DataType.FP32, b"[false]", "is false"),
        (DataType.FP64, b"[" + b"9" * 400 + b"]", "Element 0"),
        (DataType.FP64, b"[" + b"9" * 5000 + b"]", "no valid JSON"),
        (DataType.BYTES, b"[1]", "BYTES takes a string"),
        (DataType.BYTES, b'["\xff"]', "no valid JSON"),
        (DataType.FP32, b"[{}]", "Element 0"),
        (DataType.BYTES, b'["\\ud800"]', "half of a surrogate pair"),
        (DataType.BYTES, b'["' + b"x" * 2**19 + b'\\ud800"]', "half of a surrogate pair"),
        (DataType.FP32, b'["\\ud800"]', "half of a surrogate pair"),
        (DataType.FP32, b"5", "expected an array"),
        (DataType.FP32, b"null", "expected an array"),
        (DataType.FP32, b"[nan]", "no valid JSON"),
        (DataType.FP32, b"", "no valid JSON"),
        (DataType.FP32, b"[" * 101 + b"1" + b"]" * 101, "more than 100 arrays deep"),
        (DataType.FP32, b"[" * 100000 + b"]" * 100000, "more than 100 arrays deep"),
        (DataType.FP32, b"[NaN," + b"[" * 100000 + b"]" * 100000 + b"]", "more than 100 arrays deep"),
        (DataType.FP16, b"[1]", "FP16, which JSON cannot carry.*binary_data_size"),
        (DataType.BF16, b"[1]", "BF16, which JSON cannot carry"),
    ],
)
def test_refuses_and_says_why(datatype, text, words):
    with pytest.raises(ServeError, match=words) as refused:
        decode(datatype, (1,), text)
    assert refused.value.code is Code.INVALID
    assert "'x'" in refused.value.message


def test_an_element_of_any_depth_is_shown_or_not():
    """Python reads a little deeper than it writes."""
    for depth in range(850, 1000):
        with pytest.raises(ServeError):
            decode(DataType.FP32, (1,), b"[" + b'{"a":' * depth + b"1" + b"}" * depth + b"]")


def test_depth_100_is_served():
    assert decode(DataType.FP32, (1,), b"[" * 100 + b"1" + b"]" * 100).array.tolist() == [1.0]


@pytest.mark.parametrize(
    ("shape", "text"), [((2,), b"[1]"), ((), b"[]"), ((0,), b"[1]"), ((2, 2), b"[[1, 2, 3]]")]
)
def test_refuses_another_number_of_elements(shape, text):
    with pytest.raises(ServeError, match=r"has \d elements, but its shape .* makes \d"):
        decode(DataType.FP32, shape, text)


@settings(max_examples=examples(100))
@given(
    st.sampled_from(DataType),
    st.one_of(st.binary(max_size=20), st.text('[]{},1.e-NaInfity"tru', max_size=20)),
)
def test_hostile_text_is_decoded_or_refused(datatype, text):
    with suppress(ServeError):
        assert decode(datatype, (1,), text).array.shape == (1,)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([0.1, 3, -0.0], "<f4"), b"[0.10000000149011612,3.0,-0.0]"),
        (np.array([[1, 2], [3, 4]], "<i8"), b"[1,2,3,4]"),
        (np.array([math.nan, math.inf, -math.inf, 1.5]), b"[NaN,Infinity,-Infinity,1.5]"),
        (np.array([True, False]), b"[true,false]"),
        (np.array(["ä\0".encode(), b""], object), '["ä\\u0000",""]'.encode()),
        (np.zeros((2, 0)), b"[]"),
        (np.array(2**64 - 1, "<u8"), b"[18446744073709551615]"),
    ],
)
def test_writes_flat(array, text):
    assert jsontensors.encode(Tensors.of({"x": array}).items[0]) == text


@pytest.mark.parametrize(
    ("datatype", "array", "words"),
    [
        (DataType.FP16, np.zeros(1, "<f2"), "binary_data set to true"),
        (DataType.BF16, np.zeros(1, "<u2"), "binary_data set to true"),
        (DataType.BYTES, np.array([b"a", b"\xff"], object), "Element 1 .* is not UTF-8.* binary_data"),
    ],
)
def test_what_json_cannot_carry_is_refused_with_the_mend(datatype, array, words):
    with pytest.raises(ServeError, match=words) as refused:
        jsontensors.encode(Tensor("x", datatype, array.shape, array))
    assert refused.value.code is Code.INVALID
