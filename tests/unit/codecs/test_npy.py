import io
import time
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples
from tests.harness.tensor_strategies import same, tensors

from trivium.codecs.npy import MAX_MEMBERS, decode_npy, decode_npz, encode_npy, encode_npz
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import STRINGS_AT_ONCE, PackedTensor, Tensor

LIMIT = 10_000
IN_NPY = [kind for kind in DataType if kind is not DataType.BF16]
unpadded = st.binary(max_size=6).map(lambda text: text.rstrip(b"\0"))


def saved(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def zipped(*members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def headed(descr, shape="(1,)", order="False", data=b"1234"):
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@settings(max_examples=examples(80))
@given(tensors(st.sampled_from(IN_NPY), elements=unpadded))
def test_npy_round_trip(tensor):
    data = encode_npy(tensor, LIMIT)
    assert same(decode_npy("t", data), tensor)
    assert np.load(io.BytesIO(data)).shape == tensor.shape


@settings(max_examples=examples(40))
@given(
    st.dictionaries(
        st.text("aä/. b", max_size=5), tensors(st.sampled_from(IN_NPY), elements=unpadded), max_size=4
    )
)
def test_npz_round_trip(named):
    sent = [Tensor(name, item.datatype, item.shape, item.array) for name, item in named.items()]
    got = decode_npz(encode_npz(sent, LIMIT), LIMIT)
    assert [tensor.name for tensor in got] == list(named)
    assert all(map(same, got, sent))


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (np.array([[1, 2], [3, 4]], ">i4"), [[1, 2], [3, 4]]),
        (np.asfortranarray([[1.5, 2], [3, 4]]), [[1.5, 2], [3, 4]]),
        (np.array(["ä", "b"]), ["ä".encode(), b"b"]),
        (np.array([b"a\0b", b""]), [b"a\0b", b""]),
        (np.float16(2), 2.0),
    ],
)
def test_numpys_own_files_are_read(array, values):
    tensor = decode_npy("x", saved(array))
    assert tensor.array.tolist() == values
    assert tensor.array.flags.c_contiguous
    assert tensor.array.dtype == tensor.datatype.dtype


def test_savez_compressed_is_read():
    file = io.BytesIO()
    np.savez_compressed(file, a=np.ones(3), b=np.array(["x"]))
    assert [(tensor.name, tensor.array.tolist()) for tensor in decode_npz(file.getvalue(), LIMIT)] == [
        ("a", [1.0, 1.0, 1.0]),
        ("b", [b"x"]),
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "header"),
        (b"\x93NUMPY\x03\x00\x00\x00\x00\x00", r"version \(3, 0\)"),
        (saved(np.zeros(2))[:-1], "do not make the 15 bytes"),
        (saved(np.zeros(2)) + b"x", "do not make the 17 bytes"),
        (saved(np.array([{}], object), allow_pickle=True), "no counterpart"),
        (saved(np.zeros(1, "c8")), "no counterpart"),
        (saved(np.zeros(1, "M8[s]")), "no counterpart"),
        (saved(np.zeros(1, [("a", "f4")])), "no counterpart"),
        (saved(np.zeros(1, np.longdouble)), "cannot be tensors"),
        (headed("'<f4'", "(4611686018427387904,)"), "more than any tensor"),
        (headed("'<f4'", "(-1,)"), "negative"),
        (headed("'<f4'", "(1.5,)"), "header"),
        (headed("'S0'", "(1099511627776,)", data=b""), "no counterpart"),
        (headed("'(2,2)u1'"), "no counterpart"),
        (headed("'?'", data=b"\2"), "a boolean that is"),
        (headed("'<U1'", data=b"\xff\xff\xff\x7f"), "beyond Unicode"),
        (headed("'<U1'", data=b"\0\xd8\0\0"), "cannot be tensors"),
        (headed("'<f4', __import__('os')"), "header"),
        (headed("(" * 3000), "header"),
        (headed("'<f4'", "(1,)" + " " * 10_000), "at most 10000"),
        (headed("'<f4'", "(True,)"), "no tuple of whole numbers"),
        (headed("'<f4'", "(1,)", "0"), "neither True nor False"),
        (b"\x93NUMPY\x01\0\x02\0{}", "no mapping"),
        (headed("'<f4'", "(1L,)"), None),
    ],
)
@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
def test_hostile_npy_is_refused(data, words):
    if words is None:
        assert decode_npy("x", data).shape == (1,)  # as Python 2 wrote it
        return
    with pytest.raises(ServeError, match=words) as refused:
        decode_npy("x", data)
    assert refused.value.code is Code.INVALID


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK", "damaged"),
        (zipped(("a.npy", saved(np.ones(3))))[:-30], "damaged"),
        (zipped(("a.npy", saved(np.ones(3)))).replace(b"\0\0\xf0\x3f", b"\0\0\xf0\x3e", 1), "damaged"),
        (zipped(("a.txt", b"x")), "no .npy member"),
        (zipped(("a.npy", saved(np.ones(3))), compression=zipfile.ZIP_BZIP2), "no .npy member"),
        (zipped(("a.npy", b"x")), "header"),
    ],
)
def test_hostile_npz_is_refused(data, words):
    with pytest.raises(ServeError, match=words) as refused:
        decode_npz(data, LIMIT)
    assert refused.value.code is Code.INVALID


