"""Drives one HTTP/2 connection without a socket, over a transport that can be stuck, with a clock moved by hand."""

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from tests.harness.echo_rpc import FakeThreads, FakeTime, shared
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import Peer

from trivium.frontends.h2.connection import H2Connection
from trivium.frontends.turns import TurnQueue


class Handle:
    """A timer."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeLoop:
    """What a connection uses of a loop."""

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self._soon: list[Callable[[], None]] = []
        self._timers: list[tuple[float, int, Handle, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def call_soon(self, work: Callable[[], None]) -> None:
        self._soon.append(work)

    def call_later(self, seconds: float, work: Callable[[], None]) -> Handle:
        handle = Handle()
        heapq.heappush(self._timers, (self.time.now + seconds, next(self._numbers), handle, work))
        return handle

    def turn(self) -> int:
        soon, self._soon = self._soon, []
        for work in soon:
            work()
        return len(soon)

    def wait(self, seconds: float) -> None:
        until = self.time.now + seconds
        while self.turn():
            pass
        while self._timers and self._timers[0][0] <= until:
            when, _, handle, work = heapq.heappop(self._timers)
            self.time.now = when
            if not handle.is_cancelled:
                work()
            while self.turn():
                pass
        self.time.now = until

    @property
    def timers(self) -> int:
        return sum(not handle.is_cancelled for _, _, handle, _ in self._timers)


class FakeTransport:
    """`is_stuck`: the client reads nothing."""

    def __init__(self, connection: H2Connection, peername: Any) -> None:
        self._connection = connection
        self._peername = peername
        self.sent = bytearray()
        self.unsent = bytearray()
        self.writes = 0
        self.is_stuck = False
        self.is_paused = False
        self.reads = True
        self.is_shut = False
        self.is_aborted = False
        self._closing = False
        self._high = 0

    def get_extra_info(self, name: str) -> Any:
        assert name == "peername"
        return self._peername

    def set_write_buffer_limits(self, high: int) -> None:
        self._high = high

    def write(self, data: bytes) -> None:
        assert not self._closing
        assert not self.is_shut
        assert data
        self.writes += 1
        if not self.is_stuck and not self.unsent:
            self.sent += data
            return
        self.unsent += data
        if len(self.unsent) > self._high and not self.is_paused:
            self.is_paused = True
            self._connection.pause_writing()

    def writelines(self, buffers: list[bytes]) -> None:
        self.write(b"".join(buffers))

    def flush(self, size: int = 10**9) -> None:
        self.sent += self.unsent[:size]
        del self.unsent[:size]
        if self.is_paused and len(self.unsent) <= self._high // 4:
            self.is_paused = False
            self._connection.resume_writing()

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def pause_reading(self) -> None:
        assert self.reads
        self.reads = False

    def resume_reading(self) -> None:
        assert not self.reads
        self.reads = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.is_shut = True

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True

    def abort(self) -> None:
        self._closing = self.is_aborted = True
        self.unsent.clear()


class H2ConnectionHarness:
    """`say` what the client sends; the peer hears what has left."""

    def __init__(
        self, core: FakeCore | None = None, peername: Any = ("192.0.2.1", 4711), **limits: Any
    ) -> None:
        self.core = core or FakeCore()
        self.time = FakeTime()
        self.loop = FakeLoop(self.time)
        self.shared = shared(self.core, self.time, FakeThreads(), **limits)
        self.shared.turns = TurnQueue(self.loop.call_soon)
        self.site = self.shared.site
        self.connections: set[H2Connection] = set()
        self.peername = peername
        self.peer = Peer()
        self.connection, self.transport = self.connect()

    def connect(self) -> tuple[H2Connection, FakeTransport]:
        connection = H2Connection(self.shared, self.connections, self.loop)  # type: ignore[arg-type]
        transport = FakeTransport(connection, self.peername)
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport

    def greet(self) -> "H2ConnectionHarness":
        self.say(self.peer.greeting())
        return self

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            buffer = self.connection.get_buffer(-1)
            buffer[: len(piece)] = piece
            self.connection.buffer_updated(len(piece))
            buffer[: len(piece)] = b"\xaa" * len(piece)  # others use it now
        self.turn()

    def turn(self) -> None:
        while self.loop.turn():
            pass
        self.hear()

    def hear(self) -> None:
        sent, self.transport.sent = self.transport.sent, bytearray()
        self.peer.hear(bytes(sent))

    def wait(self, seconds: float) -> None:
        self.loop.wait(seconds)
        self.hear()

    def lose(self) -> None:
        """The transport is gone; nothing may be left."""
        self.connection.connection_lost(None)
        assert not self.connections
        assert not self.site.visits
        assert self.site.held_bytes == 0
        assert self.loop.timers == 0
        for ticket in self.core.tickets:
            assert ticket.is_over, "an operation runs for nobody"
