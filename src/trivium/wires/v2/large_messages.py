"""Reads large ModelInferRequests piece by piece, since one call for all of it would keep the whole process waiting.

Source: the encoding of protocol buffers: a message is its fields one behind another, so what comes in pieces may be
merged; of a field with many numbers each piece becomes a field of its own. Knows where the large parts of a request can
be: in the contents of its inputs, and in its raw contents.
"""

from collections.abc import Collection, Iterator
from typing import Any, cast

from google.protobuf.message import DecodeError

from trivium.codecs.protobuf_fields import LENGTH, fields, judge_fields
from trivium.codecs.shapes import judge_rank
from trivium.wires.v2.service_messages import (
    DATA_FIELDS,
    InferRequestMessage,
    InputTensor,
    TensorContents,
    new_infer_request,
    no_message,
)

PIECE_BYTES = 2**18
"""Bytes that one call reads; a multiple of 8."""
_INPUTS, _RAW_CONTENTS, _CONTENTS, _STRINGS = 5, 7, 5, 8
_SHAPE = 3
_SPLIT, _SPLIT_INPUT, _VALUES = (_INPUTS,), (_SHAPE, _CONTENTS), range(1, _STRINGS + 1)
_GOES_ON = bytes(range(0x80, 0x100))
"""Bytes that end no number."""

_FIXED = (6, 7)
"""Fields of contents whose numbers take 8 bytes or 4; those of the others take any number."""

_MOST_FIELDS = 256
_MOST_HEAD = 4096


def weight(message: bytes) -> int:
    """Return how many bytes of a request are other than raw contents, which cost only their copy. All count where an
    input is of BYTES, or where there are very many fields.
    """
    view = memoryview(message)
    rest = size = len(message)
    try:
        for count, (_, start, end, number, _) in enumerate(fields(view)):
            if count > _MOST_FIELDS:
                return size
            if number == _RAW_CONTENTS:
                rest -= end - start
            elif number == _INPUTS and b"BYTES" in bytes(view[start : min(end, start + _MOST_HEAD)]):
                return size
    except (IndexError, DecodeError):
        return size
    return rest


def parse_large(message: bytes) -> InferRequestMessage:
    """The request in this message. Raises INVALID where it is none, and for a shape with far too many dims; TOO_LARGE
    for far too many of anything but values.
    """
    judge_fields(message, DATA_FIELDS["ModelInferRequest"], "The request")
    request = new_infer_request()
    try:
        _merge_request(request, memoryview(message))
    except DecodeError as error:
        raise no_message("ModelInferRequest", len(message), error) from error
    return request


def _merge_request(request: InferRequestMessage, view: memoryview) -> None:
    for start, end, number in _pieces(view, _SPLIT):
        if number == _INPUTS:
            entry = cast(Any, request.inputs).add()
            _merge_input(entry, view[start:end])
        else:
            request.MergeFromString(bytes(view[start:end]))


def _merge_input(entry: InputTensor, view: memoryview) -> None:
    judge_fields(view, _SPLIT_INPUT, "An input of the request")
    for start, end, number in _pieces(view, _SPLIT_INPUT):
        if number == _CONTENTS:
            _merge_contents(entry.contents, view[start:end])
        elif number == _SHAPE:  # far too many dims, which need not be read
            judge_rank(entry.name, len(bytes(view[start:end]).translate(None, _GOES_ON)))
        else:
            entry.MergeFromString(bytes(view[start:end]))


def _merge_contents(contents: TensorContents, view: memoryview) -> None:
    for start, end, number in _pieces(view, _VALUES):
        if 0 < number < _STRINGS:
            for piece in _numbers(view[start:end], number in _FIXED):
                contents.MergeFromString(bytes((number << 3 | LENGTH,)) + _varint(len(piece)) + piece)
        elif number == _STRINGS:  # one long element
            contents.MergeFromString(bytes((number << 3 | LENGTH,)) + _varint(end - start) + view[start:end])
        else:
            contents.MergeFromString(bytes(view[start:end]))


def _pieces(view: memoryview, large: Collection[int]) -> Iterator[tuple[int, int, int]]:
    """Yield where small fields begin and end, many together, as of number 0; and of each large one whose number is in
    `large` where its payload does, with it. DecodeError for what is no message.
    """
    begin = 0
    try:
        for head, start, end, number, kind in fields(view):
            if kind == LENGTH and end - start > PIECE_BYTES and number in large:
                if begin < head:
                    yield begin, head, 0
                yield start, end, number
                begin = end
            elif end - begin > PIECE_BYTES:
                yield begin, end, 0
                begin = end
    except IndexError as error:
        raise DecodeError("the message is cut short") from error
    if begin < len(view):
        yield begin, len(view), 0


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _numbers(view: memoryview, are_fixed: bool) -> Iterator[bytes]:
    """Yield many numbers some at a time."""
    at, size = 0, len(view)
    while at < size:
        end = min(at + PIECE_BYTES, size)
        while not are_fixed and end < size and view[end - 1] & 0x80:
            end += 1
        yield bytes(view[at:end])
        at = end
