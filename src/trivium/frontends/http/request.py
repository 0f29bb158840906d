"""One request as it is received: the rules for its head, room for its body, and what becomes of both.

Refuses what RFC 9112 makes ambiguous. What llhttp lets through and two readers could understand differently is refused
here: a coding other than `chunked` alone, chunks in HTTP/1.0, a repeated singleton field, a missing or repeated Host, a
fragment. What llhttp refuses by itself (two lengths, folded lines, bare LF, a space before the colon) is tested only.
A body is one bytes object, or received in place in a lease. Small declared bodies are not counted: they are bounded by
the number of connections. What is booked for any other stays booked until the core has dropped it, too.
"""

import logging
from collections.abc import Sequence

from msgspec import Struct

from trivium.codecs.credentials import AUTHORIZATION_HEADER, CONSOLE_HEADER, TWICE, without_session
from trivium.frontends.held import Booking, nothing
from trivium.frontends.http.preflight import is_preflight
from trivium.frontends.http.state import HttpState
from trivium.frontends.limits import SMALL_BODY
from trivium.frontends.refusals import malformed
from trivium.frontends.shares import AddressUse
from trivium.types import reasons
from trivium.types.access import AccessScope
from trivium.types.buffers import Lease
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.interfaces import ALLOW_ALL, WireProtocol
from trivium.types.wire import Body, Head, Target

