"""The header blocks and messages of gRPC responses, as bytes that are the same at each call.

Source: "gRPC over HTTP2", responses; RFC 7541, section 6.2.2: literals without indexing, so that no compression
state has to be kept. Each block says that the table is empty, whatever size the client wants (section 6.3). Pure.
"""

from struct import Struct

from trivium.codecs.compression import CODINGS
from trivium.frontends.h2.frames import DATA, END_HEADERS, END_STREAM, HEADERS

PREFIX = Struct(">BL")
"""Before each message: whether it is packed, and its length."""

_MOST_DETAILS = 8000
"""Bytes of a status's text as it travels; a client's limit for all trailers is 8 KiB or more."""

_NO_TABLE = b"\x20"
_UNESCAPED = frozenset(range(0x20, 0x7F)) - {0x25}
_ESCAPES = tuple(bytes([byte]) if byte in _UNESCAPED else b"%%%02X" % byte for byte in range(256))


def _integer(value: int, bits: int) -> bytes:
    """RFC 7541 5.1, with zeros in the bits before it."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    out = bytearray([most])
    value -= most
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(name: bytes, value: bytes) -> bytes:
    """A header as a literal that the peer does not remember."""
    return b"\0" + _integer(len(name), 7) + name + _integer(len(value), 7) + value


def _begun(http: int) -> bytes:
    status = b"\x88" if http == 200 else b"\x08\x03%d" % http
    return _NO_TABLE + status + b"\x0f\x10" + _integer(16, 7) + b"application/grpc"


def escaped(details: str) -> bytes:
    """Write it as grpc-message carries it; cut off behind a whole character where it is too long to arrive."""
    text = details.encode("utf-8", "backslashreplace")
    if len(text) > _MOST_DETAILS // 3:  # it may be too long
        size = 0
        for end, character in enumerate(details):
            size += sum(len(_ESCAPES[byte]) for byte in character.encode("utf-8", "backslashreplace"))
            if size > _MOST_DETAILS:
                text = details[:end].encode("utf-8", "backslashreplace")
                break
    return b"".join([_ESCAPES[byte] for byte in text])


def trailers(code: int, details: str) -> bytes:
    """The block that ends a call."""
    return _NO_TABLE + _status(code, details)


def _status(code: int, details: str) -> bytes:
    message = field(b"grpc-message", escaped(details)) if details else b""
    return field(b"grpc-status", b"%d" % code) + message


def refusal(code: int, details: str, http: int = 200) -> bytes:
    """The block of a call that has no response but its status."""
    accepts = field(b"grpc-accept-encoding", b"identity, " + ", ".join(CODINGS).encode())
    return _begun(http) + accepts + _status(code, details)


def opening(coding: str) -> bytes:
    """The block before the messages; `coding`: how they may be packed, empty for not."""
    return _begun(200) + (field(b"grpc-encoding", coding.encode()) if coding else b"")


OPENING = opening("")
OK = trailers(0, "")

_ANSWER = Struct(f">HBBBL{len(OPENING)}sHBBBLBL")
_END = Struct(f">HBBBL{len(OK)}s")


def before_answer(stream: int, size: int) -> bytes:
    """All that comes before the one message of an answer, of `size` bytes and not packed, in one DATA frame."""
    length = size + PREFIX.size
    return _ANSWER.pack(
        len(OPENING) >> 8,
        len(OPENING) & 255,
        HEADERS,
        END_HEADERS,
        stream,
        OPENING,
        length >> 8,
        length & 255,
        DATA,
        0,
        stream,
        0,
        size,
    )


def behind_answer(stream: int) -> bytes:
    """All that comes behind it."""
    return _END.pack(len(OK) >> 8, len(OK) & 255, HEADERS, END_HEADERS | END_STREAM, stream, OK)
