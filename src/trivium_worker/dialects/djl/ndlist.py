"""NDList, DJL's binary form of a list of tensors, without numpy: framing only, the data as bytes.

Big-endian framing, data in its own stated byte order (DJL's NDSerializer, versions 1 to 3; written is 3).
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from trivium_worker.wire.values import Buffer, Tensor

_INT = struct.Struct(">i")
_LENGTH = struct.Struct(">H")
_MAGIC = b"NDAR"

WORDS = {
    "BOOL": "BOOLEAN",
    "FP16": "FLOAT16",
    "FP32": "FLOAT32",
    "FP64": "FLOAT64",
    "BF16": "BFLOAT16",
    "BYTES": "STRING",
}
"""v2 datatype -> DJL's word, where they differ."""


class Framed(NamedTuple):
    """One array as it lies in a list: `word` is DJL's datatype, `data` of a STRING its elements joined."""

    name: str
    word: str
    shape: tuple[int, ...]
    order: str  # "<" or ">"
    data: Buffer
    texts: list[str]


def write(tensors: Sequence[Tensor]) -> bytearray:
    """The tensors as one NDList. ValueError for BYTES that are no text, and for what is too long for the form."""
    made = bytearray(_INT.pack(len(tensors)))
    for tensor in tensors:
        rank = len(tensor.shape)
        made += _text(_MAGIC) + _INT.pack(3)
        made += b"\1" + _text(_modified(tensor.name)) if tensor.name else b"\0"
        made += _text(b"default") + _text(WORDS.get(tensor.datatype, tensor.datatype).encode())
        made += _INT.pack(rank) + struct.pack(f">{rank}q", *tensor.shape) + _INT.pack(rank) + b"\0?" * rank
        if tensor.datatype == "BYTES":
            elements = tensor.elements()
            made += _INT.pack(len(elements))
            for element in elements:
                made += _text(_modified(element.decode("utf-8")))
            continue
        if len(tensor.data) > 0x7FFFFFFF:
            raise ValueError(f"tensor {tensor.name!r} has {len(tensor.data)} bytes, too many for an NDList")
        made += b"<" + _INT.pack(len(tensor.data))
        made += tensor.data
    return made


def read(data: Buffer) -> list[Framed]:
    """The arrays of an NDList; their data are views. ValueError for anything that is none."""
    reader = _Reader(memoryview(data))
    arrays = [_framed(reader) for _ in range(reader.count("arrays", 30))]
    if reader.at != len(reader.view):
        raise ValueError(f"an NDList is followed by {len(reader.view) - reader.at} bytes")
    return arrays


class _Reader:
    """Goes through the bytes once; every reading is checked against the end."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.at = 0

    def take(self, size: int) -> memoryview:
        start, end = self.at, self.at + size
        if size < 0 or end > len(self.view):
            raise ValueError(f"not an NDList: {size} bytes wanted, {len(self.view) - start} left")
        self.at = end
        return self.view[start:end]

    def integer(self) -> int:
        value: int = _INT.unpack(self.take(4))[0]
        return value

    def count(self, what: str, least: int) -> int:
        """Read a number of things that take at least so many bytes each."""
        number = self.integer()
        if number < 0 or number * least > len(self.view) - self.at:
            raise ValueError(f"not an NDList: it claims {number} {what}")
        return number

    def text(self) -> str:
        raw = self.take(_LENGTH.unpack(self.take(2))[0]).tobytes()
        text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _framed(reader: _Reader) -> Framed:
    if reader.text() != "NDAR":
        raise ValueError("not an NDList: an array does not begin with NDAR")
    version = reader.integer()
    if not 1 <= version <= 3:
        raise ValueError(f"an NDList of version {version} cannot be read")
    name = ""
    if version > 1 and reader.take(1)[0] == 1:
        name = reader.text()
    reader.text()  # the sparse format
    word = reader.text()
    rank = reader.count("dimensions", 8)
    shape: tuple[int, ...] = struct.unpack(f">{rank}q", reader.take(8 * rank))
    reader.take(2 * reader.count("letters of a layout", 2))
    if word == "STRING":
        return Framed(name, word, shape, "<", b"", [reader.text() for _ in range(reader.count("strings", 2))])
    order = reader.take(1).tobytes().decode("latin-1") if version == 3 else "<"
    if order not in ("<", ">"):
        raise ValueError(f"an NDList with the byte order {order!r}")
    return Framed(name, word, shape, order, reader.take(reader.integer()), [])


def _modified(text: str) -> bytes:
    """Java's own UTF-8: zero in two bytes, beyond 16 bits as two surrogates."""
    units = text.encode("utf-16-le", "surrogatepass")
    letters = "".join(map(chr, struct.unpack(f"<{len(units) // 2}H", units)))
    return letters.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


def _text(raw: bytes) -> bytes:
    if len(raw) > 0xFFFF:
        raise ValueError(f"a text of {len(raw)} bytes is too long for an NDList")
    return _LENGTH.pack(len(raw)) + raw
