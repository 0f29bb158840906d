"""One connection: bytes in through a `RequestReader`, exchanges in order, answers out, nothing without a bound.

Decides when to read, whose turn it is, when to close. One request is in work; nothing is read while two wait
or an answer is unsent. Knows nothing of protocols. Each phase has a deadline, a plain number that the sweeper
compares: there are no timers.
"""

import asyncio
from collections import deque
from enum import Enum
from typing import cast

from trivium.frontends.http.departures import Departure
from trivium.frontends.http.exchange import Exchange
from trivium.frontends.http.reader import RequestReader
from trivium.frontends.http.response import CLOSE, Outbox, whole
from trivium.frontends.http.state import NEVER, RETRY_SECONDS, SWEEP_SECONDS, HttpState
from trivium.frontends.limits import SMALL_BODY, HttpLimits
from trivium.frontends.refusals import malformed, refusal_of
from trivium.frontends.shares import AddressUse, has_room
from trivium.frontends.turns import SLICE
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.wire import Head, HttpAnswer

_NO_HEAD = Head("", "", "", {}, 0)  # of what was no request
_LEFT = ServeError(Code.CANCELLED, "the client left before its answer.")
_TOO_SLOW = ServeError(Code.CANCELLED, "the client did not read its answer in time.")
_BROKEN = ServeError(Code.CANCELLED, "the answer broke off in the middle.")
_SILENT = ServeError(Code.CANCELLED, "the model sent no further part of its answer in time.")
_DRAINED = ServeError(
    Code.DRAINING, "The server went down before this request was done. Send it elsewhere, or again."
)
_LOOK_SECONDS = 1.0


class Phase(Enum):
    """The value completes the sentence "waiting for ..."."""

    IDLE = "a request"
    HEAD = "the rest of a request's head"
    BODY = "the rest of a request's body"
    WORK = "the core"
    UNSENT = "the client to read"
    CLOSING = "the last bytes to leave and the client to close"
    LOST = "nothing"


IDLE, HEAD, BODY, WORK, UNSENT, CLOSING, LOST = Phase
"""For the path of every request: looking a member up in its class takes ten times as long (Python 3.11)."""


def seconds(phase: Phase, limits: HttpLimits) -> float:
    """Return the seconds from entering the phase to its deadline."""
    if phase is WORK or phase is LOST:
        return NEVER
    if phase is IDLE:
        return limits.idle_seconds
    if phase is HEAD:
        return limits.header_seconds
    if phase is BODY:
        return limits.body_seconds
    return limits.write_seconds if phase is UNSENT else limits.linger_seconds


