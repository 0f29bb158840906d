"""The payload table (design, section 6) as data: which bodies are read as tensors, and how tensors are written.

A row is a content type, the bytes that stand for one that was not said, the rule in words, and a codec. The page
in `docs/` is written from it. Which row holds for a request, `conversion` decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.codecs import csv_rows, json_documents, ndlist, npy, safetensors, signatures
from trivium.codecs.binary import Buffer
from trivium.codecs.binding import Wanted, numbered
from trivium.codecs.signatures import Signature
from trivium.types.payload import Tensor

LEAST_UNPACKED_BYTES = 64 * 2**20
MOST_UNPACKED_RATIO = 8
"""A compressed body may unpack to so many times its size, or to the bytes above, whichever is more."""

MOST_PADDED_BYTES = 256 * 2**20
"""npy pads every text to the longest one; beyond this the answer takes another form."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A row of the table, raw -> tensors: the content types (the first is the usual one), the first bytes that
    stand for one that was not said, what it reads and by which rule. `read` answers None where the body has the
    form and no tensors in it.
    """

    media_types: tuple[str, ...]
    begins: Signature
    beginning: str
    rule: str
    read: Callable[[Buffer, Wanted], tuple[Tensor, ...] | None]


@dataclass(frozen=True, slots=True)
class Writer:
    """A row of the table, tensors -> body: the content types that ask for it, and what it writes."""

    media_types: tuple[str, ...]
    rule: str
    write: Callable[[Sequence[Tensor]], tuple[Buffer, ...]]


def _unpacked(data: Buffer) -> int:
    return max(LEAST_UNPACKED_BYTES, MOST_UNPACKED_RATIO * len(data))


_BY_NAME = "by name, else by position"
JSON = Reader(
    (signatures.JSON,),
    signatures.is_json,
    "`{` or `[`",
    '`{"name": list}` for all inputs by name; one bare list, or `{"inputs": list}` or `{"instances": list}`, for '
    "the only required input; or v2 tensors under `inputs`. Lists take the datatype that the model declares; where it "
    "declares none, as a scripted PyTorch file, they are FP32, or INT64 where all numbers are whole, as PyTorch has it",
    json_documents.read,
)
NPZ = Reader(
    ("application/x-npz", "tensor/npz", "application/npz"),
    signatures.is_npz,
    "`PK`",
    f"the arrays {_BY_NAME}",
    lambda data, _: npy.decode_npz(bytes(data), _unpacked(data)),
)
READERS: tuple[Reader, ...] = (
    NPZ,
    Reader(
        ("application/x-npy", "tensor/npy", "application/npy"),
        signatures.is_npy,
        "`\\x93NUMPY`",
        "the array, for the only required input",
        lambda data, _: (npy.decode_npy("", bytes(data)),),
    ),
    Reader(
        ("tensor/ndlist", "application/x-ndlist", "application/ndlist"),
        signatures.is_ndlist,
        "`NDAR` at byte 6",
        f"the arrays {_BY_NAME}",
        lambda data, _: ndlist.decode(data, len(data)),
    ),
    Reader(
        ("application/safetensors", "tensor/safetensors", "application/x-safetensors"),
        signatures.is_safetensors,
        "`{` at byte 8",
        f"the tensors {_BY_NAME}",
        lambda data, _: safetensors.decode(data),
    ),
    JSON,
    Reader(
        (signatures.CSV, "application/csv"),
        lambda start: False,
        "",
        "lines of as many numbers each, as FP32[lines, numbers], for the only required input",
        lambda data, _: csv_rows.decode(data),
    ),
)
WRITERS: tuple[Writer, ...] = (
    Writer(
        (signatures.JSON,),
        '`{"outputs": [{"name", "datatype", "shape", "data"}]}`, as the v2 protocol has it; not FP16, BF16 and BYTES '
        "that are no text",
        lambda tensors: (json_documents.write(tensors),),
    ),
    Writer(
        ("tensor/npz", "application/x-npz", "application/npz"),
        "an uncompressed npz, members by name; not BF16",
        lambda tensors: (npy.encode_npz(numbered(tensors), MOST_PADDED_BYTES),),
    ),
    Writer(
        ("tensor/ndlist", "application/x-ndlist", "application/ndlist"),
        "an NDList with names; not BYTES that are no text",
        lambda tensors: tuple(ndlist.pieces(tensors)),
    ),
    Writer(
        ("tensor/safetensors", "application/safetensors", "application/x-safetensors"),
        "by name; not BYTES",
        lambda tensors: safetensors.encode(numbered(tensors)),
    ),
)
READER_OF = {name: reader for reader in READERS for name in reader.media_types}
WRITER_OF = {name: writer for writer in WRITERS for name in writer.media_types}


def by_signature(data: Buffer) -> Reader | None:
    """The row whose first bytes these are."""
    start = bytes(data[: signatures.LOOKED_AT])
    return next((reader for reader in READERS if reader.begins(start)), None)
