"""Makes exchanges from bytes: httptools (llhttp), with limits that it does not have.

Decides where a request begins and ends and what of its head is too much. Knows no socket and no answer. The
parser is only renewed after an upgrade and after a body that bypassed it; a refused stream is never read on.
"""

import logging
from collections import deque

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserUpgrade,
    HttpRequestParser,
)

from trivium.frontends.http.exchange import Exchange, Outlet
from trivium.frontends.http.head_limits import check_fields, long_fields, long_target, many_fields
from trivium.frontends.http.request import (
    SPARE,
    Request,
    RequestBody,
    is_framed_twice,
    join_repeated,
    read_head,
)
from trivium.frontends.http.state import HttpState
from trivium.frontends.limits import SMALL_BODY
from trivium.frontends.refusals import malformed
from trivium.frontends.timestamps import exchange_kind
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL
from trivium.types.wire import Head

_log = logging.getLogger(__name__)
_LONGEST = 2048  # bytes kept per connection
_PATIENCE = 16  # requests that are not learned behind a head that never came back
_BLANK_LINE = b"\r\n\r\n"


class HeadCache:
    """Keeps one connection's last head, byte for byte, so that a client which repeats it is not parsed again.

    Clients of a model mostly send the same head over and over. The same bytes at the same place of the stream mean the
    same head, and a protocol's `head` is pure: what was admitted once is admitted again. Saves about half of what the
    front end costs per request. Whatever is in any way unusual goes to the parser. `scratch` is the buffer that
    requests are received into.
    """

    def __init__(self, scratch: memoryview) -> None:
        assert isinstance(scratch.obj, bytearray), "the scratch buffer is a bytearray"
        self._scratch = scratch
        self._bytes = scratch.obj  # compares in one go, which a memoryview does element by element
        self._head = b""
        self._size = 0  # of head and body together
        self._sample: Request | None = None
        self._is_large = False
        self._expected = scratch
        self._skips = 0

    def get(self, size: int, is_first: bool) -> Request | None:
        """The request that begins in the first `size` bytes with the head kept, and whose body is
        whole in them, or large and begun; else None.

        The caller knows that the stream is at the beginning of a request. Only where none waits before it
        (`is_first`) is there room at once for the rest of a large body. ServeError where there is none at all.
        """
        sample = self._sample
        if sample is None:
            return None
        if self._is_large and is_first and size == len(self._head) and bytes(self._expected) == self._head:
            self._skips = 0
            return sample.repeated(b"")
        if not self._bytes.startswith(self._head):
            return None  # behind `size` there may be what came before, even the rest of this head
        if not (is_first and size >= len(self._head)) if self._is_large else size != self._size:
            return None
        self._skips = 0
        return sample.repeated(bytes(self._scratch[len(self._head) : size]))

    def expected(self) -> memoryview:
        """Return where the next request belongs. Behind one with a large body no more of it is read at first than that
        one's head: if it is the same again, all of the body can be received in place.
        """
        return self._expected

    def put(self, size: int, came: int, request: Request) -> None:
        """The first `size` bytes were parsed as just this request, with `came` bytes of its body."""
        if self._skips:
            self._skips -= 1
            return
        length = request.head.content_length
        if length is None or not _is_repeatable(request) or size - came > _LONGEST:
            return
        if came != length <= SMALL_BODY:
            return
        head = bytes(self._scratch[: size - came])
        nothing_around_it = head.find(_BLANK_LINE) == len(head) - len(_BLANK_LINE)
        if nothing_around_it:
            self._head, self._size, self._sample = head, len(head) + length, request.clone()
            self._is_large = length > SMALL_BODY
            self._expected = self._scratch[: len(head)] if self._is_large else self._scratch
            self._skips = _PATIENCE

    def forget(self) -> None:
        """The connection is over."""
        self._sample = None


class KeyedHeadCache(HeadCache):
    """Asks the authorizer about a head that is repeated as about any other. One that is not let in any more goes to the
    parser, which has it refused.
    """

    def get(self, size: int, is_first: bool) -> Request | None:
        """See `HeadCache`."""
        sample = self._sample
        return super().get(size, is_first) if sample is not None and sample.is_let_in() else None


def _is_repeatable(request: Request) -> bool:
    """Would the same head be admitted again, whatever the state of the server?"""
    return (
        request.refusal is None
        and request.keeps_alive
        and request.is_http11
        and not request.expects_continue
        and b"upgrade" not in request.head.headers
        and b"content-encoding" not in request.head.headers  # how long decoding takes is asked each time
    )


