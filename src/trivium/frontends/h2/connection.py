"""One connection: its transport, its session, and the timers of both.

Decides when to write (once per turn of the loop), when to read (not while too much is unsent), and when the connection
has been silent, or has lasted, for too long. Knows nothing of frames but how a connection ends.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from trivium.frontends.h2 import frames
from trivium.frontends.h2.frame_reader import NoHttp2
from trivium.frontends.h2.frames import ENHANCE_YOUR_CALM, INTERNAL_ERROR, ConnectionFault
from trivium.frontends.h2.session import Session
from trivium.frontends.h2.shared import Shared
from trivium.frontends.h2.state import GOING_DOWN, UNAVAILABLE
from trivium.frontends.shares import has_room
from trivium.frontends.turns import SLICE
from trivium.types.errors import frameless
from trivium.types.wire import RpcAnswer

_log = logging.getLogger(__name__)

_HIGH = 256 * 1024
"""Unsent bytes of a transport from which on no more DATA is given to it."""

_MOST_UNSENT = 2**20
"""... and nothing is read: what is answered to pings, settings and refused calls is not DATA."""

_JOINED = 64 * 1024
_GREETING_SECONDS = 20.0
_LINGER_SECONDS = 1.0
_STALLED_SECONDS = 5.0
_PONG_SECONDS = 1.0
_ENDED = RpcAnswer(code=UNAVAILABLE, details=GOING_DOWN)
_TEXT = b"This port speaks gRPC, which is HTTP/2. HTTP/1.1 is served on another port.\n"
_HTTP1 = (
    b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%s" % (len(_TEXT), _TEXT)
)


class H2Connection(asyncio.BufferedProtocol):
    """Used by its transport and by the front end, on one loop. `connections` are all connections of the front end."""

    session: Session

    def __init__(
        self, shared: Shared, connections: "set[H2Connection]", loop: asyncio.AbstractEventLoop
    ) -> None:
        self._shared = shared
        self._guests = connections
        self._loop = loop
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_in_turn = False
        self._is_scheduled = False
        self._reads = True
        self._is_deaf = False  # the connection is ending; what still comes is thrown away
        self._is_mute = False  # all that it says has been said
        self._is_gone = False
        self._unsent = 0  # when last looked at, at the end
        self._is_unread = False  # its client has left something unread
        self._last_read = 0.0
        self._is_watching = False  # whether messages come
        self._rest = memoryview(b"")  # input that waits for a later turn
        self._pinged = 0.0

    # -- called by the transport -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH)
        now = self._last_read = self._loop.time()
        site = self._shared.site
        name = transport.get_extra_info("peername")
        self._address, use = site.addresses.enter(name)
        self.session = Session(self._shared, _peer(name), use, now, self._wake)
        limits = site.limits
        count = len(self._guests)
        self._guests.add(self)
        if not has_room(limits.calls, count, use.connections - 1):
            text = (
                f"{count} connections are open, and the limit is {limits.calls}; when three quarters are open, "
                "one address may have a quarter. Reuse connections, or try again later."
            )
            self._fail(ConnectionFault(ENHANCE_YOUR_CALM, text))
            return
        self._at(_GREETING_SECONDS, self._on_greeting_due)
        self._at(limits.keepalive_seconds, self._on_silence)
        if limits.idle_seconds is not None:
            self._at(limits.idle_seconds, self._on_idle)
        if limits.age_seconds is not None:
            self._at(limits.age_seconds, self._on_age)
        if self._shared.site.is_draining:
            self.leave()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._shared.scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_deaf:
            return
        self._last_read = self._loop.time()
        data = self._shared.scratch[:nbytes]
        if nbytes <= SLICE:
            self._feed(data)
        else:
            self._feed_slices(data)

    def _feed(self, data: memoryview) -> None:
        session = self.session
        session.now = self._loop.time()
        self._is_in_turn = True
        try:
            session.feed(data)
        except ConnectionFault as fault:
            self._fail(frameless(fault))
        except Exception:
            _log.exception("a connection of gRPC failed and is cut off")
            self._fail(ConnectionFault(INTERNAL_ERROR, "The server failed at this connection; see its log."))
        self._flush()

    def _feed_slices(self, data: memoryview) -> None:
        """Take in as much as this turn of the loop has time for; the rest waits, and nothing is read until then."""
        turns = self._shared.turns
        at, size = 0, len(data)
        while at < size and not self._is_deaf:
            if turns.is_spent():
                self._rest = memoryview(bytes(data[at:]))
                self._read(False)
                turns.add(self._on_input_turn)
                return
            after = at + SLICE + self.session.data_to_come
            self._feed(data[at:after])
            at = after

    def _on_input_turn(self) -> bool:
        """Go on with the input that waits; True while there is more."""
        rest = self._rest
        if self._is_deaf:
            self._rest = rest[:0]
            return False
        after = SLICE + self.session.data_to_come
        self._rest = rest[after:]
        self._feed(rest[:after])
        if self._rest:
            return True
        self._read(self._transport.get_write_buffer_size() <= _MOST_UNSENT)
        return False

    def eof_received(self) -> bool:
        """A client that sends no more waits for no answer, either: its calls are cancelled, and its connection is
        closed, whether it reads what is on its way or not.
        """
        self.session.lose()
        self._end()
        return False

    def pause_writing(self) -> None:
        self.session.is_choked = True

    def resume_writing(self) -> None:
        self.session.is_choked = False
        self._read(True)
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_deaf = True
        self._forget_timers()
        self._guests.discard(self)
        self.session.lose()
        self._shared.site.addresses.leave(self._address)
        self._shared.site.unread.note(self, 0)
        self._is_gone = True
        self.session.forget()
        if not self._guests:
            self._shared.emptied.set()

    # -- called by the front end -----------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Return the bytes of answers that the client has not taken."""
        return self.session.flow.unsent + self._transport.get_write_buffer_size()

    def leave(self) -> None:
        """Take no new calls, and close when those in work are answered."""
        self.session.housekeeping.leave()
        self._at(_PONG_SECONDS, self._on_no_pong)

    def abort(self) -> None:
        """End what is in work, and close. Who has not read what came before hears the end in place of the rest."""
        self.session.abort(_ENDED)
        self._flush()
        self.session.cut_short()
        self._end()

    def give_up(self) -> None:
        """Others need the memory that its unread answers take."""
        _log.info("a gRPC client does not read its answers, and their memory is needed: it is cut off")
        self._transport.abort()

    # -- time ------------------------------------------------------------------------------------------

    def _at(self, seconds: float, work: Callable[[], None]) -> None:
        """Do this work in so many seconds, unless the connection is gone by then; an earlier one for the same work is
        forgotten.
        """
        name = work.__name__
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = self._loop.call_later(seconds, work)

    def _forget_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _on_greeting_due(self) -> None:
        if not self.session.is_greeted:
            self._transport.abort()

    def _on_silence(self) -> None:
        """Nothing was heard for long, or since a ping."""
        limits = self._shared.site.limits
        now = self._loop.time()
        house = self.session.housekeeping
        if house.awaits_pong and self._last_read <= self._pinged:
            _log.info(
                "a gRPC client did not answer a ping in %s s: its connection is cut off",
                limits.keepalive_timeout,
            )
            self._transport.abort()
            return
        house.awaits_pong = False
        rest = self._last_read + limits.keepalive_seconds - now
        if rest > 0:
            self._at(rest, self._on_silence)
        elif house.ask_alive():
            self._pinged = now
            self._at(limits.keepalive_timeout, self._on_silence)
        else:
            self._at(limits.keepalive_seconds, self._on_silence)

    def _on_idle(self) -> None:
        """It may have had no call for long."""
        session, seconds = self.session, self._shared.site.limits.idle_seconds
        assert seconds is not None
        rest = seconds if session.has_calls else session.last_call + seconds - self._loop.time()
        if rest > 0:
            self._at(rest, self._on_idle)
        else:
            self.leave()

    def _on_unfinished(self) -> None:
        """Some call may wait for a message that does not come, or for a client that does not read; look again while
        there are calls.
        """
        self._is_watching = self.session.has_calls
        if self._is_watching:
            self.session.end_late(self._loop.time())
            self._at(self._shared.site.limits.look_seconds, self._on_unfinished)

    def _on_age(self) -> None:
        self.leave()
        grace = self._shared.site.limits.grace_seconds
        if grace is not None:
            self._at(grace, self.abort)

    def _on_no_pong(self) -> None:
        """The client does not say whether it has heard that it should leave."""
        self.session.housekeeping.finish_leaving()
        self._wake()

    # -- reading and writing ---------------------------------------------------------------------------

    def _wake(self) -> None:
        if not self._is_in_turn and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._is_scheduled = False
        self._flush()

    def _flush(self) -> None:
        """Write what there is, DATA for as long as the transport takes it."""
        if self._is_gone:
            return
        session = self.session
        self._is_in_turn = True
        try:
            while self._write_some():
                pass
        except Exception:
            _log.exception("what a gRPC connection should write cannot be written; it is cut off")
            self._transport.abort()
        self._is_in_turn = False
        if session.flow.unsent or session.is_choked or self._is_unread:
            self._note_unread(session.flow.unsent)
        if session.streams and not self._is_watching:
            self._is_watching = True
            self._at(self._shared.site.limits.look_seconds, self._on_unfinished)
        if session.is_choked:
            unsent = self._transport.get_write_buffer_size()
            self._read(max(unsent, session.flow.unsent) <= _MOST_UNSENT)
        if session.is_finished and not self._is_deaf:
            self._end()

    def _write_some(self) -> bool:
        session = self.session
        if self._is_mute or self._transport.is_closing():
            return False
        if session.flow.unsent and not session.is_choked:
            session.pump()
        session.spare()
        out, session.out = session.out, []
        if not out:
            return False
        if sum(map(len, out)) <= _JOINED:
            self._transport.write(b"".join(out))
        else:
            self._transport.writelines(out)
        return True

    def _note_unread(self, unsent: int) -> None:
        unsent += self._transport.get_write_buffer_size()
        self._is_unread = unsent > 0
        if not self._transport.is_closing():
            self._shared.site.unread.note(self, unsent)

    def _read(self, wanted: bool) -> None:
        wanted = wanted and not self._rest
        if wanted is self._reads or self._transport.is_closing():
            return
        self._reads = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # -- the end ---------------------------------------------------------------------------------------

    def _fail(self, fault: ConnectionFault) -> None:
        """Say why, and cancel what runs."""
        session = self.session
        if isinstance(fault, NoHttp2):
            if fault.began[:1].isalpha():
                session.put(_HTTP1)
        else:
            session.greet()
            session.put(frames.goaway(session.last_stream, fault.code, fault.text))
        session.lose()
        self._end()

    def _end(self) -> None:
        """Close behind what has been said. What the client still sends is thrown away for a moment: a reset of the
        connection would keep it from reading that.
        """
        if self._is_deaf:
            return
        self._is_deaf = True
        self._flush()
        self._is_mute = True
        self._read(True)
        self._forget_timers()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._at(_LINGER_SECONDS, self._on_lingered)

    def _on_lingered(self) -> None:
        """The client does not close the connection by itself; what it still reads, it may."""
        unsent = self._transport.get_write_buffer_size()
        if not unsent:
            self._transport.close()
        elif unsent == self._unsent:
            self._transport.abort()
        else:
            self._unsent = unsent
            self._at(_STALLED_SECONDS, self._on_lingered)


def _peer(name: tuple[str, int] | None) -> str:
    """Write an address as gRPC writes addresses."""
    if not name:
        return "unknown"
    host, port, *_ = name
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