_log = logging.getLogger(__name__)
_NO_TARGET = Target("")
_ANY, _MANAGE = (
    AccessScope.ANY,
    AccessScope.MANAGE,
)  # looking a member up in its class takes ten times as long (Python 3.11)
_METHODS = {name.encode(): name for name in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")}
_METHODS[b"HEAD"] = "GET"  # RFC 9110 9.3.2: the same answer, its body unsent
_SINGLETONS = frozenset({b"host", b"content-length", b"content-type", AUTHORIZATION_HEADER, b"expect"})


def join_repeated(headers: dict[bytes, bytes], name: bytes, value: bytes) -> None:
    """Take in a field that is there already: a list goes on (RFC 9110 5.3), a singleton is refused."""
    if name in _SINGLETONS:
        raise malformed(f"the header {name.decode('latin-1')} {TWICE}")
    headers[name] += b", " + value


def read_head(
    method: bytes,
    url: bytes,
    headers: dict[bytes, bytes],
    is_http11: bool,
    names: Sequence[bytes] = (),
    last: dict[bytes, bytes] | None = None,
) -> Head:
    """The head that protocols see; `headers` and `last` are not copied, and `names` are as they were spelt. Raises
    ServeError, after which the rest of the connection cannot be understood.
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
    method_name = _METHODS.get(method) or method.decode("latin-1")
    return Head(method_name, path, query, headers, size, tuple(names), last or {})


def is_framed_twice(headers: dict[bytes, bytes]) -> bool:
    """Say whether a body has chunks and a length as well. The chunks count, and nothing may be read behind them:
    whoever stands in between may have counted otherwise (RFC 9112, section 6.3).
    """
    return b"transfer-encoding" in headers and b"content-length" in headers


def expects_continue(head: Head) -> bool:
    """Does an HTTP/1.1 client wait for a 100 before it sends its body? UNSUPPORTED for other expectations."""
    expectation = head.headers.get(b"expect")
    if expectation is None:
        return False
    if expectation.lower() != b"100-continue":
        found = expectation[:80].decode("latin-1")
        raise ServeError(
            Code.UNSUPPORTED, f"Expect: {found} cannot be met; only 100-continue can.", status=417
        )
    return head.content_length != 0


def _check_coding(coding: bytes, is_http11: bool) -> None:
    if not is_http11:
        raise malformed("Transfer-Encoding came in HTTP/1.0, which has none (RFC 9112, section 6.1).")
    if coding.lower() != b"chunked":
        found = coding[:80].decode("latin-1")
        raise ServeError(
            Code.UNSUPPORTED,
            f"Transfer-Encoding {found!r} is not served; send `chunked` or a length.",
            status=501,
        )


def _origin_form(target: str) -> str:
    """RFC 9112 3.2.2: a server must understand `http://host/path` too."""
    scheme, found, rest = target.partition("://")
    if not found or scheme.lower() not in ("http", "https"):
        raise malformed(f"the request target {target[:80]!r} is not served; send a path such as /v2.")
    slash = rest.find("/")
    return rest[slash:] if slash >= 0 else "/"


STEP = 2**20
"""Bytes of a large body for which room is booked at a time: the first when something has come, others before they come.
"""

SPARE = 1
"""Bytes behind a large body that may be received with it: whoever asks for more than there is need not ask again to
know that there is no more.
"""


class RequestBody(Struct, eq=False):
    """The body of a request whose target takes one, made by `take_in`. `size` is what the head declares, None for
    chunks. Owns the lease and the reserved bytes until `release`.
    """

    _site: HttpState
    _use: AddressUse
    _target: Target
    _size: int | None
    _reserved: int = 0
    lease: Lease | None = None
    _came: int = 0  # bytes in the lease before the window that is open
    _collected: bytes | bytearray = b""

    def add(self, piece: bytes) -> None:
        """Take a piece in. Raises ServeError as above when chunks have grown too far."""
        if self._size is None:
            self._grow(len(piece))
        if not self._collected:
            self._collected = piece  # mostly the only one
        elif isinstance(self._collected, bytearray):
            self._collected += piece
        else:
            self._collected = bytearray(self._collected) + piece

    def _grow(self, more: int) -> None:
        limit = self._site.limits.body_bytes
        if self._reserved + more > limit:
            raise _too_large(f"is more than {limit} bytes", limit)
        self._site.reserve(more, self._use)
        self._reserved += more

    @property
    def came(self) -> int:
        """Bytes collected so far."""
        return len(self._collected)

    def borrow(self) -> memoryview | None:
        """Return where the next bytes of a large body belong; None for one that is not worth a lease. What has come has
        been moved there. Raises the ServeError of `lend`.
        """
        size = self._size
        if size is None or size <= SMALL_BODY:
            return None
        size += SPARE
        target = self._target
        model = target.model if target.is_served else ""
        self.lease = lease = self._site.core.lend(model, target.version, size, target.lead)
        assert len(lease.view) >= size, "a lease is shorter than was asked for"
        came = len(self._collected)
        if came:
            lease.view[:came] = self._collected
            self._collected = b""
            self._came = came
            self.book()
        return self._window(lease)

    @property
    def is_booked(self) -> bool:
        """Is there room for the bytes of the present window?"""
        return self._reserved > 0

    def book(self) -> None:
        """Bytes have come: book room for the first step of a large body. ServeError where there is none."""
        assert self._size is not None
        more = min(STEP, self._size)
        self._site.reserve(more, self._use)
        self._reserved = more

    def next_window(self, left: int) -> memoryview | None:
        """Return where the bytes behind the present window belong, which has `left` bytes free; None if it is the
        last one, which ends `SPARE` bytes behind the body. ServeError where there is no room for them.
        """
        lease, size = self.lease, self._size
        assert lease is not None
        assert size is not None
        if not self._reserved:
            self.book()
        reserved = self._reserved
        if reserved >= size:
            return None
        self._came = reserved - left
        more = min(STEP, size - reserved)
        self._site.reserve(more, self._use)
        self._reserved = reserved + more
        return self._window(lease)

    def _window(self, lease: Lease) -> memoryview:
        """Return the memory from what has come to what is booked."""
        size, came, reserved = self._size, self._came, self._reserved or STEP
        assert size is not None
        end = size + SPARE if reserved >= size else reserved
        view = lease.view
        return view if not came and len(view) == end else view[came:end]

    def body(self) -> Body:
        """All of it."""
        if self.lease is not None:
            return Body(self.lease.view[: self._size], self.lease)
        collected = self._collected
        return Body(collected if isinstance(collected, bytes) else memoryview(collected))

    def kept(self) -> Lease:
        """Return the lease of the whole body, which owns from now on what is booked for it."""
        reserved, self._reserved = self._reserved, 0
        booking = Booking(self._site, self._use, reserved)
        if self.lease is None:
            self.lease = Lease(memoryview(self._collected), nothing)
        self.lease.enter(booking)
        return self.lease

    @property
    def is_counted(self) -> bool:
        """Is anything booked for it?"""
        return self._reserved > 0

    def release(self) -> None:
        """It is needed no more. Further calls have no effect."""
        lease, self.lease = self.lease, None
        reserved, self._reserved = self._reserved, 0
        self._site.unreserve(reserved, self._use)
        if lease is not None:
            lease.release()


def take_in(site: HttpState, use: AddressUse, target: Target, size: int | None) -> RequestBody:
    """Raises ServeError: 413 beyond the limit for one body."""
    limit = site.limits.body_bytes
    if size is not None and size > limit:
        raise _too_large(f"is {size} bytes", limit)
    return RequestBody(site, use, target, size)


def _too_large(found: str, limit: int) -> ServeError:
    text = f"the body {found}; the limit here is {limit} bytes. Send less."
    return ServeError(Code.TOO_LARGE, text, info=ErrorInfo.of(reasons.BODY_SIZE, most=limit), status=413)


class Request(Struct, eq=False):
    """A request as it is received: its head first, then its body. A `refusal` replaces decoding; `keeps_alive` False
    closes the connection behind the answer. A `Struct`, since that is made in a fifth of the time.
    """

    _site: HttpState
    _use: AddressUse
    head: Head
    began: float
    protocol: WireProtocol
    target: Target = _NO_TARGET
    is_head: bool = False
    """Asked by HEAD: the body of the answer stays here."""
    body: bytes = b""
    """Of a request without an intake."""
    is_complete: bool = False
    refusal: ServeError | None = None
    intake: RequestBody | None = None
    is_http11: bool = True
    keeps_alive: bool = True
    expects_continue: bool = False
    is_opened: bool = False
    """The connection has made room for the rest of the body."""
    _shown: Head | None = None
    """The head with the key alone, where there was one."""

    @property
    def method(self) -> str:
        """Return the method that its client has named; a protocol is asked for GET in place of HEAD."""
        return "HEAD" if self.is_head else self.head.method

    def admit(self) -> None:
        """Route the head and see whether its client may ask this and its body is wanted. A refusal is kept, and the
        body (if it is small and surely comes) is read and thrown away; ServeError where it is not worth reading.
        """
        head, site = self.head, self._site
        try:
            self.target = target = self._find_target()
            if site.authorizer is not ALLOW_ALL and self.protocol is not site.preflights:
                site.authorizer.authorize(target.scope, head)
                self._hide_key()
            if target.scope is _MANAGE and site.pages is not None:
                site.pages.check(head)
            if head.content_length != 0 or b"expect" in head.headers:
                self._admit_body(head.content_length)
        except ServeError as error:
            self.refusal = frameless(error)
        except Exception:
            self.refusal = self.own_fault("authorize or head")
        if self.refusal is not None and (
            self.refusal.code is Code.TOO_LARGE or not self._is_small_and_comes()
        ):
            raise anew(self.refusal)

    def _find_target(self) -> Target:
        """Return what the head is about. Only who has a key hears what there is not."""
        site, head = self._site, self.head
        if site.preflights is not None and is_preflight(head):
            self.protocol = site.preflights
            return site.preflights.head(head)
        try:
            self.protocol = protocol = site.protocol_of(head.path)
            return protocol.head(head)
        except ServeError:
            if site.authorizer is not ALLOW_ALL:
                site.authorizer.authorize(_ANY, head)
            raise

    def _hide_key(self) -> None:
        """Take the key off the head: who runs a model has no business with keys."""
        head = self.head
        if (key := head.headers.pop(AUTHORIZATION_HEADER, None)) is not None:
            self._shown = Head(head.method, head.path, "", {AUTHORIZATION_HEADER: key})
        if b"cookie" in head.headers and (cookies := without_session(head.headers)) and key is None:
            shown = {b"cookie": cookies}
            if (mark := head.headers.get(CONSOLE_HEADER)) is not None:
                shown[CONSOLE_HEADER] = mark
            self._shown = Head(head.method, head.path, "", shown)

    def is_let_in(self) -> bool:
        """Return whether the same head would be let in now: a key may have expired meanwhile, or be gone."""
        if self.protocol is self._site.preflights:
            return True  # a browser shows no key with it
        try:
            self._site.authorizer.authorize(self.target.scope, self._shown or self.head)
        except ServeError:
            return False
        return True

    def _admit_body(self, size: int | None) -> None:
        self.expects_continue = self.is_http11 and expects_continue(self.head)
        if self.target.takes_body:
            self.intake = take_in(self._site, self._use, self.target, size)
        elif size is None or size > SMALL_BODY:
            raise ServeError(
                Code.TOO_LARGE, "nothing here takes a body; send the request without.", status=413
            )

    def _is_small_and_comes(self) -> bool:
        size = self.head.content_length
        return size is not None and size <= SMALL_BODY and (size == 0 or b"expect" not in self.head.headers)

    def add(self, piece: bytes) -> None:
        """Take in a piece of the body, or throw it away if nobody wants it. ServeError when it is too much."""
        if self.refusal is None and self.intake is not None:
            self.intake.add(piece)

    def borrow(self) -> memoryview | None:
        """Return where the rest of the body belongs, if that is worth receiving in place. Raises ServeError."""
        try:
            return self.intake.borrow() if self.refusal is None and self.intake is not None else None
        except ServeError:
            raise
        except Exception as error:
            raise self.own_fault("lend") from error

    def kept(self) -> Lease | None:
        """Return the lease of its whole body; None for a small one that is not compressed. Called once."""
        intake = self.intake
        if intake is None or not (intake.is_counted or b"content-encoding" in self.head.headers):
            return None
        return intake.kept()

    def wants_continue(self) -> bool:
        """Does the client wait for a word that it may send the body?"""
        return self.expects_continue and self.intake is not None and not self.intake.came

    def clone(self) -> "Request":
        """Another request with the same head, and nothing of its body yet."""
        site = self._site
        other = Request(site, self._use, self.head, site.now, self.protocol, self.target, self.is_head)
        other._shown = self._shown
        return other

    def repeated(self, body: bytes) -> "Request":
        """Another request with the same head: whole with this body, or large and begun with it. ServeError where
        there is no room for a large one.
        """
        site, head, target = self._site, self.head, self.target
        size = head.content_length or 0
        if size > SMALL_BODY:
            other = Request(site, self._use, head, site.now, self.protocol, target, self.is_head)
            other.intake = take_in(site, self._use, target, size)
            if body:
                other.intake.add(body)
            return other
        kept = body if target.takes_body else b""
        return Request(site, self._use, head, site.now, self.protocol, target, self.is_head, kept, True)

    def own_fault(self, where: str, error: Exception | None = None) -> ServeError:
        """Log what a protocol or the core raised, close the connection behind the answer; the error to answer."""
        _log.error("%s %s: %s raised", self.head.method, self.head.path, where, exc_info=error or True)
        self.keeps_alive = False
        return ServeError(
            Code.INTERNAL, "the server failed at this request by a fault of its own; see its log."
        )