class _Behind(Exception):
    """Bytes came behind the last request of a connection; nobody reads them."""


class RequestReader:
    """The reading side of one connection: what it reads it appends to `queue`, head by head.

    `buffer` is where the next bytes belong. `is_done`: what comes now belongs to no request. `is_in_head`: one
    has begun, and its head is not whole.
    """

    def __init__(self, site: HttpState, outlet: Outlet, queue: deque[Exchange]) -> None:
        self.buffer = site.scratch
        self.is_done = False
        self.is_in_head = False
        self._site = site
        self._outlet = outlet
        self._queue = queue
        self._memo = (HeadCache if site.authorizer is ALLOW_ALL else KeyedHeadCache)(site.scratch)
        self._begin = exchange_kind(site)
        self._request: Request | None = None  # the one being received
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._names: list[bytes] = []
        self._last: dict[bytes, bytes] = {}
        self._repeats = 0
        self._barren = 0  # bytes fed since a head or a piece of a body was whole: what llhttp may be hoarding
        self._completed = 0  # requests that ended in the present bytes
        self._is_between = True  # the parser is at the beginning of a request
        self._is_bypassed = False
        self._is_stopped = False
        self._upgrades = False
        self._is_primed = False
        self._parser = self._new_parser()

    @property
    def is_bypassed(self) -> bool:
        """Does what comes next cost nothing but its copy?"""
        return self._is_bypassed

    def take(self, size: int) -> None:
        """`size` bytes have been put into `buffer`; afterwards it may be overwritten. Raises ServeError where the
        stream cannot or need not be read on.
        """
        if self._is_bypassed:
            self._fill(size)
        elif not self._is_between:
            self._feed(self.buffer[:size])
        elif (request := self._memo.get(size, not self._queue)) is not None:
            self._queue.append(self._begin(self._site, self._outlet, request))
            if not request.is_complete:
                self._request = request
        else:
            self._completed = 0
            self._feed(self.buffer[:size])
            self.buffer = self._site.scratch
            self._learn(size)

    def _learn(self, size: int) -> None:
        """Remember what was just fed: one request with its whole body, or the beginning of one with a large body."""
        begun = self._request
        if begun is not None and begun.intake is not None and not self._completed:
            self._memo.put(size, begun.intake.came, begun)
        elif self._completed == 1 and self._is_between:
            whole = self._queue[-1].request
            self._memo.put(size, whole.head.content_length or 0, whole)

    def begun(self, head: Head) -> Exchange:
        """Make a new exchange when nothing but its head has come."""
        site = self._site
        return self._begin(site, self._outlet, Request(site, self._outlet.use, head, site.now, site.fallback))

    def receive_into(self, rest: memoryview) -> None:
        """The rest of the present body bypasses the parser, and what comes next of it belongs there."""
        self.buffer = rest
        self._is_bypassed = True

    def stop(self) -> None:
        """Nothing that comes is wanted; this also breaks the cycle with the parser."""
        if not self._is_stopped:
            self.is_done = self._is_stopped = True
            self.buffer = self._site.scratch
            self._request = None
            self._memo.forget()
            del self._parser

    def forget(self) -> None:
        """The connection is gone: this breaks the cycle with it."""
        del self._outlet

    def _fill(self, size: int) -> None:
        left = len(self.buffer) - size
        if left > SPARE:
            self.buffer = self.buffer[size:]
            if not self._intake().is_booked:
                self._intake().book()
            return
        if (window := self._intake().next_window(left)) is not None:
            self.buffer = window
            return
        behind = self.buffer[size - SPARE + left : size] if left < SPARE else b""
        self.buffer = self._memo.expected()
        self._is_bypassed = False
        if not self._is_between:  # else the head was recalled, and the parser knows nothing of the body
            self._parser = self._new_parser()
        self.on_message_complete()
        if behind and not self.is_done:  # the next request has begun
            self.buffer = self._site.scratch
            self._feed(memoryview(behind))

    def _intake(self) -> RequestBody:
        request = self._request
        assert request is not None
        assert request.intake is not None
        return request.intake

    def _feed(self, data: memoryview) -> None:
        self._barren += len(data)
        try:
            rest = self._parse(data)
            while rest is not None:  # RFC 9110 7.8: an upgrade may be ignored, and is
                self._prime()
                rest = self._parse(rest) if rest and not self.is_done else None
        except HttpParserCallbackError as error:
            if isinstance(error.__context__, _Behind):
                return
            self.is_done = True
            raise _cause_of(error) from error
        except HttpParserError as error:
            if not self.is_done:  # behind `Connection: close` anything may come
                self.is_done = True
                raise malformed(f"this is no valid HTTP/1.1 request: {error}.") from error
        if self._barren > self._site.limits.header_bytes:
            self._refuse_hoard()

    # -- called by the parser --------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of a request. _Behind where the one before it was the last of its connection."""
        if self.is_done:
            raise _Behind
        self._is_between = False
        self.is_in_head = True

    def on_url(self, piece: bytes) -> None:
        """Several times, when the URL comes in pieces."""
        self._url += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Once per field of the head, or of the trailer behind chunks (RFC 9112 7.1.2), which is not used."""
        self._names.append(name)
        name = name.lower()
        headers = self._headers
        if name not in headers:
            headers[name] = value.rstrip()
            return
        self._repeats += 1
        if self._repeats > self._site.limits.header_count:
            raise many_fields(self._site.limits)
        value = value.rstrip()
        join_repeated(headers, name, value)
        self._last[name] = value

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self._is_primed:
            self._is_primed = False
            self._reset_head()
            return
        site, parser, headers, url = self._site, self._parser, self._headers, self._url
        if self._barren > site.limits.header_bytes or len(headers) > site.limits.header_count:
            check_fields(headers, site.limits)
        if len(url) > site.limits.url_bytes:
            raise long_target(site.limits)
        is_http11 = keeps_alive = parser.should_keep_alive()
        if not keeps_alive or b"connection" in headers:
            is_http11 = _is_http11(parser.get_http_version())
        if is_framed_twice(headers):
            keeps_alive = False
        method = parser.get_method()
        head = read_head(method, url, headers, is_http11, self._names, self._last)
        exchange = self.begun(head)
        self._request = request = exchange.request
        if method == b"HEAD":
            request.is_head = True
        if not keeps_alive:
            request.keeps_alive = False
        if not is_http11:
            request.is_http11 = False
        self._upgrades = b"upgrade" in headers and parser.should_upgrade()
        self._reset_head()
        self._queue.append(exchange)
        request.admit()

    def on_body(self, piece: bytes) -> None:
        """A piece of the body; httptools has copied it."""
        self._barren = 0
        assert self._request is not None
        self._request.add(piece)

    def on_message_complete(self) -> None:
        """The request is whole, unless llhttp took it for the start of another protocol and left the body."""
        request = self._request
        assert request is not None
        if self._upgrades and request.head.content_length != 0:
            return
        request.is_complete = self._is_between = True
        self._completed += 1
        if not request.keeps_alive:
            self.is_done = True
        self._request = None
        self._barren = 0
        if self._headers:  # a trailer
            self._reset_head()

    # -- the rest --------------------------------------------------------------------------------------

    def _reset_head(self) -> None:
        self._url = b""
        self._headers = {}
        self._names = []
        self._last = {}
        self._repeats = self._barren = 0
        self.is_in_head = False

    def _new_parser(self) -> HttpRequestParser:
        """A body may have chunks and a length: `is_framed_twice` sees to what follows from that."""
        parser = HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_chunked_length=True)
        return parser

    def _parse(self, data: memoryview) -> memoryview | None:
        """Return what is left behind an upgrade; None without one."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            return data[upgrade.args[0] :]
        return None

    def _prime(self) -> None:
        """Replace the parser: llhttp stops for good before the body of an upgrade, so a new parser gets a head that
        frames it alike.
        """
        self._parser = self._new_parser()
        self._upgrades = False
        if self._request is not None:
            size = self._request.head.content_length
            framing = b"Transfer-Encoding: chunked" if size is None else b"Content-Length: %d" % size
            self._is_primed = True
            self._parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n\r\n")

    def _refuse_hoard(self) -> None:
        self.is_done = True
        if self.is_in_head and len(self._url) > self._site.limits.url_bytes:
            raise long_target(self._site.limits)
        raise long_fields(self._site.limits)


def _is_http11(version: str) -> bool:
    if version not in ("1.1", "1.0"):
        raise ServeError(Code.UNSUPPORTED, f"HTTP/{version} is not served here; speak HTTP/1.1.", status=505)
    return version == "1.1"


def _cause_of(error: HttpParserCallbackError) -> ServeError:
    cause = error.__context__
    if isinstance(cause, ServeError):
        return cause
    _log.error("reading a request failed", exc_info=cause)
    return ServeError(Code.INTERNAL, "the server failed at this request by a fault of its own; see its log.")
