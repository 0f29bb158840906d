"""One request on Trivium's side: its body taken in, its exchange run, its answer given to who called.

Decides when a request is whole and how long is waited for its client. Exchanges, limits and refusals are those of the
sockets of the front end; the framing is that of the server which called. Used on Trivium's loop only.
"""

from trivium.frontends.asgi.body import BodyFill
from trivium.frontends.asgi.caller import AnswerPiece, AnswerStart, AsgiCaller
from trivium.frontends.asgi.scope import AsgiRequest, head_of, header_lines
from trivium.frontends.http.exchange import Exchange
from trivium.frontends.http.request import Request
from trivium.frontends.http.state import NEVER, RETRY_SECONDS, HttpState
from trivium.frontends.limits import SMALL_BODY
from trivium.frontends.shares import AddressUse, has_room
from trivium.frontends.timestamps import exchange_kind
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.listeners import is_far
from trivium.types.wire import Head, HttpAnswer

_NO_HEAD = Head("", "", "", {}, 0)  # of what was no request
_LEFT = ServeError(Code.CANCELLED, "the client left before its answer.")
_TOO_SLOW = ServeError(Code.CANCELLED, "the client did not read its answer in time.")
_BROKEN = ServeError(Code.CANCELLED, "the answer broke off in the middle.")
_SILENT = ServeError(Code.CANCELLED, "the model sent no further part of its answer in time.")
_DRAINED = ServeError(
    Code.DRAINING, "The server went down before this request was done. Send it elsewhere, or again."
)
_LATE = "the rest of a request's body did not come in time; send it faster, or in smaller requests."
_BODILESS = (204, 304)
"""Statuses whose answers have no body, and no length (RFC 9110, sections 8.6 and 15.4.5)."""


