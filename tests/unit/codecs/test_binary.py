import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.harness.properties import examples
from tests.harness.tensor_strategies import same, tensors

from trivium.codecs import binary
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import NOT_MADE, PackedTensor, Tensor, Tensors


@settings(max_examples=examples(120))
@given(tensors(st.sampled_from(DataType)), st.binary(max_size=3))
def test_round_trip_at_any_offset(tensor, before):
    blob = bytes(binary.encode(tensor))
    buffer = bytearray(before + blob + b"after")
    again = binary.decode("t", tensor.datatype, tensor.shape, memoryview(buffer), len(before), len(blob))
    assert same(again, tensor)
    assert bytes(binary.encode(again)) == blob


@pytest.mark.parametrize("shape", [(2, 3), (), (1,)])
def test_a_numeric_tensor_is_a_view_both_ways(shape):
    buffer = bytearray(4 * int(np.prod(shape)))
    tensor = binary.decode("x", DataType.FP32, shape, memoryview(buffer))
    buffer[0:4] = np.float32(5).tobytes()
    assert tensor.array.flat[0] == 5
    assert np.shares_memory(np.frombuffer(binary.encode(tensor), "u1"), tensor.array)


@settings(max_examples=examples(120))
@given(tensors(st.sampled_from([d for d in DataType if d.itemsize])), st.binary(max_size=3), st.booleans())
def test_a_packed_tensor_is_the_same_tensor(tensor, before, is_read_first):
    blob = bytes(binary.encode(tensor))
    packed = PackedTensor(
        "t", tensor.datatype, tensor.shape, NOT_MADE, before + blob + b"after", len(before), len(blob)
    )
    if is_read_first:
        assert same(packed, tensor)
    packed = replace(replace(packed, name="another"), name="t")
    assert bytes(binary.encode(packed)) == blob
    assert same(packed, tensor)
    assert packed.array is packed.array


@pytest.mark.parametrize("buffer", [bytes(9000), memoryview(bytearray(9000))])
def test_a_large_packed_tensor_is_a_view_both_ways(buffer):
    tensor = PackedTensor("x", DataType.FP32, (2000,), NOT_MADE, buffer, 8, 8000)
    whole = np.frombuffer(buffer, "u1")
    assert np.shares_memory(tensor.array, whole)
    assert np.shares_memory(np.frombuffer(binary.encode(tensor), "u1"), whole)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype="<i4").reshape(3, 4).T,
        np.arange(12, dtype="<i4")[::2],
        np.zeros((0, 3), "<i4"),
    ],
)
def test_other_layouts_are_written_row_major(array):
    tensor = Tensor("x", DataType.INT32, array.shape, array)
    assert bytes(binary.encode(tensor)) == array.tobytes()


def test_a_tensor_without_elements_needs_no_bytes():
    assert binary.decode("x", DataType.FP32, (0, 2**40), b"").array.shape == (0, 2**40)
    assert binary.decode("x", DataType.BYTES, (2, 0), b"").array.shape == (2, 0)


@pytest.mark.parametrize(
    ("datatype", "shape", "blob", "words"),
    [
        (DataType.FP32, (2,), b"1234567", "takes 8 bytes, but 7 were sent"),
        (DataType.FP32, (2,), b"123456789", "takes 8 bytes, but 9 were sent"),
        (DataType.FP32, (), b"", "takes 4 bytes, but 0 were sent"),
        (DataType.INT64, (2**39,), b"", "takes 4398046511104 bytes"),
        (DataType.FP32, (-2, -2), b"1234" * 4, "negative"),
        (DataType.BF16, (2**62,), b"", "more than any tensor"),
        (DataType.BOOL, (3,), b"\0\1\2", "neither 0 nor 1"),
        (DataType.BYTES, (1,), b"\2\0\0\0a", "claims 2 bytes"),
        (DataType.BYTES, (2**40,), b"", "cannot hold"),
    ],
)
def test_refuses_what_does_not_fit(datatype, shape, blob, words):
    with pytest.raises(ServeError, match=words) as refused:
        binary.decode("x", datatype, shape, blob)
    assert refused.value.code is Code.INVALID
    assert "'x'" in refused.value.message


def test_many_strings_stay_packed_and_are_what_few_would_be() -> None:
    items = [b"", b"a", b"bc" * 50] * 10_000
    blob = b"".join(len(item).to_bytes(4, "little") + item for item in items)
    tensor = binary.decode("x", DataType.BYTES, (3, 10_000), b"--" + blob, 2)
    assert type(tensor) is PackedTensor
    assert bytes(binary.encode(tensor)) == blob
    assert tensor.array.shape == (3, 10_000)
    assert tensor.array.ravel().tolist() == items


@pytest.mark.parametrize(
    "blob", [bytes(4 * 20_000 - 1), bytes(4 * 20_000 + 1), bytes(4 * 19_999) + b"\1\0\0\0"]
)
def test_many_strings_that_are_not_whole_are_refused(blob: bytes) -> None:
    with pytest.raises(ServeError) as refused:
        binary.decode("x", DataType.BYTES, (20_000,), blob)
    assert refused.value.code is Code.INVALID


def test_many_strings_of_our_own_programs_are_not_walked_through() -> None:
    tensor = binary.decode_trusted("x", DataType.BYTES, (20_000,), bytes(4 * 19_999) + b"\1\0\0\0")
    assert type(tensor) is PackedTensor
    with pytest.raises(ValueError, match="cut short"):
        tensor.array  # noqa: B018
    with pytest.raises(ServeError):
        binary.decode_trusted("x", DataType.BYTES, (20_000,), bytes(100))


def test_many_strings_of_an_engine_are_packed_and_few_are_not() -> None:
    many, few = np.empty((2, 10_000), object), np.empty(3, object)
    many[:], few[:] = b"x", [b"a", b"", b"c"]
    numbers = np.zeros(50_000, np.float32)
    before = Tensors.of({"many": many, "few": few, "numbers": numbers})
    after = binary.pack_strings(before)
    assert [type(tensor) is PackedTensor for tensor in after.items] == [True, False, False]
    assert after["many"].tolist() == many.tolist()
    assert binary.pack_strings(after).items == after.items
    plain = Tensors.of({"few": few})
    assert binary.pack_strings(plain) is plain


def test_long_strings_stay_where_they_are():
    """Copies of 64 MiB would hold up everybody else."""
    data = b"".join(len(text).to_bytes(4, "little") + text for text in (b"a", b"b" * binary.LONG_STRINGS))
    for tensor in (
        binary.decode("x", DataType.BYTES, (2,), memoryview(data)),
        binary.decode_trusted("x", DataType.BYTES, (2,), memoryview(data)),
    ):
        assert binary.encode(tensor).obj is data
        assert tensor.array.tolist() == [b"a", b"b" * binary.LONG_STRINGS]
    with pytest.raises(ServeError, match="left over"):
        binary.decode("x", DataType.BYTES, (1,), memoryview(data))


def test_what_is_written_later_is_packed_if_it_is_long():
    array = np.array([b"a", b"b" * binary.LONG_STRINGS], object)
    few, long = (Tensors.of({"x": one}) for one in (array[:1], array))
    assert binary.pack_strings(few) is few
    packed = binary.pack_strings(long)
    assert type(packed.items[0]) is PackedTensor
    assert packed["x"].tolist() == array.tolist()
