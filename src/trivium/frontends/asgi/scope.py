"""Reads the scope of an HTTP request to an ASGI 3 application, and writes the header lines of an answer as ASGI has
them. Pure. Source: the ASGI specification 3.0, "HTTP & WebSocket ASGI Message Format" 2.5.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from trivium.codecs.path_segments import decoded_whole
from trivium.frontends.http.head_limits import check_fields, long_target, many_fields
from trivium.frontends.http.request import join_repeated, read_head
from trivium.frontends.limits import HttpLimits
from trivium.frontends.refusals import malformed
from trivium.types.wire import Head

_SAFE = "/:@!$&'()*+,;=~-._"
"""Characters that a path may hold as they are (RFC 3986, section 3.3)."""


class AsgiRequest(msgspec.Struct, frozen=True, gc=False):
    """The beginning of a request as an ASGI server hands it over. `server` is the address that it came to, empty where
    there is none; `client` what a socket would call its peer.
    """

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    version: str
    server: str
    client: tuple[str, int] | None

    @property
    def lacks_size(self) -> bool:
        """Does its head leave open whether a body comes? Over HTTP/2 that need not be said."""
        if self.method in ("GET", "HEAD"):
            return False
        return not any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)


def request_of(scope: Mapping[str, Any]) -> AsgiRequest:
    """Return the request of a scope."""
    query = scope.get("query_string") or b""
    target = route_path(scope) + (b"?" + query if query else b"")
    server, client = scope.get("server"), scope.get("client")
    return AsgiRequest(
        scope["method"].upper(),
        target,
        tuple((bytes(name).lower(), bytes(value)) for name, value in scope["headers"]),
        scope.get("http_version", "1.1"),
        str(server[0]) if server and server[1] is not None else "",
        (str(client[0]), int(client[1] or 0)) if client else None,
    )


def route_path(scope: Mapping[str, Any]) -> bytes:
    """Return the path below the application, as its client has escaped it.

    `root_path` is where an application is mounted, or what a proxy has taken off. The path begins with it, but servers
    and frameworks of before 2024 leave it out. `raw_path` may be missing, or be that of before a path was rewritten.
    """
    path: str = scope["path"]
    root = str(scope.get("root_path") or "").rstrip("/")
    raw = bytes(scope.get("raw_path") or b"").partition(b"?")[0]
    is_below = path == root or path.startswith(root + "/")
    came = decoded_whole(raw)
    if raw and came in (path, root + path):
        below = _without(raw, root) if is_below or came != path else raw
    else:
        below = quote(path.removeprefix(root) if is_below else path, safe=_SAFE).encode()
    return below if below.startswith(b"/") else b"/" + below


def _without(raw: bytes, root: str) -> bytes:
    """Return an escaped path without the beginning that is `root` once it is read."""
    end = 0
    while root and end >= 0:
        end = raw.find(b"/", end + 1)
        before = raw if end < 0 else raw[:end]
        if decoded_whole(before) == root:
            return raw[len(before) :]
    return raw


def head_of(request: AsgiRequest, limits: HttpLimits, is_sized: bool) -> Head:
    """Return the head that protocols see. `is_sized` False: a body follows whose size is not known. ServeError for one
    that the front end would not read on its own sockets either.
    """
    headers: dict[bytes, bytes] = {}
    last: dict[bytes, bytes] = {}
    repeats = 0
    for name, value in request.headers:
        if name not in headers:
            headers[name] = value.strip()
            continue
        repeats += 1
        if repeats > limits.header_count:
            raise many_fields(limits)
        join_repeated(headers, name, value.strip())
        last[name] = value.strip()
    check_fields(headers, limits)
    if len(request.target) > limits.url_bytes:
        raise long_target(limits)
    length = headers.get(b"content-length")
    if length is not None and not length.isdigit():
        raise malformed("the header content-length is no number.")
    is_http11 = request.version == "1.1"
    if not is_http11 and request.version != "1.0":
        headers.pop(b"transfer-encoding", None)  # RFC 9113 8.2.2: frames say where a body ends
    names = tuple(name for name, _ in request.headers)
    head = read_head(request.method.encode("latin-1"), request.target, headers, is_http11, names, last)
    return head if is_sized else msgspec.structs.replace(head, content_length=None)


def header_lines(fields: bytes) -> list[tuple[bytes, bytes]]:
    """Return whole header lines, each with its CRLF, as the pairs that ASGI has."""
    pairs = []
    for line in fields.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon:
            pairs.append((name.strip().lower(), value.strip()))
    return pairs
