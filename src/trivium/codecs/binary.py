"""Binary tensors of the v2 protocol: raw little-endian, row-major bytes without padding, viewed and never copied.

Source: the binary tensor data extension of the Open Inference Protocol v2 (spec sheet `triton`, section
4.6). An array may lie at any address of its buffer: who needs aligned memory looks at `array.flags.aligned`.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import structs

from trivium.codecs import elements
from trivium.codecs.shapes import element_count
from trivium.types import reasons
from trivium.types.datatype import Array, DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.payload import NOT_MADE, STRINGS_AT_ONCE, PackedTensor, Tensor, Tensors, packed_strings

Buffer = bytes | memoryview

LONG_STRINGS = 2**20
"""Bytes of elements of BYTES, few as they may be, that are rather left where they are than copied."""


def decode(
    name: str,
    datatype: DataType,
    shape: tuple[int, ...],
    buffer: Buffer,
    offset: int = 0,
    size: int | None = None,
) -> Tensor:
    """Read the tensor in `buffer[offset:offset + size]`, which must lie inside the buffer; a view but for BYTES, many
    or long ones packed. Without a size it is the rest of the buffer.

    INVALID where the shape is impossible, `size` is not what shape and datatype make, or a byte of a BOOL
    tensor is neither 0 nor 1 (numpy and the engines compute nonsense with those).
    """
    count = element_count(name, shape)
    if size is None:
        size = len(buffer) - offset
    if not datatype.itemsize and _is_much(count, size):
        elements.check(name, memoryview(buffer)[offset : offset + size], count)
        return PackedTensor(name, datatype, shape, NOT_MADE, buffer, offset, size)
    if not datatype.itemsize:
        items = elements.decode(name, memoryview(buffer)[offset : offset + size], count)
        return Tensor(name, datatype, shape, elements.object_array(items, shape))
    if count * datatype.itemsize != size:
        raise ServeError(
            Code.INVALID,
            f"Tensor {name!r} of datatype {datatype.wire} and shape {list(shape)} takes "
            f"{count * datatype.itemsize} bytes, but {size} were sent. Correct the shape or the data.",
            info=ErrorInfo.of(reasons.BYTE_SIZE, input=name, expected=count * datatype.itemsize, found=size),
        )
    array: Array = np.ndarray(shape, datatype.dtype, buffer, offset)
    if datatype is DataType.BOOL and size and array.view(np.uint8).max() > 1:
        raise ServeError(
            Code.INVALID,
            f"BOOL tensor {name!r} has a byte that is neither 0 nor 1. Send one byte per element, 0 or 1.",
        )
    return Tensor(name, datatype, shape, array)


def decode_trusted(name: str, datatype: DataType, shape: tuple[int, ...], buffer: Buffer) -> Tensor:
    """`decode` of what one of our own programs has written: many elements of BYTES are not walked through to see that
    they are whole.
    """
    count = element_count(name, shape)
    if datatype.itemsize or not _is_much(count, len(buffer)):
        return decode(name, datatype, shape, buffer)
    elements.check(name, memoryview(buffer), count, only_size=True)
    return PackedTensor(name, datatype, shape, NOT_MADE, buffer, 0, len(buffer))


def _is_much(count: int, size: int) -> bool:
    return count > STRINGS_AT_ONCE or size > LONG_STRINGS


def pack_strings(tensors: Tensors) -> Tensors:
    """Pack those tensors of BYTES that have many or long elements: whoever writes them then need not look at each."""
    if not any(_has_much_text(tensor) for tensor in tensors.items):
        return tensors
    return structs.replace(tensors, items=tuple(map(_packed, tensors.items)))


def _has_much_text(tensor: Tensor) -> bool:
    if tensor.datatype is not DataType.BYTES or type(tensor) is PackedTensor:
        return False
    array = tensor.array
    return array.size > STRINGS_AT_ONCE or sum(map(len, array.ravel().tolist())) > LONG_STRINGS


def _packed(tensor: Tensor) -> Tensor:
    if not _has_much_text(tensor):
        return tensor
    blob = b"".join([elements.encode(tensor.name, part) for part in string_lists(tensor)])
    return PackedTensor(tensor.name, tensor.datatype, tensor.shape, NOT_MADE, blob, 0, len(blob))


def of_strings(name: str, shape: tuple[int, ...], parts: Iterable[list[bytes]]) -> Tensor:
    """Make a tensor of BYTES from its elements, some thousands at a time; many or long ones are packed as they come."""
    blobs: list[bytes] = []
    first: list[bytes] = []
    count = 0
    for part in parts:
        first = first or part
        count += len(part)
        blobs.append(elements.encode(name, part))
    if not _is_much(count, sum(map(len, blobs))) and len(first) == count:
        return Tensor(name, DataType.BYTES, shape, elements.object_array(first, shape))
    blob = b"".join(blobs)
    return PackedTensor(name, DataType.BYTES, shape, NOT_MADE, blob, 0, len(blob))


def string_lists(tensor: Tensor) -> Iterator[list[bytes]]:
    """Yield the elements of a BYTES tensor, some thousands at a time."""
    if type(tensor) is PackedTensor:
        yield from packed_strings(tensor)
        return
    flat = tensor.array.reshape(-1)
    for begin in range(0, flat.size, STRINGS_AT_ONCE):
        yield flat[begin : begin + STRINGS_AT_ONCE].tolist()


def encode(tensor: Tensor) -> Buffer:
    """The tensor's bytes: a view of its array where that is contiguous, else a copy."""
    if type(tensor) is PackedTensor:
        return tensor.packed()
    array = tensor.array
    if not tensor.datatype.itemsize:
        return elements.encode(tensor.name, array.ravel().tolist())
    try:
        return array.data.cast("B")
    except TypeError:  # a view cannot be cast that has strides, or a dim of zero
        if not array.size:
            return b""
        return np.ascontiguousarray(array).data.cast("B")
