"""Deals with what concerns no single call of a connection: settings, pings, going away, and how much of that is too
much.

Source: RFC 9113, sections 6.5, 6.7 and 6.8; gRPC's keep-alive (proposals A8 and A9). Decides what is answered and what
ends the connection; writes through the session that it belongs to.
"""

from collections.abc import Collection
from typing import Protocol

from trivium.frontends.h2 import frames
from trivium.frontends.h2.flow import Bytes, Sender, SendFlow
from trivium.frontends.h2.frames import (
    ACK,
    FRAME_SIZE_ERROR,
    GOAWAY,
    LEAST_FRAME_SIZE,
    MOST_FRAME_SIZE,
    MOST_STREAM,
    NO_ERROR,
    PING,
    PRIORITY,
    PROTOCOL_ERROR,
    SETTINGS,
    ConnectionFault,
)
from trivium.frontends.h2.guard import SETTING, SMALL, Guard, PingStrikes
from trivium.frontends.h2.state import GrpcState

_DRAIN_PING = b"trivdrai"
_ALIVE_PING = b"trivlive"
_LEAST_BUDGET = 4096


class SessionControl(Protocol):
    """The session, as this needs it."""

    site: GrpcState
    flow: SendFlow
    now: float
    last_stream: int

    @property
    def has_calls(self) -> bool:
        """Is a stream open?"""
        ...

    def greet(self) -> None:
        """Write our preface."""
        ...

    def put(self, *buffers: Bytes) -> None:
        """Write."""
        ...

    def wake(self) -> None:
        """There may be something to send by the flow."""
        ...


class Housekeeping:
    """`is_leaving`: the client knows for good which streams are served; `is_going`: that it should leave."""

    def __init__(self, desk: SessionControl) -> None:
        limits = desk.site.limits
        self._desk = desk
        self._guard = Guard(4 * max(limits.calls, _LEAST_BUDGET), desk.now)
        self._strikes = PingStrikes(limits.ping_seconds, limits.pings_without_calls, limits.ping_strikes)
        self._is_introduced = False  # their SETTINGS have come
        self._is_acknowledged = False  # ... and they know ours
        self._pings_without_data = 0
        self.is_going = False
        self.is_leaving = False
        self.awaits_pong = False

    def check_greeting(self, kind: int | None) -> None:
        """The first frame is SETTINGS; what is no HTTP/2 is not answered by it."""
        if not self._is_introduced:
            if kind != SETTINGS:
                raise ConnectionFault(PROTOCOL_ERROR, "The first frame is not SETTINGS.")
            self._is_introduced = True
            self._desk.greet()

    def spend(self, cost: int) -> None:
        """The client has sent something that is of no use by itself."""
        self._guard.spend(cost, self._desk.now)

    def note_served(self, amount: int) -> None:
        """A call got something."""
        self._guard.earn(amount)
        self._strikes.forgive()
        self._pings_without_data = 0

    def on_settings(self, flags: int, stream: int, payload: bytes, senders: Collection[Sender]) -> None:
        """Theirs, or that they know ours."""
        if stream:
            raise ConnectionFault(PROTOCOL_ERROR, "SETTINGS came on a stream.")
        if flags & ACK:
            if payload:
                raise ConnectionFault(FRAME_SIZE_ERROR, "An acknowledgement of SETTINGS has a payload.")
            if self._is_acknowledged:
                self.spend(SETTING)
            self._is_acknowledged = True
            return
        self.spend(SETTING)
        for number, value in frames.read_settings(payload):
            if number == frames.INITIAL_WINDOW_SIZE:
                self._desk.flow.set_initial(value, senders)
                self._desk.wake()
            elif number == frames.MAX_FRAME_SIZE:
                if not LEAST_FRAME_SIZE <= value <= MOST_FRAME_SIZE:
                    raise ConnectionFault(PROTOCOL_ERROR, f"A frame size of {value} is not allowed.")
                self._desk.flow.frame_size = value
            elif number == frames.ENABLE_PUSH and value > 1:
                raise ConnectionFault(PROTOCOL_ERROR, f"ENABLE_PUSH is {value}.")
        self._desk.put(frames.SETTINGS_ACK)

    def on_other(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """PING, GOAWAY, PRIORITY, and kinds that nobody knows, which are ignored (RFC 9113 4.1)."""
        if kind == PING:
            self._on_ping(flags, stream, payload)
            return
        self.spend(SMALL)
        if kind == GOAWAY and stream:
            raise ConnectionFault(PROTOCOL_ERROR, "GOAWAY came on a stream.")
        if kind == PRIORITY and not stream:
            raise ConnectionFault(PROTOCOL_ERROR, "PRIORITY came on no stream.")

    def _on_ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise ConnectionFault(PROTOCOL_ERROR, "PING came on a stream.")
        if len(payload) != 8:
            raise ConnectionFault(FRAME_SIZE_ERROR, f"A PING frame has {len(payload)} bytes; it takes 8.")
        if flags & ACK:
            if payload != _ALIVE_PING or not self.awaits_pong:
                self.spend(SMALL)
            self.awaits_pong &= payload != _ALIVE_PING
            if payload == _DRAIN_PING and self.is_going:
                self.finish_leaving()
            return
        self.spend(SMALL)
        self._strikes.count(self._desk.now, self._desk.has_calls)
        self._desk.put(frames.ping(payload, is_ack=True))

    # -- by us -----------------------------------------------------------------------------------------

    def ask_alive(self) -> bool:
        """Ping a silent client; False where that is not allowed now."""
        limits = self._desk.site.limits
        if not self._desk.has_calls and not limits.pings_without_calls:
            return False
        if self._pings_without_data >= limits.pings_without_data > 0:
            return False
        self._pings_without_data += 1
        self.awaits_pong = True
        self._desk.put(frames.ping(_ALIVE_PING))
        return True

    def leave(self) -> None:
        """First step: ask the client to open no more streams, and see when it has heard so (RFC 9113 6.8)."""
        if not self.is_going:
            self.is_going = True
            self._desk.greet()
            self._desk.put(frames.goaway(MOST_STREAM, NO_ERROR), frames.ping(_DRAIN_PING))

    def finish_leaving(self) -> None:
        """Second step: no stream that comes from here on is served; the client may send its call elsewhere."""
        if not self.is_leaving:
            self.is_leaving = True
            self._desk.put(frames.goaway(self._desk.last_stream, NO_ERROR))
