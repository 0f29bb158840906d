"""Bodies that are files of tensors: NDList, npy, npz, safetensors; and the table that chooses among them."""

import io
import json
import random
import zipfile
from collections.abc import Sequence

import numpy as np
from tests.fuzz import mutations
from tests.fuzz.target import Change, Target
from tests.harness.payload_bodies import MODELS, as_ndlist, as_npy, as_npz, as_safetensors

from trivium.codecs import binary, csv_rows, ndlist, npy, safetensors
from trivium.codecs.conversion import negotiated, to_tensors
from trivium.codecs.payload_table import READER_OF
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw, RawPart, Tensor

TWO = np.array([[1, 2]], "<f4")
TEXTS = np.array([[b"a", "ä".encode()]], dtype=object)
ARRAYS: tuple[dict[str, np.ndarray], ...] = (
    {"x": TWO},
    {"x": TWO, "y": np.array([[3]], "<i8")},
    {"x": np.zeros((0, 3), "u1"), "flag": np.array([True, False])},
    {"": np.array(1.5, "<f8")},
    {"arr_0": np.arange(6, dtype="<u2").reshape(1, 2, 3)},
)
PLAIN = (*ARRAYS, {"text": TEXTS})
MOST = 2**20


def check(tensors: Sequence[Tensor]) -> None:
    """What was read is what it says, and can be written."""
    for tensor in tensors:
        assert tensor.array.shape == tensor.shape
        binary.encode(tensor)


# -- NDList ------------------------------------------------------------------------------------------------

ND_TOKENS = (
    b"NDAR", b"\0\4NDAR", b"\0\5DENSE", b"\0\7FLOAT32", b"\0\6STRING", b"\0\7BOOLEAN", b"\0\5INT64",
    b"\0\x09COMPLEX64",
    b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\3", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b">", b"<", b"\xc0\x80",
    b"\xed\xa0\x80",
)  # fmt: skip


def read_ndlist(data: bytes, chance: random.Random) -> None:
    found = ndlist.decode(data, MOST)
    check(found)
    ndlist.encode(found)


# -- CSV ---------------------------------------------------------------------------------------------------

CSV = (b"1,2\n3,4\n", b"1.5e3\r\n\r\n-2\r\n", b"nan,inf\n0,-0", b"7", b"1,2,3\n" * 20)
CSV_TOKENS = (
    b"\n",
    b"\r\n",
    b",",
    b",,",
    b" ",
    b"\t",
    b"1e999",
    b"-nan",
    b"0x1",
    b"1_0",
    b"\xff",
    b"\0",
    b'"',
    b"#",
)


def read_csv(data: bytes, chance: random.Random) -> None:
    """Whatever it is gone through by, it says the same."""
    said = []
    for size in (chance.choice((5, 64, 512)), csv_rows.SLICE_BYTES):
        try:
            tensors = csv_rows.decode(data, size)
            check(tensors)
            said.append((tensors[0].shape, tensors[0].array.tobytes()))
        except ServeError as error:
            said.append(error.message)
    assert said[0] == said[1]
    if isinstance(said[0], str):
        raise ServeError(Code.INVALID, said[0])


# -- npy and npz -------------------------------------------------------------------------------------------

NPY_TOKENS = (
    b"'descr'", b"'fortran_order'", b"'shape'", b"True", b"False", b"'<f4'", b"'|O'", b"'<U3'", b"'|S2'", b"'<c8'",
    b"'|V4'",
    b"'<M8[s]'", b"'|b1'", b"(2,)", b"()", b"(-1,)", b"(9999999999,)", b"(0, 4611686018427387904)", b"[('a', '<f4')]",
    b"'<f16'", b"'=U1'", b"1L", b"{", b"}", b"__import__('os')", b"1if 1else 2", b"'\\d'", b"\x93NUMPY",
)  # fmt: skip
NPY = tuple(
    as_npy(array)
    for array in (TWO, np.array(1.5), np.array([True]), np.zeros((2, 0), "i2"), np.asfortranarray(np.eye(3)))
)


