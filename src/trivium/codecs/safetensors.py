"""safetensors: the length of a JSON header, the header, then the bytes of all tensors, viewed and never copied.

Source: the format's description (huggingface/safetensors, `README.md`, "Format") and sheet `djl`, section 9.4.
As the format demands, the tensors use up the data exactly: no gap, no overlap, nothing behind them.
"""

from collections.abc import Sequence
from struct import Struct

import msgspec

from trivium.codecs import binary
from trivium.codecs.binary import Buffer
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor

MAX_HEADER_BYTES = 2**20
"""The original allows 100 MB; a megabyte describes some ten thousand tensors."""

DATATYPES: dict[str, DataType] = {
    "BOOL": DataType.BOOL,
    "U8": DataType.UINT8,
    "U16": DataType.UINT16,
    "U32": DataType.UINT32,
    "U64": DataType.UINT64,
    "I8": DataType.INT8,
    "I16": DataType.INT16,
    "I32": DataType.INT32,
    "I64": DataType.INT64,
    "F16": DataType.FP16,
    "F32": DataType.FP32,
    "F64": DataType.FP64,
    "BF16": DataType.BF16,
}
_NAMES = {datatype: name for name, datatype in DATATYPES.items()}
_LENGTH = Struct("<Q")
_METADATA = "__metadata__"  # free text about the file: not a tensor
_ALIGNMENT = 8


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


_HEADER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)


def decode(data: bytes | memoryview) -> tuple[Tensor, ...]:
    """The tensors in the order of the header, which view `data`. They take no more memory than it does.

    INVALID for a header that is none or longer than `MAX_HEADER_BYTES`, a dtype that v2 lacks, a shape that does
    not make the bytes given for it, and for bytes that belong to no tensor or to two.
    """
    header, start = _header(data)
    tensors: list[Tensor] = []
    spans: list[tuple[int, int]] = []
    for name, entry in header.items():
        datatype = DATATYPES.get(entry.dtype)
        if datatype is None:
            raise _refused(
                f"tensor {name!r} has the dtype {entry.dtype!r}, expected one of {', '.join(DATATYPES)}"
            )
        begin, end = entry.data_offsets
        if not 0 <= begin <= end <= len(data) - start:
            raise _refused(
                f"tensor {name!r} has the data_offsets {[begin, end]}, expected a span in the "
                f"{len(data) - start} bytes behind the header"
            )
        spans.append((begin, end))
        tensors.append(binary.decode(name, datatype, entry.shape, data, start + begin, end - begin))
    _judge_spans(spans, len(data) - start)
    return tuple(tensors)


def encode(tensors: Sequence[Tensor]) -> tuple[Buffer, ...]:
    """The header, then the bytes of each tensor, as views. UNSUPPORTED for BYTES and for names that the header
    cannot hold: two alike, or the one kept for metadata.
    """
    header: dict[str, _Entry] = {}
    buffers: list[Buffer] = []
    at = 0
    for tensor in tensors:
        dtype = _NAMES.get(tensor.datatype)
        if dtype is None:
            raise _unwritable(tensor.name, f"it is {tensor.datatype.wire}, for which the format has no dtype")
        if tensor.name in header or tensor.name == _METADATA:
            raise _unwritable(tensor.name, "its name is taken")
        buffer = binary.encode(tensor)
        header[tensor.name] = _Entry(dtype, tensor.shape, (at, at + len(buffer)))
        buffers.append(buffer)
        at += len(buffer)
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % _ALIGNMENT)  # so that the data of the tensors is aligned
    return (_LENGTH.pack(len(text)) + text, *buffers)


def _header(data: bytes | memoryview) -> tuple[dict[str, _Entry], int]:
    """Return what the header says of each tensor, and where the data begins."""
    if len(data) < _LENGTH.size:
        raise _refused(f"its {len(data)} bytes are too few for the length of a header")
    (length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + length
    if length > MAX_HEADER_BYTES or end > len(data):
        raise _refused(
            f"its header is said to have {length} bytes, expected at most {MAX_HEADER_BYTES} and what is there"
        )
    try:
        header = _HEADER.decode(data[_LENGTH.size : end])
        header.pop(_METADATA, None)
        return {name: _ENTRY.decode(entry) for name, entry in header.items()}, end
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _refused(f"its header is not the JSON of one ({error})") from error


def _judge_spans(spans: list[tuple[int, int]], size: int) -> None:
    at = 0
    for begin, end in sorted(spans):
        if begin != at:
            raise _refused(
                f"the tensors {'overlap' if begin < at else 'leave a gap'} at byte {begin} of the data"
            )
        at = end
    if at != size:
        raise _refused(f"{size - at} bytes are left over behind its tensors")


def _refused(found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The body is no safetensors that can be served: {found}. Write it with safetensors.numpy.save.",
    )


def _unwritable(name: str, found: str) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED, f"Tensor {name!r} cannot be written as safetensors: {found}. Ask for another form."
    )
