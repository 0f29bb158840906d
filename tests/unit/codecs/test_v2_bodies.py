import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs.conversion import to_tensors
from trivium.codecs.v2_bodies import MOST_VALUES
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw, RawForm, RawPart
from trivium.types.spec import TensorSpec

X = TensorSpec("x", DataType.FP32, (2,))
OPEN = TensorSpec("x", DataType.INT16, (-1, 3))
TEXT = TensorSpec("t", DataType.BYTES, (1,))


def read(data, *inputs, kind=RawForm.TENSOR, batch_axis=False):
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return to_tensors(Raw((RawPart(body),), form=kind), inputs, batch_axis, "m").items


def refusal(*words, **more):
    with pytest.raises(ServeError) as caught:
        read(*words, **more)
    assert caught.value.code is Code.INVALID
    return caught.value.message


def test_bare_numbers():
    (tensor,) = read(np.array([1, 2], "<f4").tobytes(), X)
    assert (tensor.name, tensor.shape, tensor.array.tolist()) == ("x", (2,), [1, 2])
    (tensor,) = read(np.array([1, 2], "<f4").tobytes(), X, batch_axis=True)
    assert tensor.shape == (1, 2)
    (tensor,) = read(bytes(12), OPEN, batch_axis=True)
    assert tensor.shape == (1, 2, 3)


def test_a_bare_text():
    for dims in ((1,), (), (-1,), (1, 1)):
        (tensor,) = read(b"\0hello", TensorSpec("t", DataType.BYTES, dims), batch_axis=True)
        assert tensor.shape == (1,) * (len(dims) + 1)
        assert tensor.array.ravel()[0] == b"\0hello"


@pytest.mark.parametrize(
    ("data", "inputs", "words"),
    [
        (bytes(8), (), "takes none"),
        (bytes(8), (X, TEXT), "that has one"),
        (bytes(7), (X,), "7 bytes were sent"),
        (bytes(12), (X,), "12 bytes were sent"),
        (b"", (X,), "0 bytes were sent"),
        (bytes(4), (OPEN,), "4 bytes were sent"),
        (bytes(8), (TensorSpec("x", DataType.INT16, (-1, -1)),), "8 bytes were sent"),
        (bytes(8), (TensorSpec("x", DataType.INT16, (-1, 0)),), "8 bytes were sent"),
        (b"a", (TensorSpec("x", DataType.BYTES, (2,)),), "one element"),
        (b"\2", (TensorSpec("x", DataType.BOOL, (1,)),), "neither 0 nor 1"),
    ],
)
def test_bare_data_that_do_not_fit(data, inputs, words):
    assert words in refusal(data, *inputs)


def test_generate_takes_values_and_lists_by_name():
    fields = {"t": "hello", "x": [1, 2.5], "other": True, "id": "7", "parameters": {"a": [1]}}
    text, x = read(fields, TEXT, X, kind=RawForm.FIELDS, batch_axis=True)
    assert (text.shape, text.array.ravel().tolist()) == ((1, 1), [b"hello"])
    assert (x.shape, x.array.tolist()) == ((1, 2), [[1, 2.5]])


def test_generate_derives_one_dimension():
    (tensor,) = read({"x": [1, 2, 3, 4, 5, 6]}, OPEN, kind=RawForm.FIELDS)
    assert tensor.array.tolist() == [[1, 2, 3], [4, 5, 6]]
    (tensor,) = read({"x": 1}, TensorSpec("x", DataType.INT8, (-1, -1)), kind=RawForm.FIELDS)
    assert tensor.shape == (1, 1)
    (tensor,) = read({"x": []}, TensorSpec("x", DataType.INT8, (-1,)), kind=RawForm.FIELDS)
    assert tensor.shape == (0,)
    for values, shape in (([1, 2], (1, 2)), ([1, 2, 3, 4], (2, 2)), ([[1], [2]], (1, 2)), ([], (0, 2))):
        (tensor,) = read({"x": values}, X, kind=RawForm.FIELDS, batch_axis=True)
        assert tensor.shape == shape, "rows of a batch follow from the number of values"
    (tensor,) = read({"x": [1, 2]}, TensorSpec("x", DataType.INT8, (-1, -1)), kind=RawForm.FIELDS)
    assert tensor.shape == (1, 2)
    (tensor,) = read(b'{"y": 1, "y": [2], "x": [1, 2]}', X, kind=RawForm.FIELDS)
    assert tensor.array.tolist() == [1, 2], "a parameter may come twice; its first value counts"
    assert read({}, X, kind=RawForm.FIELDS) == (), "what lacks, admission says"


@pytest.mark.parametrize(
    ("fields", "inputs", "words"),
    [
        (b"", (X,), ""),
        (b"[]", (X,), "no object"),
        (b"\xff", (X,), "no valid JSON"),
        (b"[" * 9999, (X,), "no valid JSON"),
        ({"x": [[1, 2]]}, (X,), "1 values were sent"),
        ({"x": [[1, 2], 3]}, (X,), "3 elements"),
        ({"x": [None, 1]}, (X,), "is null"),
        ({"x": [{}, 1]}, (X,), "is {}"),
        ({"t": None}, (TEXT,), "is null"),
        (b'{"x": "?", "y": {}}', (X,), "1 values were sent"),
        (b'{"y": {}, "x": "?"}', (X,), "'y' of the generate request is no input"),
        (b'{"x": [1, 2], "x": "?"}', (X,), "'x' more than once"),
        (rb'{"x": [1, 2], "\u0078": [1, 2]}', (X,), "'x' more than once"),
        ({"x": [1, 2, 3]}, (X,), "3 values were sent"),
        ({"x": ["1", "2"]}, (X,), "a number"),
        ({"x": 1.5}, (TensorSpec("x", DataType.INT8, (1,)),), "an integer"),
        ({"x": 1}, (TensorSpec("x", DataType.FP16, (1,)),), "JSON"),
        ({"y": [1]}, (X,), "'y' of the generate request is no input"),
        ({"y": None}, (), "takes none"),
    ],
)
def test_generate_requests_that_do_not_fit(fields, inputs, words):
    if words:
        assert words in refusal(fields, *inputs, kind=RawForm.FIELDS)
    else:
        assert read(fields, *inputs, kind=RawForm.FIELDS) == ()


@given(
    st.binary(max_size=60),
    st.sampled_from([RawForm.TENSOR, RawForm.FIELDS]),
    st.sampled_from([X, OPEN, TEXT]),
)
def test_any_bytes_are_read_or_refused(data, kind, spec):
    code = Code.INVALID
    try:
        read(data, spec, kind=kind)
    except ServeError as error:
        code = error.code
    assert code is Code.INVALID


MANY = b"[" + b"0," * (2 * MOST_VALUES) + b"0]"


@pytest.mark.parametrize("body", [b'{"x": %b}' % MANY, b'{"x": 0, "y": {"a": %b}}' % MANY])
def test_a_generate_request_has_few_values(body):
    """They are read in one call, while nobody else has the interpreter."""
    with pytest.raises(ServeError) as caught:
        read(body, OPEN, kind=RawForm.FIELDS)
    assert caught.value.code is Code.TOO_LARGE
    assert "route `infer`" in caught.value.message


def test_the_text_of_a_generate_request_may_be_long():
    (tensor,) = read(b'{"t": "%b"}' % MANY, TEXT, kind=RawForm.FIELDS)
    assert tensor.array.tolist() == [MANY]
