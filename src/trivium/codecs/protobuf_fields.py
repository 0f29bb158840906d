"""Finds the fields of a protobuf message without reading it, and refuses a message whose reading would take too long.

Source: the encoding of protocol buffers: a message is its fields one behind another. A message is read in one call, in
which nobody else has a turn, and takes many times its size in memory where its fields are many; so they are bounded.
"""

from collections.abc import Collection, Iterator

from google.protobuf.message import DecodeError

from trivium.types.errors import Code, ServeError
from trivium.types.payload import MOST_BESIDE_DATA

VARINT, SIXTY_FOUR, LENGTH, THIRTY_TWO = 0, 1, 2, 5
"""Kinds of a field's payload."""

MOST_FIELDS = 2**16
"""Fields of a message, each entry of a list and of a map counted."""

_SMALL = 2**17
"""Bytes that are read at once, whatever they are."""


def judge_fields(message: bytes | memoryview, data: Collection[int], what: str) -> None:
    """Raise TOO_LARGE for a message with too many fields, or with too much in fields other than those of the numbers in
    `data`. `what`: the subject of the error's sentence. One that cannot be read passes: its parser says why.
    """
    if len(message) <= _SMALL:
        return
    beside = 0
    try:
        for count, (head, _, end, number, _) in enumerate(fields(memoryview(message)), 1):
            if number not in data:
                beside += end - head
            if count > MOST_FIELDS:
                raise ServeError(
                    Code.TOO_LARGE,
                    f"{what} has more than {MOST_FIELDS} fields and entries, which are not read. Send fewer.",
                )
    except (IndexError, DecodeError):
        return
    if beside > MOST_BESIDE_DATA:
        raise ServeError(
            Code.TOO_LARGE,
            f"{what} has {beside} bytes beside its data; at most {MOST_BESIDE_DATA} are read. Send shorter names and "
            "parameters.",
        )


def fields(view: memoryview) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield of each field where its head, its payload and the next field begin, its number and its kind. Raises
    DecodeError for what is no message, IndexError where it is cut short.
    """
    at, size = 0, len(view)
    while at < size:
        head = at
        tag, at = (view[at], at + 1) if view[at] < 0x80 else _read(view, at)
        kind, start = tag & 7, at
        if kind == LENGTH:
            length, start = (view[at], at + 1) if view[at] < 0x80 else _read(view, at)
            at = start + length
        elif kind == VARINT:
            while view[at] & 0x80:
                at += 1
            at += 1
        elif kind in (SIXTY_FOUR, THIRTY_TWO):
            at += 8 if kind == SIXTY_FOUR else 4
        else:
            raise DecodeError("the message has a group, which no version of it has")
        if at > size:
            raise DecodeError("the message is cut short")
        yield head, start, at, tag >> 3, kind


def _read(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise DecodeError("the message has a number of more than ten bytes")