def in_npy(header: bytes, data: bytes, version: int = 1) -> bytes:
    """An npy file with this header, whatever it is."""
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def rebuilt_npy(entry: bytes, change: Change, chance: random.Random) -> bytes:
    size = int.from_bytes(entry[8:10], "little")
    header, data = entry[10 : 10 + size], entry[10 + size :]
    version = chance.choice((1, 1, 2))
    return in_npy(change(header.rstrip())[: 2**16 - 1], data, version)


def read_npy(data: bytes, chance: random.Random) -> None:
    check((npy.decode_npy("x", data),))


def rebuilt_npz(entry: bytes, change: Change, chance: random.Random) -> bytes:
    buffer = io.BytesIO()
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(io.BytesIO(entry)) as old, zipfile.ZipFile(buffer, "w", method) as new:
        for member in old.infolist():
            data = old.read(member)
            data = rebuilt_npy(data, change, chance) if chance.random() < 0.5 else change(data)
            name = (
                member.filename if chance.random() < 0.8 else chance.choice(("x", "x.npy", "\n.npy", ".npy"))
            )
            new.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def read_npz(data: bytes, chance: random.Random) -> None:
    check(npy.decode_npz(data, MOST))


ZIP_TOKENS = (
    b"PK\3\4",
    b"PK\1\2",
    b"PK\5\6",
    b"PK\6\6",
    b"PK\6\7",
    b".npy",
    b"\1\0\x1c\0",
    b"\x75\x70",
    *NPY_TOKENS,
)

# -- safetensors -------------------------------------------------------------------------------------------

SAFE_TOKENS = (
    b'"dtype"', b'"shape"', b'"data_offsets"', b'"F32"', b'"BOOL"', b'"BF16"', b'"F8_E5M2"', b"[0,0]", b"[0,4]",
    b"[4,0]",
    b'"__metadata__"', *mutations.JSON_VALUES,
)  # fmt: skip


def rebuilt_safetensors(entry: bytes, change: Change, chance: random.Random) -> bytes:
    size = int.from_bytes(entry[:8], "little")
    header, data = entry[8 : 8 + size], entry[8 + size :]
    header = change(header) if chance.random() < 0.3 else mutations.json_changed(header, chance)
    return len(header).to_bytes(8, "little") + header + data


def read_safetensors(data: bytes, chance: random.Random) -> None:
    found = safetensors.decode(data)
    check(found)
    safetensors.encode(found)


# -- the payload table -------------------------------------------------------------------------------------

KINDS = ("", "application/octet-stream", "text/plain", "application/json; charset=x", *READER_OF)


def read_payload(data: bytes, chance: random.Random) -> None:
    """A whole body as a model's inputs, and those as a body again."""
    inputs, has_rows = chance.choice(MODELS), chance.random() < 0.5
    raw = Raw((RawPart(data, chance.choice(KINDS)),))
    found = to_tensors(raw, inputs, has_rows, "m")
    check(found.items)
    if found.items:
        negotiated(found, chance.choice(KINDS), chance.choice(KINDS), "application/json")


BODIES = (
    *(as_ndlist(**arrays) for arrays in PLAIN),
    *(as_npz(**arrays) for arrays in PLAIN),
    *(as_safetensors(**arrays) for arrays in ARRAYS),
    *(
        json.dumps(document).encode()
        for document in ({"x": [[1, 2]]}, [[1, 2]], {"inputs": [[1, 2]]}, "text")
    ),
    *NPY,
)

TARGETS = (
    Target("ndlist", tuple(as_ndlist(**arrays) for arrays in PLAIN), read_ndlist, tokens=ND_TOKENS),
    Target("csv", CSV, read_csv, tokens=CSV_TOKENS),
    Target("npy", NPY, read_npy, tokens=NPY_TOKENS, rebuild=rebuilt_npy),
    Target(
        "npz", tuple(as_npz(**arrays) for arrays in PLAIN), read_npz, tokens=ZIP_TOKENS, rebuild=rebuilt_npz
    ),
    Target(
        "safetensors",
        tuple(as_safetensors(**arrays) for arrays in ARRAYS),
        read_safetensors,
        tokens=SAFE_TOKENS,
        rebuild=rebuilt_safetensors,
    ),
    Target("payloads", BODIES, read_payload, tokens=(*ND_TOKENS, *SAFE_TOKENS, b"x", b"y")),
)
