"""What a protobuf message may hold, judged before it is read."""

import pytest

from trivium.codecs.protobuf_fields import MOST_FIELDS, judge_fields
from trivium.types.errors import Code, ServeError
from trivium.types.payload import MOST_BESIDE_DATA

ENTRY = b"\x0a\x02ab"  # field 1


def long(number: int, size: int) -> bytes:
    """One field of so many bytes, at most 2^28."""
    length = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21))
    return bytes((number << 3 | 2,)) + length + bytes(size)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        ENTRY * MOST_FIELDS,
        long(5, MOST_BESIDE_DATA * 2),
        long(1, MOST_BESIDE_DATA - 9),
        long(5, MOST_BESIDE_DATA * 2)[:-1],
        b"\x0b" * 2**20,
        b"\xff" * 2**20,
    ],
    ids=["empty", "many", "data", "names", "cut short", "groups", "no number"],
)
def test_what_is_read_and_what_its_parser_refuses_pass(message: bytes) -> None:
    judge_fields(message, (5,), "It")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (ENTRY * (MOST_FIELDS + 1), f"It has more than {MOST_FIELDS} fields"),
        (long(5, 0) * 2**20, f"It has more than {MOST_FIELDS} fields"),
        (long(1, MOST_BESIDE_DATA), f"bytes beside its data; at most {MOST_BESIDE_DATA}"),
        (long(1, MOST_BESIDE_DATA // 2) * 2 + long(5, 9), "bytes beside its data"),
    ],
    ids=["many", "much data in many", "one long", "two long"],
)
def test_what_takes_long_to_read_is_refused(message: bytes, text: str) -> None:
    with pytest.raises(ServeError, match=text) as caught:
        judge_fields(message, (5,), "It")
    assert caught.value.code is Code.TOO_LARGE