class AsgiConnection:
    """Implements `Outlet` for its exchange, `ClientConnection` for sweeper and drain, and `CalledConnection` for
    its caller.
    """

    use: AddressUse
    is_idle = False

    def __init__(self, site: HttpState, caller: AsgiCaller, asked: AsgiRequest, is_guarded: bool) -> None:
        """Serve nobody who comes from another machine, where it `is_guarded`."""
        self.deadline = NEVER
        self._site = site
        self._caller = caller
        self._asked = asked
        self._is_guarded = is_guarded
        self._exchange: Exchange | None = None
        self._fill: BodyFill | None = None
        self._address: str | None = None
        self._unsent = (
            0  # bytes that were given to the caller, and of which it has not said that they are sent
        )
        self._backlog = 0  # of them, when last looked at
        self._is_held = False
        self._is_gone = False

    # -- called by its caller --------------------------------------------------------------------------

    def begin(self, first: bytes | None, is_last: bool) -> None:
        """See `CalledConnection`."""
        site = self._site
        if site.wake is not None:
            site.wake()
        self._address, self.use = site.addresses.enter(self._asked.client)
        has_place = has_room(site.limits.connections, len(site.connections), self.use.connections - 1)
        site.connections.add(self)
        self._admit(None if has_place else _too_many(site), first is None or not is_last or bool(first))
        if self._fill is None:
            self._start()
            self._caller.read_on()  # to hear when the client leaves
            return
        self.deadline = site.now + site.limits.body_seconds
        if first is None:
            self._caller.read_on()
        else:
            self.take(first, is_last)

    def _admit(self, refusal: ServeError | None, has_body: bool) -> None:
        """Make the exchange, and what takes in its body, if one is wanted."""
        site, asked = self._site, self._asked
        try:
            if refusal is not None:
                raise anew(refusal)
            if site.is_draining:
                raise anew(_DRAINED)
            head = head_of(asked, site.limits, is_sized=not (asked.lacks_size and has_body))
        except ServeError as fault:
            request = self._made(_NO_HEAD)
            request.refusal = frameless(fault)
            return
        request = self._made(head)
        request.is_head, request.is_http11 = asked.method == "HEAD", asked.version != "1.0"
        if self._is_guarded and is_far(asked.server):
            request.refusal = _unguarded(asked.server)
            return
        try:
            request.admit()
        except ServeError as fault:
            request.refusal = frameless(fault)
        if request.refusal is None and head.content_length != 0:
            self._fill = BodyFill(request)

    def _made(self, head: Head) -> Request:
        site = self._site
        request = Request(site, self.use, head, site.now, site.fallback)
        self._exchange = exchange_kind(site)(site, self, request)
        return request

    def take(self, piece: bytes, is_last: bool) -> None:
        """See `CalledConnection`."""
        fill, exchange = self._fill, self._exchange
        if fill is None or exchange is None or exchange.is_started:
            return
        self.deadline += len(piece) / self._site.limits.slowest_rate
        try:
            fill.add(piece)
            if is_last:
                fill.end()
        except ServeError as fault:
            self._refuse(exchange, frameless(fault))
            return
        if is_last:
            self._start()
        self._caller.read_on()

    def taken(self, size: int, is_last: bool) -> None:
        """See `CalledConnection`."""
        if self._is_gone:
            return
        self._unsent -= size
        self._site.unread.note(self, self._unsent if self._unsent > SMALL_BODY else 0)
        if is_last:
            self._leave()
        elif self._is_held and self._unsent <= SMALL_BODY:
            self._is_held = False
            exchange = self._exchange
            if exchange is not None and exchange.ticket is not None:
                exchange.ticket.resume()
            self._await_part()

    def left(self) -> None:
        """See `CalledConnection`."""
        if not self._is_gone and self._exchange is not None:
            self._exchange.cancel(_LEFT)
        self._leave()

    # -- called by its exchange ------------------------------------------------------------------------

    def send(self, exchange: Exchange, answer: HttpAnswer) -> None:
        """See `Outlet`."""
        buffers = tuple(memoryview(buffer).cast("B") for buffer in answer.buffers)
        if not exchange.is_streaming:
            lines = header_lines(answer.fields + self._site.limits.fields)
            if answer.final and answer.status not in _BODILESS:
                lines.append((b"content-length", b"%d" % answer.size))
            self._caller.give(AnswerStart(answer.status, lines))
        if exchange.request.is_head or (answer.final and answer.status in _BODILESS):
            buffers = ()
        size = sum(map(len, buffers))
        self._unsent += size
        self._backlog += size
        if not self._caller.give(AnswerPiece(buffers, size, answer.final)):
            self.left()
            return
        if answer.final:
            self._site.answered += 1
            self.deadline = self._site.now + self._site.limits.write_seconds
        else:
            exchange.is_streaming = True
            self._hold(exchange)

    def _hold(self, exchange: Exchange) -> None:
        """Hold the model back where its client does not read as fast."""
        if self._unsent > SMALL_BODY:
            self._site.unread.note(self, self._unsent)
            if self._unsent > self._site.limits.unsent_bytes:
                self._abort(_TOO_SLOW)
                return
            if not self._is_held and exchange.ticket is not None:
                self._is_held = True
                exchange.ticket.hold()
                self.deadline = self._site.now + self._site.limits.write_seconds
        else:
            self._await_part()

    def _await_part(self) -> None:
        self.deadline = self._site.now + self._site.limits.part_seconds

    def peer(self) -> str:
        """See `Outlet`."""
        client = self._asked.client
        return f"{client[0]}:{client[1]}" if client else "unix:"

    def break_off(self, exchange: Exchange) -> None:
        """See `Outlet`: the server that called closes the connection, as for any application that raises."""
        self._abort(_BROKEN)

    # -- called by the sweeper and the drain -----------------------------------------------------------

    def on_deadline(self) -> None:
        """End the wait for what has not come in its time."""
        exchange = self._exchange
        if exchange is None:
            return
        if not exchange.is_started:
            self._refuse(exchange, ServeError(Code.EXPIRED, _LATE, status=408))
        elif self._unsent:
            progress, self._backlog = self._backlog - self._unsent, self._unsent
            if progress < self._site.limits.slowest_rate:
                self._abort(_TOO_SLOW)
            else:
                self.deadline = self._site.now + self._site.limits.write_seconds
        elif exchange.is_over:
            self._abort(_TOO_SLOW)  # its last word is on its way, and nobody sends it
        else:
            self._abort(_SILENT)

    def give_up(self) -> None:
        """See `SlowReader`."""
        self._abort(_TOO_SLOW)

    def drain(self) -> None:
        """See `ClientConnection`: what is in work gets its answer."""

    def unfinished(self) -> str | None:
        """See `ClientConnection`."""
        if self._exchange is None:
            return None
        request = self._exchange.request
        return f"{request.head.method} {request.head.path} ({self._site.now - request.began:.1f} s)"

    def end(self) -> None:
        """See `ClientConnection`."""
        exchange = self._exchange
        if exchange is None:
            return
        if not exchange.is_started:
            self._refuse(exchange, _DRAINED)
        elif not exchange.is_over:
            exchange.end(_DRAINED)
            if not exchange.is_over:
                self._abort(_DRAINED)

    def abort(self) -> None:
        """See `ClientConnection`."""
        self._abort(_DRAINED)

    # -- the rest --------------------------------------------------------------------------------------

    def _start(self) -> None:
        self.deadline = NEVER
        exchange = self._exchange
        assert exchange is not None
        exchange.request.is_complete = True
        exchange.start()

    def _refuse(self, exchange: Exchange, fault: ServeError) -> None:
        """Answer with a fault of the body, and take in no more of it."""
        self._fill = None
        request = exchange.request
        request.refusal = fault
        if request.intake is not None:  # its room is for others, at once
            request.intake.release()
            request.intake = None
        self._start()
        self._caller.read_on()

    def _abort(self, why: ServeError) -> None:
        if self._exchange is not None and not self._is_gone:
            self._exchange.cancel(why)
        self._caller.break_off(why)
        self._leave()

    def _leave(self) -> None:
        """Nothing of what was given to the caller is read any more."""
        if self._is_gone:
            return
        self._is_gone = True
        self.deadline = NEVER
        site = self._site
        site.unread.note(self, 0)
        if self._exchange is not None:
            self._exchange.release()
        if self._address is not None:
            site.leave(self)
            site.addresses.leave(self._address)


def _too_many(site: HttpState) -> ServeError:
    """Return the error of a request that is one too many."""
    limit = site.limits.connections
    text = (
        f"{len(site.connections)} requests are in work, and the limit is {limit}; when three quarters are, one address "
        "may have a quarter. Try again later."
    )
    return ServeError(Code.QUEUE_FULL, text, retry_after=RETRY_SECONDS, status=503)


def _unguarded(host: str) -> ServeError:
    """Return the error of a request that came to an address which other machines reach, where nobody has said that
    they may.
    """
    return ServeError(
        Code.FORBIDDEN,
        f"This request came to {host}, which other machines reach, and nobody has said that they may ask these models. "
        "Give trivium.asgi(..., keys=FILE) to serve those alone who have a key (`trivium key` makes one), or open=True "
        "to serve anybody whom the program around it lets through.",
    )
