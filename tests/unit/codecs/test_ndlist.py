from contextlib import suppress
from struct import pack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples
from tests.harness.tensor_strategies import same, tensors

from trivium.codecs import ndlist
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import STRINGS_AT_ONCE, PackedTensor, Tensor

LIMIT = 1_000_000
any_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
words = any_text.map(str.encode)


def utf(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return pack(">H", len(raw)) + raw


def array(
    kind="FLOAT32", shape=(2,), data=bytes(8), order=b"<", version=3, name=None, sparse="default", layout=None
):
    """One array as DJL writes it, every field of which can be wrong."""
    named = b"" if version < 2 else b"\0" if name is None else b"\1" + utf(name)
    letters = len(shape) if layout is None else layout
    head = utf("NDAR") + pack(">i", version) + named + utf(sparse) + utf(kind)
    head += pack(">i", len(shape)) + pack(f">{len(shape)}q", *shape)
    head += pack(">i", letters) + b"\0N" * max(letters, 0)
    return head + (order if version == 3 else b"") + pack(">i", len(data)) + data


def strings(*items, shape=None, count=None):
    head = array("STRING", (len(items),) if shape is None else shape, b"", b"")[:-4]
    return head + pack(">i", len(items) if count is None else count) + b"".join(map(utf, items))


def listed(*arrays, count=None):
    return pack(">i", len(arrays) if count is None else count) + b"".join(arrays)


def one(data):
    (tensor,) = ndlist.decode(data, LIMIT)
    return tensor


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(any_text, tensors(st.sampled_from(list(DataType)), elements=words)), max_size=3))
def test_round_trip(named):
    sent = [Tensor(name, tensor.datatype, tensor.shape, tensor.array) for name, tensor in named]
    data = ndlist.encode(sent)
    for body in (data, memoryview(data), memoryview(bytearray(data))):
        got = ndlist.decode(body, LIMIT)
        assert len(got) == len(sent)
        assert all(map(same, got, sent))
    assert b"".join(ndlist.pieces(sent)) == data


def test_the_prefix_has_the_length_that_the_sheet_says():
    """Sharp edge 13: framing in big-endian, names in modified UTF-8, layouts of two bytes a letter."""
    picture = np.zeros((1, 3, 224, 224), "<f4")
    sent = ndlist.encode([Tensor("", DataType.FP32, picture.shape, picture)])
    assert len(sent) - picture.nbytes == 84
    assert sent[:10] == bytes.fromhex("00000001 0004 4E444152".replace(" ", ""))
    as_python_writes = listed(array(shape=picture.shape, data=picture.tobytes()))
    assert len(as_python_writes) - picture.nbytes == 86
    assert one(as_python_writes).shape == (1, 3, 224, 224)


def test_numbers_are_views_and_empty_lists_are_lists():
    body = bytearray(listed(array(data=np.array([1, 2], "<f4").tobytes())))
    tensor = one(body)
    assert tensor.array.tolist() == [1.0, 2.0]
    body[-4:] = np.float32(7).tobytes()
    assert tensor.array.tolist() == [1.0, 7.0]
    assert ndlist.decode(listed(), LIMIT) == ()
    assert ndlist.encode([]) == bytes(4)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_is_read(version):
    tensor = one(listed(array(version=version, name="x" if version > 1 else None, data=b"\0\0\x80\x3f" * 2)))
    assert (tensor.name, tensor.array.tolist()) == ("x" if version > 1 else "", [1.0, 1.0])


@pytest.mark.parametrize(
    ("kind", "code", "values"),
    [
        ("FLOAT64", ">f8", [1.5, -2.0]),
        ("FLOAT16", ">f2", [1.5, -2.0]),
        ("INT64", ">i8", [1, -(2**40)]),
        ("UINT16", ">u2", [1, 65535]),
        ("UINT8", ">u1", [1, 255]),
    ],
)
def test_big_endian_data_is_turned(kind, code, values):
    tensor = one(listed(array(kind, data=np.array(values, code).tobytes(), order=b">")))
    assert tensor.array.tolist() == values
    assert tensor.array.dtype == tensor.datatype.dtype


@pytest.mark.parametrize("word", ["BOOL", "BOOLEAN"])
def test_both_words_for_booleans_are_read_and_javas_is_written(word):
    tensor = one(listed(array(word, data=b"\1\0")))
    assert tensor.array.tolist() == [True, False]
    assert utf("BOOLEAN") in ndlist.encode([tensor])


def test_strings_are_modified_utf8():
    """Sharp edge 13: framing in big-endian, names in modified UTF-8, layouts of two bytes a letter."""
    wild = "a\0ä\U0001f600"
    java = b"a\xc0\x80\xc3\xa4\xed\xa0\xbd\xed\xb8\x80"
    tensor = one(listed(strings(java, "plain \U0001f600".encode())))
    assert [element.decode() for element in tensor.array.tolist()] == [wild, "plain \U0001f600"]
    assert utf(java) in ndlist.encode([tensor])


