"""safetensors: bytes as the original writes them, round trips, and files made to hurt."""

import json
import struct
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.tensor_strategies import same, tensors

from trivium.codecs import safetensors
from trivium.codecs.safetensors import DATATYPES, MAX_HEADER_BYTES, decode, encode
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors

numbers = st.sampled_from(sorted(DATATYPES.values(), key=lambda datatype: datatype.wire))


@dataclass
class Entry:
    dtype: str = "U8"
    shape: tuple[int, ...] = (2,)
    data_offsets: tuple[int, ...] = (0, 2)


def file(header, data=b""):
    text = header if isinstance(header, bytes) else msgspec.json.encode(header)
    return struct.pack("<Q", len(text)) + text + data


def refusal(call, *args):
    with pytest.raises(ServeError) as caught:
        call(*args)
    return caught.value


def named(found):
    return [Tensor(f"t{at}", one.datatype, one.shape, one.array) for at, one in enumerate(found)]


def test_the_originals_layout():
    text = b'{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[1,9]},'
    text += b'"a":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}}   '
    b, a = decode(file(text, b"\x01" + np.array([1, 2], "<f4").tobytes()))
    assert same(b, Tensor("b", DataType.FP32, (1, 2), np.array([[1, 2]], "<f4")))
    assert same(a, Tensor("a", DataType.BOOL, (), np.array(True)))


def test_the_data_begins_aligned():
    header, *_ = encode(Tensors.of({"abc": np.ones(3, "<f4")}).items)
    (length,) = struct.unpack_from("<Q", header)
    assert len(header) % 8 == 0
    assert json.loads(header[8:]) == {"abc": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}
    assert length == len(header) - 8


def test_nothing_is_copied():
    array = np.arange(6, dtype="<i8").reshape(2, 3)
    buffers = encode(Tensors.of({"x": array}).items)
    assert np.shares_memory(np.frombuffer(buffers[1], "u1"), array)
    body = bytearray(b"".join(buffers))
    (tensor,) = decode(memoryview(body))
    body[-8:] = bytes(8)
    assert tensor.array.tolist() == [[0, 1, 2], [3, 4, 0]]


@given(st.lists(tensors(numbers), max_size=4).map(named))
def test_round_trip(found):
    read = decode(b"".join(encode(found)))
    assert len(read) == len(found)
    assert all(map(same, read, found))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "its 0 bytes are too few"),
        (b"1234567", "its 7 bytes are too few"),
        (struct.pack("<Q", 3) + b"{}", "its header is said to have 3 bytes"),
        (b"\xff" * 8, "its header is said to have 18446744073709551615 bytes"),
        (struct.pack("<Q", MAX_HEADER_BYTES + 1) + b" " * (MAX_HEADER_BYTES + 1), "expected at most"),
        (file(b"{"), "its header is not the JSON of one"),
        (file(b"[]"), "its header is not the JSON of one"),
        (file(b'{"a":1}'), "its header is not the JSON of one"),
        (file(b'{"a":"\xff"}'), "its header is not the JSON of one"),
        (file(b'{"a":' + b"[" * 100_000), "its header is not the JSON of one"),
        (file(b'{"__metadata__":' + b"[" * 100_000), "its header is not the JSON of one"),
        (file({"a": {"dtype": "U8"}}), "its header is not the JSON of one"),
        (file({"a": Entry(data_offsets=(0, 1, 2))}), "its header is not the JSON of one"),
        (
            file({"a": Entry("F8_E4M3")}, b"12"),
            "tensor 'a' has the dtype 'F8_E4M3', expected one of BOOL, U8",
        ),
        (file({"a": Entry(data_offsets=(0, 3))}, b"12"), "[0, 3], expected a span in the 2 bytes"),
        (file({"a": Entry(data_offsets=(2, 0))}, b"12"), "[2, 0], expected a span"),
        (file({"a": Entry(data_offsets=(-2, 0))}, b"12"), "[-2, 0], expected a span"),
        (file({"a": Entry(data_offsets=(0, 2**70))}, b"12"), "expected a span"),
        (file({"a": Entry(shape=(3,))}, b"12"), "takes 3 bytes, but 2 were sent"),
        (file({"a": Entry(shape=(-1,))}, b"12"), "is negative"),
        (file({"a": Entry(shape=(2**40, 2**40))}, b"12"), "more than any tensor can hold"),
        (file({"a": Entry(shape=(1,) * 1000)}, b"12"), "1000 dimensions"),
        (file({"a": Entry("BOOL")}, b"12"), "neither 0 nor 1"),
        (file({}, b"1"), "1 bytes are left over"),
        (file({"a": Entry()}, b"123"), "1 bytes are left over"),
        (file({"a": Entry(data_offsets=(1, 3))}, b"123"), "leave a gap at byte 1"),
        (file({"a": Entry(), "b": Entry(data_offsets=(1, 3))}, b"123"), "overlap at byte 1"),
        (file({"a": Entry(), "b": Entry()}, b"12"), "overlap at byte 0"),
    ],
)
def test_what_cannot_be_is_told(data, found):
    error = refusal(decode, data)
    assert error.code is Code.INVALID
    assert found in error.message


def outcome(data):
    """The number of tensors, or the code of the refusal."""
    try:
        return len(decode(data))
    except ServeError as error:
        return error.code


@given(st.binary(max_size=64), st.binary(max_size=16))
def test_any_bytes_are_tensors_or_refused(text, data):
    assert outcome(text + data) in (Code.INVALID, *range(2))
    assert outcome(file(text, data)) in (Code.INVALID, *range(2))


span = st.lists(st.integers(-1, 6), max_size=3)


@given(st.dictionaries(st.text("ab", max_size=2), st.tuples(st.sampled_from(["U8", "F32", "X"]), span, span)))
def test_any_spans_are_tensors_that_fill_the_data_or_refused(entries):
    header = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        for name, (dtype, shape, offsets) in entries.items()
    }
    data = file(header, b"123456")
    found = outcome(data)
    assert found in (Code.INVALID, len(entries))
    if found == len(entries):
        assert sum(tensor.array.nbytes for tensor in decode(data)) == 6


def test_what_the_format_cannot_hold_is_refused():
    number, text = Tensors.of({"x": np.ones(1), "y": np.array(["a"])}).items
    assert "it is BYTES" in refusal(encode, [text]).message
    assert "its name is taken" in refusal(encode, [number, number]).message
    meta = Tensor("__metadata__", number.datatype, number.shape, number.array)
    assert refusal(encode, [meta]).code is Code.UNSUPPORTED


def test_every_number_of_v2_has_a_dtype():
    assert {*DATATYPES.values(), DataType.BYTES} == set(DataType)
    assert len(safetensors.DATATYPES) == len(DataType) - 1
