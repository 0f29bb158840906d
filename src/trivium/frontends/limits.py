"""Limits on what a client of the HTTP front end may cost: bytes held, connections, seconds waited for.

Values only; who exceeds them, and what it is answered, is decided where the bytes are counted.
"""

import re
from dataclasses import dataclass
from math import inf

from trivium.codecs.header_text import has_controls
from trivium.config.listener_options import HttpConfig
from trivium.config.options import ServerConfig
from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken

_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
_HEADERS = "*, Authorization"
"""A star stands for all header fields but this one (the Fetch standard, 3.3.4)."""
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")

SMALL_BODY = 64 * 1024
"""Up to here a body passes through the connections' shared buffer; a declared larger one gets a lease."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of one HTTP front end. Sizes are bytes, times are seconds; time-outs are kept to half a second.

    `total_body_bytes` bounds the large bodies (above SMALL_BODY, or in chunks) held by all connections
    together, from their heads until their answers are sent. A request's head must be whole within
    `header_seconds` of its first byte. A body has `body_seconds` plus its bytes so far / `slowest_rate`
    (bytes per second), counted from its head. An unread answer is given up when less than `slowest_rate`
    has left in `write_seconds`; one in parts also when `unsent_bytes` of it wait, and it breaks off when no part has
    come for `part_seconds`. `half_close_seconds`: in which the answer to a client that has closed its sending side has
    to begin. `linger_seconds`: how long what a refused client still sends is read and thrown away, so that it gets to
    read why.

    `access_log` is the path of a file to append a JSON line per request to, "-" for the standard output; with
    `logs_alike` in the form of the server's own log. With
    `record_timestamps` requests say how they came, so that they can be traced. `fields` are header lines of every
    answer, each with its CRLF; `origin` are the pages that may read them, whose preflights are answered. With
    `says_keep_alive` an answer says that the connection stays open, to HTTP/1.1, too.
    """

    connections: int = 4096
    url_bytes: int = 8 * 1024
    header_bytes: int = 32 * 1024
    header_count: int = 100
    body_bytes: int = 64 * 1024 * 1024
    total_body_bytes: int = 1024 * 1024 * 1024
    unsent_bytes: int = 8 * 1024 * 1024
    idle_seconds: float = 75.0
    header_seconds: float = 10.0
    body_seconds: float = 20.0
    write_seconds: float = 30.0
    part_seconds: float = inf
    half_close_seconds: float = 2.0
    linger_seconds: float = 2.0
    slowest_rate: int = 16 * 1024
    access_log: str | None = None
    logs_alike: bool = False
    record_timestamps: bool = False
    fields: bytes = b""
    origin: str = ""
    says_keep_alive: bool = False


def http_limits(config: ServerConfig) -> HttpLimits:
    """The limits that the configuration sets."""
    return HttpLimits(
        connections=config.server.max_connections,
        header_bytes=config.http.max_header_bytes,
        body_bytes=config.server.max_body_bytes,
        total_body_bytes=config.server.max_buffered_bytes,
        idle_seconds=config.http.idle_timeout,
        header_seconds=config.http.header_timeout,
        body_seconds=config.http.body_timeout,
        write_seconds=config.http.write_timeout,
        part_seconds=config.http.part_timeout or inf,
        half_close_seconds=config.http.half_close_wait or inf,
        slowest_rate=config.http.slowest_rate,
        access_log=config.server.access_log or None,
        logs_alike=config.server.log_format == "json",
        record_timestamps=config.tracing.has_place,
        fields=_shared(config.http),
        origin=config.http.cors_allowed_origin or _origin(config.http.cors),
    )


def _shared(http: HttpConfig) -> bytes:
    """Return the header lines by which pages of other servers may read answers (the Fetch standard, 3.3). INVALID for
    a text that is no header's value.
    """
    allowed = {
        "Origin": http.cors_allowed_origin or _origin(http.cors),
        "Methods": http.cors_allowed_methods or (_METHODS if http.cors else ""),
        "Headers": http.cors_allowed_headers or (_HEADERS if http.cors else ""),
    }
    lines = []
    for what, text in allowed.items():
        if has_controls(text) or not text.isascii():
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--cors-allowed-{what.lower()} {text!r} cannot be the value of a header. Write printable ASCII."
                ),
            )
        if text:
            lines.append(f"Access-Control-Allow-{what}: {text}\r\n".encode())
    if http.cors:
        lines.append(b"Access-Control-Expose-Headers: *\r\n")
    return b"".join(lines)


def _origin(text: str) -> str:
    """Return the origin of pages as browsers write it. INVALID for what is none: nothing would ever be equal to it."""
    origin = text.strip().removesuffix("/")
    if origin and origin != "*" and not _ORIGIN.fullmatch(origin):
        raise ServeError(
            Code.INVALID,
            spoken(
                f"--cors {text[:80]!r} is no origin of pages. Give one, as browsers send it, like https://app.example "
                "or http://localhost:3000; * lets the pages of all servers in."
            ),
        )
    return origin.lower()
