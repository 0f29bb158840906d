"""Drives one HTTP connection without a socket: fake transport, core and protocol, and a clock moved by hand."""

import asyncio
from collections.abc import Callable

from tests.harness.fake_core import EchoProtocol, FakeCore
from tests.harness.http_client import Seen, read_answers

from trivium.frontends.http.connection import HttpConnection
from trivium.frontends.http.departures import Departure
from trivium.frontends.http.state import Decoded, HttpState
from trivium.frontends.limits import HttpLimits
from trivium.frontends.turns import TurnQueue
from trivium.types.interfaces import ALLOW_ALL, Authorizer


class FakeTransport(asyncio.Transport):
    """Sends everything at once, or with `is_stuck` nothing until `flush`."""

    def __init__(self, protocol: HttpConnection, address: str = "192.0.2.1") -> None:
        super().__init__({"peername": (address, 4711), "socket": self})
        self.departure = Departure.STAYS
        self.protocol = protocol
        self.sent = bytearray()
        self.unsent = bytearray()
        self.is_stuck = False
        self.is_paused = False
        self.reads = True
        self.is_shut = False  # our half
        self.is_gone = False
        self._closing = False
        self._high = 64 * 1024

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self._closing, "written to a closed transport"
        assert not self.is_shut, "written behind the end"
        assert isinstance(data, bytes | bytearray | memoryview)
        if self.is_stuck or self.unsent:
            self.unsent += data
            if len(self.unsent) > self._high and not self.is_paused:
                self.is_paused = True
                self.protocol.pause_writing()
        else:
            self.sent += data

    def writelines(self, list_of_data: object) -> None:
        self.write(b"".join(list_of_data))  # type: ignore[call-overload]

    def flush(self, size: int | None = None) -> None:
        size = len(self.unsent) if size is None else size
        self.sent += self.unsent[:size]
        del self.unsent[:size]
        if self.is_paused and len(self.unsent) <= self._high // 4:
            self.is_paused = False
            self.protocol.resume_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self._high = high

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
        self.reads = False

    def abort(self) -> None:
        self.close()
        self.unsent.clear()

    def turn(self) -> None:
        """What a loop does later: tell of the end."""
        if self._closing and not self.unsent and not self.is_gone:
            self.is_gone = True
            self.protocol.connection_lost(None)


class HttpHarness:
    """`send` what a client sends; `answers` is what it got."""

    def __init__(
        self,
        limits: HttpLimits | None = None,
        core: FakeCore | None = None,
        authorizer: Authorizer = ALLOW_ALL,
    ) -> None:
        self.core = core or FakeCore()
        self.offloaded: list[tuple[Callable[[], Decoded], Callable[[Decoded | Exception], None]]] = []
        self.site = HttpState(
            core=self.core,
            routes={"echo": EchoProtocol()},
            fallback=EchoProtocol(),
            limits=limits or HttpLimits(),
            authorizer=authorizer,
            offload=lambda work, done: self.offloaded.append((work, done)),
        )
        self.site.departure = lambda plug: self.transport.departure
        self.soon: list[Callable[[], None]] = []
        self.site.turns = TurnQueue(self.soon.append)
        self.address = "192.0.2.1"
        self.kernel = bytearray()  # sent by the client, not yet read
        self.connect()

    def connect(self) -> None:
        self.connection = HttpConnection(self.site)
        self.transport = FakeTransport(self.connection, self.address)
        self.connection.connection_made(self.transport)

    @property
    def lent(self) -> int:
        return self.core.lent

    def send(self, data: bytes, pieces_of: int | None = None) -> None:
        if pieces_of is None:
            self.kernel += data
            self.read()
            return
        for start in range(0, len(data), pieces_of):
            self.kernel += data[start : start + pieces_of]
            self.read()

    def read(self) -> None:
        while self.soon or (self.kernel and self.transport.reads):
            while self.soon:
                self.soon.pop(0)()
            if not (self.kernel and self.transport.reads):
                continue
            buffer = self.connection.get_buffer(-1)
            size = min(len(buffer), len(self.kernel))
            buffer[:size] = self.kernel[:size]
            del self.kernel[:size]
            self.connection.buffer_updated(size)
            if buffer.obj is self.site.scratch.obj:
                buffer[:size] = b"\xaa" * size  # others use it now
        self.transport.turn()

    def end_sending(self) -> None:
        self.read()
        if not self.transport.is_closing() and not self.connection.eof_received():
            self.transport.close()
        self.transport.turn()

    def leave(self) -> None:
        """Reset by the client."""
        if not self.transport.is_gone:
            self.transport.unsent.clear()
            self.transport.close()
            self.transport.turn()

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.site.sweep(self.site.now + 0.5, 0.0)
        self.transport.turn()
        self.read()

    def flush(self, size: int | None = None) -> None:
        self.transport.flush(size)
        self.transport.turn()
        self.read()

    def decode_all(self) -> None:
        while self.offloaded:
            work, done = self.offloaded.pop(0)
            try:
                result: Decoded | Exception = work()
            except Exception as error:
                result = error
            done(result)

    @property
    def answers(self) -> list[Seen]:
        return read_answers(bytes(self.transport.sent))

    @property
    def statuses(self) -> list[int]:
        return [answer.status for answer in self.answers]

    @property
    def is_closed(self) -> bool:
        return self.transport.is_closing() or self.transport.is_shut

    def check_nothing_is_left(self) -> None:
        self.leave()
        self.decode_all()
        for ticket in self.core.tickets:
            assert ticket.is_over, "an operation runs for nobody"
        assert self.lent == 0, "a lease is out"
        assert self.site.held_bytes == 0, "bytes are reserved"
        assert not self.site.connections, "a connection is registered"
