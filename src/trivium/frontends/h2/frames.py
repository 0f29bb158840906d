"""HTTP/2 frames as bytes: their kinds, flags and codes, and how each one that a server sends is built.

Source: RFC 9113, sections 4, 6 and 7. Pure; knows no stream's state and no connection. What a peer got wrong is
raised as `ConnectionFault`, after which nothing more is said, or as `StreamFault`, which ends one stream.
"""

from collections.abc import Iterable
from struct import Struct

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
HAS_PRIORITY = 0x20

(
    NO_ERROR,
    PROTOCOL_ERROR,
    INTERNAL_ERROR,
    FLOW_CONTROL_ERROR,
    SETTINGS_TIMEOUT,
    STREAM_CLOSED,
    FRAME_SIZE_ERROR,
    REFUSED_STREAM,
    CANCEL,
    COMPRESSION_ERROR,
    CONNECT_ERROR,
    ENHANCE_YOUR_CALM,
) = range(12)

(
    HEADER_TABLE_SIZE,
    ENABLE_PUSH,
    MAX_CONCURRENT_STREAMS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
) = range(1, 7)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9
LEAST_FRAME_SIZE, MOST_FRAME_SIZE = 2**14, 2**24 - 1
DEFAULT_WINDOW, MOST_WINDOW = 2**16 - 1, 2**31 - 1
MOST_STREAM = 2**31 - 1

HEAD = Struct(">HBBBL")
"""A frame's head: its length (upper 16 bits, lower 8), kind, flags and stream."""

_SETTING = Struct(">HL")
_NUMBER = Struct(">L")
_TWO_NUMBERS = Struct(">LL")


class ConnectionFault(Exception):
    """The peer broke the rules so that the connection cannot go on; `code` and `text` are for its GOAWAY."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class StreamFault(Exception):
    """The peer broke the rules on one stream; `code` is for its RST_STREAM."""

    def __init__(self, stream: int, code: int, text: str) -> None:
        super().__init__(text)
        self.stream = stream
        self.code = code


def head(length: int, kind: int, flags: int, stream: int) -> bytes:
    """The nine bytes before a payload of `length` bytes."""
    return HEAD.pack(length >> 8, length & 255, kind, flags, stream)


def settings(pairs: Iterable[tuple[int, int]]) -> bytes:
    """Write a SETTINGS frame, what we ask of the peer: numbers of settings and their values."""
    payload = b"".join(_SETTING.pack(number, value) for number, value in pairs)
    return head(len(payload), SETTINGS, 0, 0) + payload


SETTINGS_ACK = head(0, SETTINGS, ACK, 0)


def ping(opaque: bytes, is_ack: bool = False) -> bytes:
    """A question that the peer answers at once, or that answer. `opaque` has eight bytes."""
    return head(8, PING, ACK if is_ack else 0, 0) + opaque


def goaway(last_stream: int, code: int, text: str = "") -> bytes:
    """No stream above `last_stream` is or will be served."""
    said = text.encode()
    return head(8 + len(said), GOAWAY, 0, 0) + _TWO_NUMBERS.pack(last_stream, code) + said


def reset(stream: int, code: int) -> bytes:
    """The stream has ended, whatever was expected of it."""
    return head(4, RST_STREAM, 0, stream) + _NUMBER.pack(code)


def window_update(stream: int, increment: int) -> bytes:
    """So many more bytes of DATA may come, on the stream, or (0) on the connection."""
    return head(4, WINDOW_UPDATE, 0, stream) + _NUMBER.pack(increment)


def headers(stream: int, block: bytes, ends: bool) -> bytes:
    """A header block that fits into one frame."""
    return head(len(block), HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream) + block


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """The pairs in a SETTINGS frame. FRAME_SIZE_ERROR where they are not whole."""
    if len(payload) % _SETTING.size:
        raise ConnectionFault(
            FRAME_SIZE_ERROR, f"A SETTINGS frame has {len(payload)} bytes, no multiple of 6."
        )
    return list(_SETTING.iter_unpack(payload))


def read_number(kind: str, payload: bytes) -> int:
    """The one number of a RST_STREAM or WINDOW_UPDATE frame, without its reserved bit."""
    if len(payload) != _NUMBER.size:
        raise ConnectionFault(FRAME_SIZE_ERROR, f"A {kind} frame has {len(payload)} bytes; it takes 4.")
    (number,) = _NUMBER.unpack(payload)
    return int(number) & MOST_WINDOW if kind == "WINDOW_UPDATE" else int(number)
