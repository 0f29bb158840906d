"""Reads what a request shows to be let in, or to use what is restricted, over HTTP and gRPC alike. Pure.

A front end refuses a request in which `AUTHORIZATION` comes twice, and joins whatever else does: of two that are shown,
somebody in between may have looked at the other.
"""

from trivium.types.wire import Head, RpcCall

AUTHORIZATION = "authorization"
"""The header, and the metadata, in which a key comes."""

AUTHORIZATION_HEADER = AUTHORIZATION.encode()
TWICE = "came twice; send it once."
"""What is said of one that may not."""


SESSION_COOKIE = "trivium_console"
"""The cookie in which a browser shows what it got for a key."""

CONSOLE_HEADER = b"trivium-console"
"""The header of what our own page asks for: a page of another server cannot send it without being allowed to."""

_COOKIE = b"cookie"
_READS = ("/api/v1/", "/openapi.json")


def session_token(head: Head) -> str:
    """Return the token that a browser shows; empty where that is none, or it may have been made to show it. It counts
    with the page's own header, or where something is only read that the page shows: an event stream has no header.
    """
    is_read = head.method == "GET" and head.path.startswith(_READS)
    if _COOKIE not in head.headers or not (is_read or CONSOLE_HEADER in head.headers):
        return ""
    return cookie_of(head)


def cookie_of(head: Head) -> str:
    """Return the value of the session's cookie; empty without one, and where there are several."""
    found = [value for name, value in _cookies(head.headers.get(_COOKIE, b"")) if name == SESSION_COOKIE]
    return found[0] if len(found) == 1 else ""


def without_session(headers: dict[bytes, bytes]) -> bytes:
    """Take the session's cookie out of the headers, which are changed; returns all cookies, if it was among them."""
    text = headers.get(_COOKIE, b"")
    if SESSION_COOKIE.encode() not in text:
        return b""
    rest = "; ".join(f"{name}={value}" for name, value in _cookies(text) if name != SESSION_COOKIE)
    if rest:
        headers[_COOKIE] = rest.encode("latin-1")
    else:
        del headers[_COOKIE]
    return text


def _cookies(field: bytes) -> list[tuple[str, str]]:
    """Return names and values; fields that came twice are joined by commas, which no value of ours has."""
    pairs = (each.partition("=") for each in field.decode("latin-1").replace(",", ";").split(";"))
    return [(name.strip(), value.strip()) for name, _, value in pairs if name.strip()]


def credential(request: Head | RpcCall, name: str = AUTHORIZATION) -> str:
    """Return what a request shows under a name in lower case; empty where that is nothing."""
    if isinstance(request, Head):
        return request.headers.get(name.encode(), b"").decode("latin-1")
    return request.metadata.get(name, "")
