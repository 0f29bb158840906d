"""A conversation without a socket: a peer and a session, and what is left of it afterwards."""

from typing import Any

from tests.harness.echo_rpc import FakeThreads, FakeTime, shared
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import Heard, Peer

from trivium.frontends.h2.session import Session
from trivium.frontends.shares import AddressUse


class H2SessionHarness:
    """`say` what the client sends; the peer hears what comes back at once."""

    def __init__(self, core: FakeCore | None = None, peer: Peer | None = None, **limits: Any) -> None:
        self.core = core or FakeCore()
        self.peer = peer or Peer()
        self.time = FakeTime()
        self.threads = FakeThreads()
        self.shared = shared(self.core, self.time, self.threads, **limits)
        self.site = self.shared.site
        self.wakes = 0
        self.session = Session(self.shared, "ipv4:192.0.2.1:4711", AddressUse(), self.time.now, self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def greet(self) -> "H2SessionHarness":
        self.say(self.peer.greeting())
        return self

    def say(self, *pieces: bytes) -> None:
        self.session.now = self.time.now
        for piece in pieces:
            self.session.feed(memoryview(bytearray(piece)))
        self.flush()

    def flush(self) -> None:
        """As a connection does at the end of its turn."""
        while True:
            self.session.pump()
            self.session.spare()
            out, self.session.out = self.session.out, []
            if not out:
                return
            self.peer.hear(b"".join(out))

    def call(self, stream: int, path: str, *messages: bytes, **options: Any) -> Heard:
        self.say(self.peer.call(stream, path, *messages, **options))
        return self.peer.streams[stream]

    def check_nothing_is_left(self) -> None:
        """After the connection is gone."""
        self.session.lose()
        assert not self.session.streams
        assert not self.site.visits
        assert self.site.held_bytes == 0
        assert self.session.flow.unsent == 0
        for ticket in self.core.tickets:
            assert ticket.is_over, "an operation runs for nobody"