class HttpConnection(asyncio.BufferedProtocol):
    """Used by its transport, by its exchanges (as their `Outlet`) and by the sweeper, all on one loop."""

    use: AddressUse

    def __init__(self, site: HttpState) -> None:
        self.deadline = NEVER
        self.phase = IDLE
        self._site = site
        self._queue: deque[Exchange] = deque()  # the first is received, in work or being answered
        self._reader = RequestReader(site, self, self._queue)
        self._reads = True
        self._is_eof = False
        self._is_refused = False  # what still comes is thrown away
        self._is_advancing = False
        self._part_due = NEVER
        self._left_due = NEVER  # what has not begun to be answered by then is for nobody
        self._rest = b""  # input that waits for a later turn
        self._awaits_turn = False

    @property
    def is_idle(self) -> bool:
        """Is nothing under way?"""
        return self.phase is IDLE

    # -- called by the transport -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        site = self._site
        if site.wake is not None:
            site.wake()
        self._outbox = Outbox(self._transport, site.limits, site.unread, self._give_up)
        self._address, self.use = site.addresses.enter(transport.get_extra_info("peername"))
        if not has_room(site.limits.connections, len(site.connections), self.use.connections - 1):
            self.phase = CLOSING
            self._transport.write(_too_many(site))
            self._transport.close()
            return
        site.connections.add(self)
        self.deadline = site.now + site.limits.idle_seconds
        if site.is_draining:
            self._close()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if (wake := self._site.wake) is not None:
            wake()
        if self.phase is BODY:
            self.deadline += nbytes / self._site.limits.slowest_rate
        if nbytes > SLICE and not self._reader.is_bypassed and not self._reader.is_done:
            self._take_much(nbytes)
        else:
            self._take(nbytes)

    def _take(self, nbytes: int) -> None:
        if not self._reader.is_done:
            try:
                self._reader.take(nbytes)
            except ServeError as fault:
                self._refuse(frameless(fault))
        elif self.phase is not CLOSING:
            self._read(False)  # nobody wants it; the answer comes first
            return
        self._advance()

    def _take_much(self, nbytes: int) -> None:
        """Take in what fills the buffer, if this turn of the loop has time for it; the next of it waits its turn."""
        turns = self._site.turns
        if turns.is_spent():
            self._rest = bytes(self._reader.buffer[:nbytes])
        else:
            self._take(nbytes)
        if self._rest or nbytes == SMALL_BODY:
            self._awaits_turn = True
            self._read(False)
            turns.add(self._on_input_turn)

    def _on_input_turn(self) -> bool:
        """Go on with the input that waits."""
        rest, self._rest = self._rest, b""
        self._awaits_turn = False
        if self.phase is LOST or self._transport.is_closing():
            return False
        if rest:
            self._reader.buffer[: len(rest)] = rest
            self._take(len(rest))
        self._read(self.phase is CLOSING or (len(self._queue) < 2 and not self._outbox.is_paused))
        return False

    def eof_received(self) -> bool:
        """A client that has sent a whole request may close its side and wait for the answer, or may have left."""
        if (wake := self._site.wake) is not None:
            wake()
        self._is_eof = True
        if self.phase is CLOSING:
            return False
        if self._reader.is_in_head or (self._queue and not self._queue[-1].request.is_complete):
            self._refuse(malformed("the request was cut short: its end did not come."))
        self._advance()  # closes, unless somebody is still to be answered
        if self.phase is WORK:
            self._look_for_departure()
        else:
            self._note_half_close()
        return self._transport.can_write_eof()  # over TLS no side can be closed alone

    def pause_writing(self) -> None:
        self._outbox.pause()
        if self.phase is not CLOSING:
            self._enter(UNSENT)
            self._read(False)

    def resume_writing(self) -> None:
        self._outbox.resume()
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(LOST)
        self._site.leave(self)
        self._site.addresses.leave(self._address)
        self._reader.stop()
        self._outbox.release()
        while self._queue:
            exchange = self._queue.popleft()
            exchange.cancel(_LEFT)
            exchange.release()
        self._outbox.forget()
        self._reader.forget()

    # -- called by an exchange -------------------------------------------------------------------------

    def send(self, exchange: Exchange, answer: HttpAnswer) -> None:
        """Write the answer or a part of it; behind the last byte of the last one, close or go on."""
        assert self._queue[0] is exchange, "an answer came out of turn"
        site = self._site
        self._outbox.write(exchange, answer, is_last := site.is_draining or not exchange.request.keeps_alive)
        if not answer.final:
            if self._outbox.is_overfull():
                self._abort(_TOO_SLOW)
            elif site.limits.part_seconds != NEVER:
                self._await_part()
            return
        self._queue.popleft()
        self._part_due = NEVER
        if exchange.request.intake is not None:
            self._outbox.release_when_sent(exchange, exchange.request.intake)
        site.answered += 1
        if is_last or not exchange.request.keeps_alive:
            self._close()
        elif not self._is_advancing:
            if self._queue or self._reader.is_in_head or self._is_eof or not self._reads:
                self._advance()
            else:  # what `_advance` would come to, for most requests
                self.phase = IDLE
                self.deadline = site.now + site.limits.idle_seconds

    def peer(self) -> str:
        name = self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "unix:"

    def break_off(self, exchange: Exchange) -> None:
        """Abort the connection: an answer in chunks without its end is seen to be incomplete (RFC 9112 8)."""
        self._abort(_BROKEN)

    # -- called by the sweeper and the drain -----------------------------------------------------------

    def on_deadline(self) -> None:
        """End the wait for what has not come in its time."""
        match self.phase:
            case Phase.IDLE:
                self._close()
            case Phase.HEAD | Phase.BODY:
                late = f"{self.phase.value} did not come in time; send it faster, or in smaller requests."
                self._refuse(ServeError(Code.EXPIRED, late, status=408))
                self._advance()
            case Phase.UNSENT | Phase.CLOSING:
                if self._outbox.has_progressed():
                    self.deadline = self._site.now + self._site.limits.write_seconds
                else:
                    self._abort(_TOO_SLOW)
            case Phase.WORK:
                if self._site.now >= self._part_due:
                    self._abort(_SILENT)
                elif self._site.now >= self._left_due and not self._queue[0].is_streaming:
                    self._end(self._too_late())
                else:
                    self._look_for_departure()
            case Phase.LOST:
                raise AssertionError("a deadline passed after the end")

    def drain(self) -> None:
        """Close, if nothing is under way; else it will close behind its answer."""
        if self.phase is IDLE:
            self._close()

    def unfinished(self) -> str | None:
        """The request in work (method, path and age) or the answer being sent."""
        if self._queue:
            request = self._queue[0].request
            return f"{request.head.method} {request.head.path} ({self._site.now - request.began:.1f} s)"
        unsent = self._transport.get_write_buffer_size()
        return f"an answer of which {unsent} bytes were unsent" if unsent else None

    def end(self) -> None:
        """The time of a drain is over: answer what is in work with that, and close."""
        if self._queue and self.phase is not CLOSING:
            self._end(_DRAINED)
        elif self.phase is not CLOSING:
            self._abort(_DRAINED)

    def abort(self) -> None:
        """Cancel everything and close without waiting."""
        self._abort(_DRAINED)

    # -- whose turn it is ------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Start what can be started, in order, then wait for the right thing."""
        if self._is_advancing:
            return
        self._is_advancing = True
        queue, outbox = self._queue, self._outbox
        while queue and not outbox.is_paused:
            exchange = queue[0]
            if exchange.is_started or not exchange.request.is_complete:
                break
            self.phase, self.deadline = WORK, NEVER
            if self._is_eof and self._site.now >= self._left_due:
                self._end(self._too_late())
                break
            exchange.start()
            if not exchange.is_over:
                break
        self._is_advancing = False
        if (
            self.phase is WORK
            and self._reads
            and len(queue) == 1
            and queue[0].is_started
            and not self._is_eof
        ):
            return  # what `_settle` would come to, for most requests
        if not outbox.is_paused and self.phase is not CLOSING and self.phase is not LOST:
            self._settle()

    def _settle(self) -> None:
        queue = self._queue
        if not queue:
            is_in_head = self._reader.is_in_head
            if self._is_eof or (self._site.is_draining and not is_in_head):
                self._close()
                return
            self._enter(HEAD if is_in_head else IDLE)
        elif not queue[0].request.is_complete:
            if self.phase is not BODY:
                self.phase, self.deadline = BODY, self._site.now + self._site.limits.body_seconds
            if not queue[0].request.is_opened and not self._make_room(queue[0]):
                return
        else:
            self._enter(WORK)
            if self._part_due != NEVER:
                self._await_part()  # the client has read: from now on the model is waited for again
        if self._reads != (len(queue) < 2):
            self._read(not self._reads)
        if (self._is_eof or not self._reads) and self.deadline == NEVER:
            self._look_again()

    def _make_room(self, exchange: Exchange) -> bool:
        """It is this one's turn to send its body. False when that was refused."""
        request = exchange.request
        request.is_opened = True
        is_awaited = request.expects_continue and request.wants_continue()
        try:
            rest = request.borrow()
        except ServeError as fault:
            self._refuse(frameless(fault))
            self._advance()
            return False
        if is_awaited:
            self._outbox.write_continue()
        if rest is not None:
            self._reader.receive_into(rest)
            self._outbox.watch_closely()
        return True

    def _refuse(self, fault: ServeError) -> None:
        """Take nothing more from here on: answer, in its turn, and close."""
        self._is_refused = True
        self._reader.stop()
        if not self._queue or self._queue[-1].request.is_complete:
            self._queue.append(self._reader.begun(_NO_HEAD))
        request = self._queue[-1].request
        request.refusal = fault
        request.keeps_alive = False
        request.is_complete = True
        if request.intake is not None:  # its room is for others, at once
            request.intake.release()
            request.intake = None

    # -- waiting and leaving ---------------------------------------------------------------------------

    def _enter(self, phase: Phase) -> None:
        """Wait for something else from now on; no effect while it is the same thing."""
        if phase is not self.phase:
            self.phase = phase
            self.deadline = self._site.now + seconds(phase, self._site.limits)

    def _read(self, wanted: bool) -> None:
        wanted = wanted and not self._awaits_turn
        if wanted is self._reads or self._is_eof:
            return
        self._reads = wanted
        (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def _await_part(self) -> None:
        """A part of an answer is out: the next one has its time from now on."""
        self._part_due = self._site.now + self._site.limits.part_seconds
        if self.phase is WORK:
            self.deadline = min(self._part_due, self._site.now + _LOOK_SECONDS)

    def _look_for_departure(self) -> None:
        """While nothing is read, the loop does not hear that the client has left: ask, now and then."""
        departure = self._site.departure(self._transport.get_extra_info("socket"))
        if departure is Departure.GONE:
            self._abort(_LEFT)
            return
        if self._is_eof or departure is Departure.SENDS_NO_MORE:
            self._note_half_close()
        self._look_again()

    def _look_again(self) -> None:
        now, due = self._site.now, self._site.now + _LOOK_SECONDS
        self.deadline = self._left_due if now < self._left_due < due else due

    def _note_half_close(self) -> None:
        """Serve what is asked only if its answer begins soon: most clients that close their side have left."""
        if self._left_due == NEVER and self._transport.can_write_eof():
            # The time is kept by the sweeper, and may be so much behind: no less is waited than was said.
            self._left_due = self._site.now + SWEEP_SECONDS + self._site.limits.half_close_seconds

    def _too_late(self) -> ServeError:
        limit = self._site.limits.half_close_seconds
        return ServeError(
            Code.CANCELLED,
            f"the client closed its sending side, and the answer had not begun {limit:g} s later: the request was "
            "cancelled. Leave the connection open until the answer has come.",
        )

    def _end(self, why: ServeError) -> None:
        """Answer the request whose turn it is with an error, and close behind that; it is cancelled, and what is behind
        it is not begun.
        """
        exchange = self._queue[0]
        if not exchange.request.is_complete:
            self._refuse(why)
            self._advance()
            return
        exchange.request.keeps_alive = False
        exchange.end(why)
        if not exchange.is_over:
            self._abort(why)

    def _close(self) -> None:
        """No further request; what has been answered still leaves. A client that may be sending gets to read
        why it should not: closing at once would reset the connection (RFC 9112 9.6).
        """
        lingers = (self._is_refused or self._queue or self._reader.is_in_head) and not self._is_eof
        for exchange in self._queue:
            exchange.release()
        self._queue.clear()
        self._reader.stop()
        self._outbox.has_progressed()
        if lingers:
            self._enter(CLOSING)
            if self._transport.can_write_eof():
                self._transport.write_eof()
            self._read(True)
        else:
            self.phase = CLOSING
            self.deadline = self._site.now + self._site.limits.write_seconds
            self._transport.close()

    def _give_up(self) -> None:
        """Others need the memory that its unread answer takes."""
        self._abort(_TOO_SLOW)

    def _abort(self, why: ServeError) -> None:
        """Leases stay with the transport until `connection_lost`."""
        self.phase = CLOSING
        self.deadline = NEVER
        for exchange in self._queue:
            exchange.cancel(why)
        self._transport.abort()


def _too_many(site: HttpState) -> bytes:
    """Return the answer to a connection that is one too many."""
    limit = site.limits.connections
    text = (
        f"{len(site.connections)} connections are open, and the limit is {limit}; when three quarters are open, "
        "one address may have a quarter. Try again later, or reuse connections."
    )
    refusal = refusal_of(
        ServeError(Code.QUEUE_FULL, text, retry_after=RETRY_SECONDS, status=503), site.fallback
    )
    return b"".join(whole(refusal, site.limits.fields + CLOSE, False))
