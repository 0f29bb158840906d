"""Holds what all connections of one HTTP front end share: the core and the protocols, the limits and what has been
used of them, the time, one scratch buffer.

Decides which protocol a path belongs to and whether there is room for a body. Opens no socket, reads no clock:
`now` is set by the sweeper, twice a second, which is as exact as time-outs need to be. While every connection is
idle the sweeper sleeps and `wake` is set; whoever has something new to do calls it before it looks at `now`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trivium.codecs.page_rule import PageRule
from trivium.core.unread_answers import UnreadAnswers
from trivium.frontends.access_log import AnswerLog
from trivium.frontends.causes import CauseLog
from trivium.frontends.http.departures import Departure, departure_of
from trivium.frontends.http.preflight import Preflights
from trivium.frontends.limits import SMALL_BODY, HttpLimits
from trivium.frontends.shares import Addresses, AddressUse, has_room
from trivium.frontends.turns import Offload, TurnQueue
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL, Authorizer, Core, Encoder, WireProtocol
from trivium.types.listeners import split_prefix
from trivium.types.operations import Operation

_log = logging.getLogger(__name__)

NEVER = float("inf")
RETRY_SECONDS = 1.0
"""After which who found no room may try again."""
SWEEP_SECONDS = 0.5
"""Between two looks at connections that have something under way."""

Decoded = tuple[Operation, Encoder]


class ClientConnection(Protocol):
    """A connection as the sweeper and the drain see it."""

    deadline: float

    @property
    def is_idle(self) -> bool:
        """Is nothing under way?"""
        ...

    def on_deadline(self) -> None:
        """`deadline` has passed."""
        ...

    def drain(self) -> None:
        """Close, if nothing is under way; else it will close behind its answer."""
        ...

    def unfinished(self) -> str | None:
        """The request in work or the answer being sent, for people."""
        ...

    def end(self) -> None:
        """The time of a drain is over: answer what is in work with that, and close."""
        ...

    def abort(self) -> None:
        """Cancel everything and close without waiting."""
        ...


@dataclass(frozen=True, slots=True)
class HttpDebugState:
    """Describes one HTTP front end: its open connections, the bytes that it holds of request bodies and of answers that
    clients have not read, and whether it sleeps because no connection has anything under way.
    """

    connections: int
    held_bytes: int
    unread_bytes: int
    is_asleep: bool


@dataclass(slots=True, eq=False)
class HttpState:
    """Holds what the connections of one listener share. Used on the loop only."""

    core: Core
    routes: Mapping[str, WireProtocol]
    fallback: WireProtocol
    limits: HttpLimits
    offload: Offload
    authorizer: Authorizer = ALLOW_ALL
    pages: PageRule | None = None
    log: AnswerLog | None = None
    wake: Callable[[], None] | None = None
    now: float = 0.0
    epoch: float = 0.0
    held_bytes: int = 0
    is_draining: bool = False
    answered: int = 0  # requests, of all connections
    turns: TurnQueue = field(default_factory=TurnQueue)
    departure: Callable[[object], Departure] = departure_of
    unread: UnreadAnswers = field(init=False)
    preflights: Preflights | None = field(init=False)  # where pages of other servers may read answers
    _by_ending: dict[str, list[tuple[str, WireProtocol]]] = field(init=False)
    _known: str = field(init=False)  # beginnings of paths, for who asks for another
    causes: CauseLog = field(default_factory=CauseLog)
    addresses: Addresses = field(default_factory=Addresses)
    connections: set[ClientConnection] = field(default_factory=set)
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    scratch: memoryview = field(default_factory=lambda: memoryview(bytearray(SMALL_BODY)))

    def __post_init__(self) -> None:
        self.unread = UnreadAnswers(self.limits.total_body_bytes)
        self.preflights = Preflights(self.limits.origin) if self.limits.origin else None
        self._by_ending = {}
        self._known = ", ".join(f"/{segment}" for segment in sorted(self.routes))
        for prefix, protocol in self.routes.items():
            first, ending = split_prefix(prefix)
            if ending:
                self._by_ending.setdefault(first, []).append((ending, protocol))

    def protocol_of(self, path: str) -> WireProtocol:
        """The protocol that owns `path`, by its first segment or by its end; ServeError with NOT_FOUND else."""
        first = path.split("/", 2)[1]
        protocol = self._of_ending(first, path) if first in self._by_ending and first else None
        protocol = protocol or self.routes.get(first) or self._of_ending("", path)
        if protocol is None:
            text = f"nothing is served at {path[:80]!r}; paths begin with {self._known}."
            raise ServeError(Code.NOT_FOUND, text)
        return protocol

    def _of_ending(self, first: str, path: str) -> WireProtocol | None:
        path = path.rstrip("/")
        return next(
            (protocol for ending, protocol in self._by_ending.get(first, ()) if path.endswith(ending)), None
        )

    def reserve(self, size: int, use: AddressUse) -> None:
        """Room for `size` more bytes of bodies from an address, to be given back by `unreserve`; ServeError where there
        is none.
        """
        limits = self.limits
        if not has_room(limits.total_body_bytes, self.held_bytes, use.held_bytes, size, limits.body_bytes):
            raise ServeError(
                Code.QUEUE_FULL,
                f"request bodies of {self.held_bytes} bytes are held, {use.held_bytes} of them from this address, and "
                f"{size} more would exceed the limit of {limits.total_body_bytes}, or the address's share of it; try "
                "again later.",
                retry_after=RETRY_SECONDS,
                status=503,
            )
        self.held_bytes += size
        use.held_bytes += size

    def unreserve(self, size: int, use: AddressUse) -> None:
        """The bytes are needed no more."""
        self.held_bytes -= size
        use.held_bytes -= size
        assert self.held_bytes >= 0, "more bytes of bodies were given back than reserved"
        if not use.connections:
            self.addresses.settle(use)

    def debug_state(self) -> HttpDebugState:
        """Copy what the connections hold at this moment, for a developer who debugs."""
        return HttpDebugState(
            len(self.connections), self.held_bytes, self.unread.held_bytes, self.wake is not None
        )

    def leave(self, connection: ClientConnection) -> None:
        """A connection is gone. One that was too many never came in."""
        self.connections.discard(connection)
        if not self.connections:
            self.emptied.set()

    def drain(self) -> None:
        """Close what is idle; what is not closes behind its answer."""
        if self.wake is not None:
            self.wake()
        self.is_draining = True
        for connection in tuple(self.connections):
            connection.drain()

    def idle_until(self) -> float | None:
        """The first deadline if every connection is idle, for ever if there is none; None if one is not idle."""
        if all(connection.is_idle for connection in self.connections):
            return min((connection.deadline for connection in self.connections), default=NEVER)
        return None

    def sweep(self, now: float, epoch: float) -> None:
        """Set the time and tell every connection whose deadline has passed."""
        self.now, self.epoch = now, epoch
        for connection in [connection for connection in self.connections if connection.deadline <= now]:
            try:
                connection.on_deadline()
            except Exception:  # one connection's trouble must not end all time-outs
                _log.exception("a connection failed at its deadline and is cut off")
                connection.abort()
        if self.log is not None:
            self.log.flush()


class Sweeper:
    """Looks at the connections twice a second while one of them has something under way, else when the first idle one
    has waited long enough: a server that nobody asks anything does not wake. Keeps the state's time and its
    connections' deadlines, on `loop` with its time, from here until `close`.
    """

    def __init__(self, site: HttpState, loop: asyncio.AbstractEventLoop) -> None:
        self._site = site
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._sweep()

    def close(self) -> None:
        """No sweep follows."""
        self._site.wake = None
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        site = self._site
        site.sweep(self._loop.time(), time.time())
        until = site.idle_until()
        if until is None:
            self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)
            return
        site.wake = self._wake
        seconds = until - site.now
        self._timer = self._loop.call_later(seconds, self._sweep) if seconds != float("inf") else None

    def _wake(self) -> None:
        site = self._site
        site.wake = None
        site.now, site.epoch = self._loop.time(), time.time()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)
