"""Reads what the headers of a gRPC request say: which call, by when, how packed, or why it is none.

Source: "gRPC over HTTP2", requests and responses; RFC 9113, sections 8.1 to 8.3. Pure, and independent of how the
headers were compressed. A malformed head is told from one that can be answered.
"""

from collections.abc import Mapping, Sequence

import msgspec

from trivium.codecs.compression import CODINGS
from trivium.codecs.credentials import AUTHORIZATION, AUTHORIZATION_HEADER, TWICE

RESOURCE_EXHAUSTED, INTERNAL, UNIMPLEMENTED, UNAUTHENTICATED = 8, 13, 12, 16

_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_MOST_DIGITS = 8
_OF_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_PSEUDO = frozenset((b":method", b":scheme", b":path", b":authority"))
_OWN = frozenset((b"te", b"content-type", b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding"))
"""Headers that are not the application's."""


class RpcHead(msgspec.Struct, frozen=True, gc=False):
    """`timeout`: seconds that the client waits, None for ever. `coding`: of messages that say that they are packed;
    `accepts` the codings that the client takes. `malformed`: what makes it no HTTP/2 request. `http` other than 200
    refuses it by that status, `code` other than 0 by a gRPC status with `details`.
    """

    method: str = ""
    metadata: Mapping[str, str] = {}
    timeout: float | None = None
    coding: str = ""
    accepts: frozenset[str] = frozenset()
    malformed: str = ""
    http: int = 200
    code: int = 0
    details: str = ""


def read_head(headers: Sequence[tuple[bytes, bytes]]) -> RpcHead:
    """The head that these headers are; never raises."""
    fields: dict[bytes, bytes] = {}
    metadata: dict[str, str] = {}
    is_pseudo_over, keys = False, 0
    for name, value in headers:
        if name[:1] == b":":
            if is_pseudo_over or name not in _PSEUDO or name in fields:
                return RpcHead(
                    malformed=f"the pseudo-header {name[:40]!r} is unknown, repeated, or behind others"
                )
            fields[name] = value
            continue
        is_pseudo_over = True
        if wrong := _what_is_wrong(name, value):
            return RpcHead(malformed=wrong)
        if name in _OWN:
            fields[name] = value
        else:
            keys += name == AUTHORIZATION_HEADER
            _keep(metadata, name, value)
    if not {b":method", b":scheme", b":path"} <= fields.keys():
        return RpcHead(malformed="one of :method, :scheme and :path is not there")
    if keys > 1:
        path = fields[b":path"].decode("latin-1")
        return RpcHead(path, code=UNAUTHENTICATED, details=f"The metadata {AUTHORIZATION!r} {TWICE}")
    return _judged(fields, metadata)


def too_long(most: int) -> RpcHead:
    """Return the head of a call that has more headers than `most` bytes: nothing of them is known."""
    text = f"The metadata of this call exceed the limit of {most} bytes, 32 for each of them included. Send less."
    return RpcHead(code=RESOURCE_EXHAUSTED, details=text)


def _what_is_wrong(name: bytes, value: bytes) -> str:
    if name in _OF_CONNECTION or not name or name != name.lower():
        return f"the header {name[:40]!r} must not be in HTTP/2"
    if name == b"te" and value != b"trailers":
        return "the header 'te' says something else than 'trailers'"
    if b"\0" in value or b"\r" in value or b"\n" in value:
        return f"the header {name[:40]!r} holds a line end"
    return ""


def _keep(metadata: dict[str, str], name: bytes, value: bytes) -> None:
    """Text alone; several of one name are joined, as over HTTP."""
    if name.endswith(b"-bin"):
        return
    try:
        key, text = name.decode(), value.decode()
    except UnicodeDecodeError:
        return
    metadata[key] = f"{metadata[key]}, {text}" if key in metadata else text


def _judged(fields: Mapping[bytes, bytes], metadata: Mapping[str, str]) -> RpcHead:
    path = fields[b":path"].decode("latin-1")
    kind = fields.get(b"content-type", b"")
    if fields[b":method"] != b"POST":
        return RpcHead(path, http=405, code=INTERNAL, details="gRPC calls are POST requests.")
    if kind != b"application/grpc" and not kind.startswith((b"application/grpc+", b"application/grpc;")):
        text = f"The content type {kind[:80].decode('latin-1')!r} is not served here; gRPC's is application/grpc."
        return RpcHead(path, http=415, code=INTERNAL, details=text)
    coding = fields.get(b"grpc-encoding", b"identity").decode("latin-1")
    if coding not in ("identity", *CODINGS):
        text = f"Messages packed by {coding[:40]!r} are not served; send identity, {' or '.join(CODINGS)}."
        return RpcHead(path, code=UNIMPLEMENTED, details=text)
    accepts = fields.get(b"grpc-accept-encoding", b"").decode("latin-1").replace(" ", "").split(",")
    timeout = None
    if b"grpc-timeout" in fields:
        text = fields[b"grpc-timeout"].decode("latin-1")
        timeout = read_timeout(text)
        if timeout is None:
            details = (
                f"grpc-timeout is {text[:40]!r}; it takes up to 8 digits and a unit of {', '.join(_UNITS)}."
            )
            return RpcHead(path, code=INTERNAL, details=details)
    return RpcHead(path, metadata, timeout, coding, frozenset(accepts))


def read_timeout(text: str) -> float | None:
    """The seconds that a grpc-timeout says; None where it says nothing."""
    digits, unit = text[:-1], text[-1:]
    if (
        unit not in _UNITS
        or not 0 < len(digits) <= _MOST_DIGITS
        or not (digits.isascii() and digits.isdigit())
    ):
        return None
    return int(digits) * _UNITS[unit]
