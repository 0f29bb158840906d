"""NDList, DJL's binary form of a list of tensors: big-endian framing, data in its own stated byte order.

Source: spec sheet `djl`, section 9.3. Read are versions 1 to 3 and both words for booleans; written is version 3,
which Java and Python read. What a list claims is held against what it has before anything is allocated.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from struct import Struct

import numpy as np

from trivium.codecs import binary
from trivium.codecs.binary import Buffer
from trivium.codecs.shapes import MAX_RANK, element_count
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import STRINGS_AT_ONCE, Tensor

MAGIC = b"NDAR"
LONGEST_TEXT = 2**16 - 1
LONGEST_DATA = 2**31 - 1

_INT = Struct(">i")
_LENGTH = Struct(">H")
_READS: Mapping[str, DataType] = {
    "FLOAT16": DataType.FP16,
    "FLOAT32": DataType.FP32,
    "FLOAT64": DataType.FP64,
    "BFLOAT16": DataType.BF16,
    "UINT8": DataType.UINT8,
    "UINT16": DataType.UINT16,
    "UINT32": DataType.UINT32,
    "UINT64": DataType.UINT64,
    "INT8": DataType.INT8,
    "INT16": DataType.INT16,
    "INT32": DataType.INT32,
    "INT64": DataType.INT64,
    "BOOL": DataType.BOOL,
    "BOOLEAN": DataType.BOOL,
    "STRING": DataType.BYTES,
}
_WRITES = {datatype: name for name, datatype in _READS.items()}  # BOOLEAN: Java refuses BOOL


def decode(data: Buffer, limit: int) -> tuple[Tensor, ...]:
    """The tensors of an NDList in its order, `""` the name of one without; views, but for text and for numbers in
    big-endian order, which are copied.

    TOO_LARGE for more than `limit` bytes, INVALID for anything but one whole NDList of datatypes that v2 has.
    """
    if len(data) > limit:
        raise ServeError(
            Code.TOO_LARGE,
            f"The NDList has {len(data)} bytes; at most {limit} are taken. Send it in parts, or raise the limit.",
        )
    reader = _Reader(data)
    count = reader.integer("the number of arrays")
    if count < 0:
        raise _refused(f"it claims {count} arrays")
    tensors = []
    for _ in range(count):  # each takes bytes: a list that claims too many ends early
        tensors.append(_array(reader))
    if reader.at != len(data):
        raise _refused(f"{len(data) - reader.at} bytes are left over behind its {count} arrays")
    return tuple(tensors)


def encode(tensors: Sequence[Tensor]) -> bytes:
    """The tensors as one NDList; UNSUPPORTED for what the form cannot hold, see `pieces`."""
    return b"".join(pieces(tensors))


def pieces(tensors: Sequence[Tensor]) -> Iterator[Buffer]:
    """An NDList as buffers to be written behind one another: of numbers, views of the tensors' arrays.

    UNSUPPORTED for BYTES that are no UTF-8 (the form knows text only), for a text of more than 65535 bytes, and
    for a tensor of 2 GiB and more.
    """
    yield _INT.pack(len(tensors))
    for tensor in tensors:
        head = [_text(tensor.name, MAGIC), _INT.pack(3)]
        head += [b"\1", _text(tensor.name, _modified(tensor.name))] if tensor.name else [b"\0"]
        head += [_text(tensor.name, b"DENSE"), _text(tensor.name, _WRITES[tensor.datatype].encode())]
        rank = len(tensor.shape)
        head += [_INT.pack(rank), Struct(f">{rank}q").pack(*tensor.shape), _INT.pack(rank), b"\0?" * rank]
        if tensor.datatype is DataType.BYTES:
            head.append(_INT.pack(prod(tensor.shape)))
            yield b"".join(head)
            for part in binary.string_lists(tensor):
                yield b"".join([_string(tensor.name, element) for element in part])
            continue
        blob = binary.encode(tensor)
        if len(blob) > LONGEST_DATA:
            raise _unwritable(tensor.name, f"it has {len(blob)} bytes, the form holds {LONGEST_DATA} at most")
        yield b"".join([*head, b"<", _INT.pack(len(blob))])
        yield blob


class _Reader:
    """Goes through the bytes once; every reading is checked against the end."""

    def __init__(self, data: Buffer) -> None:
        self.view = memoryview(data)
        self.at = 0

    def take(self, size: int, what: str) -> memoryview:
        start, end = self.at, self.at + size
        if size < 0 or end > len(self.view):
            raise _refused(f"{what} takes {size} bytes, and {len(self.view) - start} are left")
        self.at = end
        return self.view[start:end]

    def integer(self, what: str) -> int:
        value: int = _INT.unpack(self.take(_INT.size, what))[0]
        return value

    def raw_text(self, what: str) -> bytes:
        length: int = _LENGTH.unpack(self.take(_LENGTH.size, what))[0]
        return self.take(length, what).tobytes()

    def text(self, what: str) -> str:
        return _from_modified(self.raw_text(what), what)


def _array(reader: _Reader) -> Tensor:
    if reader.raw_text("the magic word of an array") != MAGIC:
        raise _refused("an array does not begin with NDAR")
    version = reader.integer("a version")
    if not 1 <= version <= 3:
        raise _refused(f"an array is of version {version}; versions 1 to 3 are read")
    name = ""
    if version > 1 and reader.take(1, "the mark of a name")[0] == 1:
        name = reader.text("a name")
    reader.raw_text("a sparse format")  # `DENSE` or `default`: nothing follows from it
    datatype = _datatype(name, reader.text("a datatype"))
    rank = reader.integer("a number of dimensions")
    if not 0 <= rank <= MAX_RANK:
        raise _refused(f"tensor {name!r} claims {rank} dimensions; at most {MAX_RANK} can be served")
    shape: tuple[int, ...] = Struct(f">{rank}q").unpack(reader.take(8 * rank, "a shape"))
    letters = reader.integer("the length of a layout")
    reader.take(2 * letters if letters >= 0 else letters, "a layout")
    if datatype is DataType.BYTES:
        return _strings(reader, name, shape)
    order = bytes(reader.take(1, "a byte order")) if version == 3 else b"<"
    if order not in (b"<", b">"):
        raise _refused(f"the byte order of tensor {name!r} is {order!r}; expected is '<' or '>'")
    size = reader.integer("the length of data")
    start = reader.at
    reader.take(size, f"the data of tensor {name!r}")
    if order == b">" and datatype.itemsize > 1:
        return _swapped(name, datatype, shape, reader.view[start : reader.at])
    return binary.decode(name, datatype, shape, reader.view, start, size)


def _datatype(name: str, word: str) -> DataType:
    datatype = _READS.get(word)
    if datatype is not None:
        return datatype
    if word == "COMPLEX64":
        raise _refused(
            f"tensor {name!r} is of COMPLEX64, which no datatype of v2 holds; send both parts as FLOAT32"
        )
    raise _refused(f"tensor {name!r} is of the unknown datatype {word[:40]!r}; known are {', '.join(_READS)}")


def _strings(reader: _Reader, name: str, shape: tuple[int, ...]) -> Tensor:
    count = reader.integer("the number of strings")
    if count != element_count(name, shape):
        raise _refused(f"tensor {name!r} of shape {list(shape)} comes with {count} strings")
    if 2 * count > len(reader.view) - reader.at:
        raise _refused(
            f"tensor {name!r} claims {count} strings, for which the bytes that are left are too few"
        )
    return binary.of_strings(name, shape, _texts(reader, name, count))


def _texts(reader: _Reader, name: str, count: int) -> Iterator[list[bytes]]:
    """Yield so many strings, some thousands at a time."""
    what, view, length = f"a string of tensor {name!r}", reader.view, _LENGTH.unpack_from
    size = len(view)
    for begin in range(0, count, STRINGS_AT_ONCE):
        found: list[bytes] = []
        for _ in range(min(STRINGS_AT_ONCE, count - begin)):
            start = reader.at + _LENGTH.size
            end = start + length(view, reader.at)[0] if start <= size else start
            if end > size:
                reader.raw_text(what)  # which says what is missing
            raw = view[start:end].tobytes()
            reader.at = end
            found.append(raw if raw.isascii() else _from_modified(raw, what).encode())
        yield found


def _swapped(name: str, datatype: DataType, shape: tuple[int, ...], raw: memoryview) -> Tensor:
    words = np.frombuffer(raw[: len(raw) - len(raw) % datatype.itemsize], datatype.dtype.newbyteorder(">"))
    tail = raw[len(raw) - len(raw) % datatype.itemsize :]
    if tail:
        return binary.decode(name, datatype, shape, raw)  # which says that the size is wrong
    array: Array = words.astype(datatype.dtype)
    return binary.decode(name, datatype, shape, array.data.cast("B") if array.size else b"")


def _from_modified(raw: bytes, what: str) -> str:
    """Java's own UTF-8: zero in two bytes, beyond 16 bits as two surrogates; plain UTF-8 is read, too."""
    try:
        if raw.isascii():
            return raw.decode()
        text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise _refused(f"{what} is not UTF-8 ({error.reason})") from error


def _modified(text: str) -> bytes:
    if text.isascii() and "\0" not in text:
        return text.encode()
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2").tolist()
    return "".join(map(chr, units)).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


def _string(name: str, element: bytes) -> bytes:
    try:
        return _text(name, _modified(element.decode()))
    except UnicodeDecodeError as error:
        raise _unwritable(
            name, f"an element is not UTF-8 ({error.reason}), and STRING holds text only"
        ) from error


def _text(name: str, raw: bytes) -> bytes:
    if len(raw) > LONGEST_TEXT:
        raise _unwritable(name, f"a text of {len(raw)} bytes does not fit; {LONGEST_TEXT} do")
    return _LENGTH.pack(len(raw)) + raw


def _refused(found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The body is not an NDList that can be served: {found}. Write it with DJL's NDList.encode or to_nd_list.",
    )


def _unwritable(name: str, found: str) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED, f"Tensor {name[:80]!r} cannot be written as NDList: {found}. Ask for another form."
    )