def test_two_members_of_one_name_are_refused():
    data = zipped(("a.npy", saved(np.ones(1))), ("b.npy", saved(np.ones(1)))).replace(b"b.npy", b"a.npy")
    with pytest.raises(ServeError, match="two members"):
        decode_npz(data, LIMIT)


@pytest.mark.parametrize(
    "data",
    [
        zipped(("a.npy", saved(np.zeros(10**6))), compression=zipfile.ZIP_DEFLATED),
        zipped(*((f"{index}.npy", b"") for index in range(MAX_MEMBERS + 1))),
    ],
)
def test_bombs_are_not_unpacked(data):
    with pytest.raises(ServeError, match="at most 10000 bytes") as refused:
        decode_npz(data, LIMIT)
    assert refused.value.code is Code.TOO_LARGE


@settings(max_examples=examples(60))
@given(st.binary(max_size=60), st.integers(0, 200))
@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
def test_hostile_bytes_are_decoded_or_refused(noise, place):
    for whole in (saved(np.arange(3)), zipped(("a.npy", saved(np.arange(3))))):
        damaged = whole[:place] + noise + whole[place + len(noise) :]
        for decode in (lambda data: decode_npy("x", data), lambda data: decode_npz(data, LIMIT)):
            with suppress(ServeError):
                decode(damaged)


def texts(*items):
    return Tensor("x", DataType.BYTES, (len(items),), np.array([*items, None], object)[:-1])


@pytest.mark.parametrize(
    ("tensor", "code", "words"),
    [
        (Tensor("x", DataType.BF16, (1,), np.zeros(1, "<u2")), Code.UNSUPPORTED, "BF16"),
        (texts(b"a\0"), Code.UNSUPPORTED, "ends in a zero byte"),
        (texts(b"a" * 5000, b"", b""), Code.TOO_LARGE, "padded to 5000 bytes each"),
    ],
)
def test_what_npy_cannot_hold_is_refused(tensor, code, words):
    for encode in (encode_npy, lambda tensor, limit: encode_npz([tensor], limit)):
        with pytest.raises(ServeError, match=words) as refused:
            encode(tensor, LIMIT)
        assert refused.value.code is code


def test_a_name_with_a_zero_byte_is_refused():
    with pytest.raises(ServeError, match="zero byte"):
        encode_npz([Tensor("a\0b", DataType.FP32, (), np.float32(1).reshape(()))], LIMIT)


def test_a_long_header_that_is_none_is_refused_at_once():
    """numpy's own reading of headers that Python 2 wrote takes half a minute for it."""
    began = time.process_time()
    with pytest.raises(ServeError):
        decode_npy("x", headed("'<f4'" + " " * 9900, "(1,"))
    assert time.process_time() - began < 5


@pytest.mark.parametrize("kind", ["S3", "U3"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_many_texts_are_packed_as_they_are_read_and_written(kind, order):
    """A list of all of them would keep the interpreter from everybody else."""
    texts = np.array([str(number % 700) for number in range(2 * STRINGS_AT_ONCE)], kind).reshape(2, -1)
    texts = np.asarray(texts, order=order)
    tensor = decode_npy("x", saved(texts))
    assert type(tensor) is PackedTensor
    assert tensor.array.tolist() == [[text.encode() for text in row] for row in texts.astype("U3").tolist()]
    assert np.load(io.BytesIO(encode_npy(tensor, 2**20))).tolist() == tensor.array.tolist()


def test_a_few_long_texts_are_packed_too():
    tensor = decode_npy("x", saved(np.array([b"a" * 2**19] * 3)))
    assert type(tensor) is PackedTensor
    assert tensor.array.tolist() == [b"a" * 2**19] * 3
