"""Rows of numbers as comma-separated values: FP32 in, a line for each row out.

Source: spec sheet `djl`, sections 9.1 and 9.2. Long texts are gone through in slices, each of which is short work.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from trivium.codecs.binary import Buffer
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor

SLICE_LINES = 1024
SLICE_BYTES = 2**16
MOST_COLUMNS = 2**16
LONGEST_LINE = 2**21


def decode(data: Buffer, slice_bytes: int = SLICE_BYTES) -> tuple[Tensor, ...]:
    """Read lines of numbers as one FP32 tensor [lines, numbers], of no name; empty lines are passed over. INVALID for
    anything else, with the line. So many bytes are gone through at a time.
    """
    blocks: list[Array] = []
    width = other = first = 0
    for lines in _slices(data, slice_bytes):
        rows = list(_rows(lines, first))
        first += len(lines)
        if not rows:
            continue
        width = width or len(rows[0])
        other = other or next((len(row) for row in rows if len(row) != width), 0)
        if not other:
            blocks.append(np.array(rows, np.float32))
    if not width:
        raise _refused("it has no numbers")
    if other:
        raise _refused(f"its lines have {width} and {other} numbers")
    array = np.concatenate(blocks)
    return (Tensor("", DataType.FP32, array.shape, array),)


def encode(tensors: Sequence[Tensor]) -> Iterator[bytes]:
    """Yield the lines of tensors, one tensor behind the other: a line for each row of the last dimension. UNSUPPORTED
    for text.
    """
    for tensor in tensors:
        if tensor.datatype in (DataType.BYTES, DataType.BF16):
            raise ServeError(
                Code.UNSUPPORTED,
                f"Output '{tensor.name}' is {tensor.datatype.wire}, which no CSV holds. Ask for another form.",
            )
        width = tensor.shape[-1] if tensor.shape else 1
        array = tensor.array.reshape(-1, width) if width else tensor.array.reshape(0, 1)
        for first in range(0, len(array), SLICE_LINES):
            rows = array[first : first + SLICE_LINES].tolist()
            yield "".join(",".join(map(repr, row)) + "\n" for row in rows).encode()


def _slices(data: Buffer, size: int) -> Iterator[list[bytes]]:
    """Yield the lines, some at a time: all at once would take many times the memory of the text."""
    view, rest = memoryview(data), b""
    for at in range(0, len(view), size):
        *lines, rest = (rest + view[at : at + size]).split(b"\n")
        if max(map(len, (*lines, rest))) > LONGEST_LINE:
            raise _refused(f"a line has more than {LONGEST_LINE} bytes")
        yield lines
    yield [rest]


def _rows(lines: Sequence[bytes], first: int) -> Iterator[list[float]]:
    for number, line in enumerate(lines, first + 1):
        text = line.strip(b" \t\r")
        if not text:
            continue
        fields = text.split(b",", MOST_COLUMNS)
        if len(fields) > MOST_COLUMNS:
            raise _refused(f"line {number} has more than {MOST_COLUMNS} numbers")
        try:
            yield list(map(float, fields))
        except ValueError as error:
            shown = text[:80].decode("utf-8", "replace")
            raise _refused(f"line {number} is {shown!r}") from error


def _refused(found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The CSV cannot be read: {found}. Send lines of as many numbers each, with commas between.",
    )
