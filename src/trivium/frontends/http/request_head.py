"""From what the parser saw of a request's head to a `Head`; refuses what RFC 9112 makes ambiguous.

Pure. What llhttp lets through and two readers could understand differently is refused here: a coding other
than `chunked` alone, chunks in HTTP/1.0, a repeated singleton field, a missing or repeated Host, a fragment.
What llhttp refuses by itself (two lengths, folded lines, bare LF, a space before the colon) is tested only.
"""

from trivium.frontends.refusals import HttpRefusal, malformed
from trivium.types.errors import Code
from trivium.types.wire import Head

_METHODS = {name.encode(): name for name in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")}
_METHODS[b"HEAD"] = "GET"  # RFC 9110 9.3.2: the same answer, its body unsent
_SINGLETONS = frozenset({b"host", b"content-length", b"content-type", b"authorization", b"expect"})


def join_repeated(headers: dict[bytes, bytes], name: bytes, value: bytes) -> None:
    """Take in a field that is there already: a list goes on (RFC 9110 5.3), a singleton is refused."""
    if name in _SINGLETONS:
        raise malformed(f"the header {name.decode('latin-1')} came twice; send it once.")
    headers[name] += b", " + value


def read_head(method: bytes, url: bytes, headers: dict[bytes, bytes], is_http11: bool) -> Head:
    """The head that protocols see; `headers` is not copied. Raises HttpRefusal, after which the rest of the
    connection cannot be understood.
    """
    size: int | None = 0
    if b"transfer-encoding" in headers:
        _check_coding(headers[b"transfer-encoding"], is_http11)
        headers.pop(b"content-length", None)  # RFC 9112 6.3: the chunks count
        size = None
    elif b"content-length" in headers:
        size = int(headers[b"content-length"])  # llhttp has seen digits only
    if is_http11 and b"host" not in headers:
        raise malformed("an HTTP/1.1 request needs a Host header (RFC 9112, section 3.2).")
    target = url.decode("latin-1")
    if target[0] != "/":
        target = _origin_form(target)
    if "#" in target:
        raise malformed("the request target holds a fragment (#...); send it without.")
    path, _, query = target.partition("?")
    return Head(_METHODS.get(method) or method.decode("latin-1"), path, query, headers, size)


def is_framed_twice(headers: dict[bytes, bytes]) -> bool:
    """Say whether a body has chunks and a length as well. The chunks count, and nothing may be read behind them:
    whoever stands in between may have counted otherwise (RFC 9112, section 6.3).
    """
    return b"transfer-encoding" in headers and b"content-length" in headers


def expects_continue(head: Head) -> bool:
    """Does an HTTP/1.1 client wait for a 100 before it sends its body? HttpRefusal for other expectations."""
    expectation = head.headers.get(b"expect")
    if expectation is None:
        return False
    if expectation.lower() != b"100-continue":
        found = expectation[:80].decode("latin-1")
        raise HttpRefusal(417, Code.UNSUPPORTED, f"Expect: {found} cannot be met; only 100-continue can.")
    return head.content_length != 0


def _check_coding(coding: bytes, is_http11: bool) -> None:
    if not is_http11:
        raise malformed("Transfer-Encoding came in HTTP/1.0, which has none (RFC 9112, section 6.1).")
    if coding.lower() != b"chunked":
        found = coding[:80].decode("latin-1")
        raise HttpRefusal(
            501, Code.UNSUPPORTED, f"Transfer-Encoding {found!r} is not served; send `chunked` or a length."
        )


def _origin_form(target: str) -> str:
    """RFC 9112 3.2.2: a server must understand `http://host/path` too."""
    scheme, found, rest = target.partition("://")
    if not found or scheme.lower() not in ("http", "https"):
        raise malformed(f"the request target {target[:80]!r} is not served; send a path such as /v2.")
    slash = rest.find("/")
    return rest[slash:] if slash >= 0 else "/"