def test_a_scalar():
    assert one(listed(array(shape=(), data=b"\0\0\x80\x3f"))).array.tolist() == 1.0


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "the number of arrays takes 4 bytes, and 0 are left"),
        (listed(count=-1), "claims -1 arrays"),
        (listed(array(), count=2**31 - 1), "the magic word of an array takes 2 bytes"),
        (listed(array()) + b"x", "1 bytes are left over"),
        (listed(array())[:-1], "the data of tensor '' takes 8 bytes, and 7 are left"),
        (listed(utf("NDAX")), "does not begin with NDAR"),
        (listed(array(version=4)), "version 4"),
        (listed(array(version=0)), "version 0"),
        (listed(array("COMPLEX64")), "COMPLEX64, which no datatype of v2 holds"),
        (listed(array("FLOAT8")), "unknown datatype 'FLOAT8'"),
        (listed(array(shape=(1,) * 70)), "claims 70 dimensions"),
        (listed(array()[:29] + pack(">i", -1)), "claims -1 dimensions"),
        (listed(array(shape=(-2,))), "negative"),
        (listed(array(shape=(2**62, 4))), "more than any tensor can hold"),
        (listed(array(shape=(3,))), "takes 12 bytes, but 8 were sent"),
        (listed(array(shape=(3,), data=bytes(11), order=b">")), "takes 12 bytes, but 11 were sent"),
        (listed(array(layout=-1)), "a layout takes -1 bytes"),
        (listed(array()[:41] + pack(">i", 2**30)), "a layout takes"),
        (listed(array(order=b"|")), "byte order"),
        (listed(array("BOOL", data=b"\2\0")), "neither 0 nor 1"),
        (listed(strings("a", shape=(2,))), "comes with 1 strings"),
        (listed(strings("a", shape=(2**30,), count=2**30)), "claims 1073741824 strings"),
        (listed(strings(b"\xff")), "not UTF-8"),
        (listed(strings(b"\xed\xa0\xbd")), "not UTF-8"),
        (listed(array(name=b"\xff")), "a name is not UTF-8"),
    ],
)
def test_hostile_lists_are_refused(data, found):
    with pytest.raises(ServeError) as refused:
        ndlist.decode(data, LIMIT)
    assert refused.value.code is Code.INVALID
    assert found in refused.value.message


def test_a_list_beyond_the_limit_is_not_looked_at():
    with pytest.raises(ServeError, match="at most 3") as refused:
        ndlist.decode(bytes(4), 3)
    assert refused.value.code is Code.TOO_LARGE


@settings(max_examples=examples(300))
@given(st.binary(max_size=40), st.integers(0, 200), st.booleans())
def test_hostile_bytes_are_decoded_or_refused(noise, place, replaces):
    whole = listed(array(name="x"), strings("a", "b"), array("BOOL", data=b"\1\0", order=b">"))
    rest = whole[place + len(noise) if replaces else place :]
    with suppress(ServeError):
        ndlist.decode(whole[:place] + noise + rest, LIMIT)


def texts(*items):
    array = np.empty(len(items), object)
    array[:] = items
    return Tensor("x", DataType.BYTES, array.shape, array)


@pytest.mark.parametrize(
    ("tensor", "found"),
    [
        (texts(b"\xff"), "not UTF-8"),
        (texts(b"a" * 65536), "65536 bytes does not fit"),
        (texts(b"\0" * 40000), "80000 bytes does not fit"),
        (Tensor("n" * 65536, DataType.BOOL, (0,), np.zeros(0, "?")), "65536 bytes does not fit"),
    ],
)
def test_what_the_form_cannot_hold_is_refused(tensor, found):
    with pytest.raises(ServeError, match=found) as refused:
        ndlist.encode([tensor])
    assert refused.value.code is Code.UNSUPPORTED
    assert len(refused.value.message) < 500


def test_a_tensor_of_two_gigabytes_is_refused(monkeypatch):
    monkeypatch.setattr(ndlist, "LONGEST_DATA", 7)
    with pytest.raises(ServeError, match="holds 7 at most"):
        ndlist.encode([Tensor("x", DataType.FP64, (1,), np.zeros(1))])


def test_many_strings_are_packed_as_they_are_read_and_written():
    """A buffer for each would keep the loop from everybody else, and so would a list of all."""
    array = np.array([b"\xc3\xa9" if number % 9 else b"" for number in range(3 * STRINGS_AT_ONCE)], object)
    sent = Tensor("x", DataType.BYTES, array.shape, array)
    buffers = list(ndlist.pieces([sent]))
    assert len(buffers) < 10
    (came,) = ndlist.decode(b"".join(buffers), 2**30)
    assert type(came) is PackedTensor
    assert came.array.tolist() == array.tolist()
    assert list(ndlist.pieces([came])) == buffers
