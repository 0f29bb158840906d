"""Drives one request to the ASGI application without a loop: a caller that keeps what it is given, a fake core, and a
clock moved by hand.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.harness.fake_core import EchoProtocol, FakeCore

from trivium.frontends.asgi.caller import AnswerPiece, AnswerStart, CallEnd, Step
from trivium.frontends.asgi.connection import AsgiConnection
from trivium.frontends.asgi.scope import request_of
from trivium.frontends.http.state import HttpState
from trivium.frontends.limits import HttpLimits
from trivium.types.interfaces import ALLOW_ALL, Authorizer

OUR_OWN, BEYOND = ("127.0.0.1", 80), ("192.0.2.7", 80)


@dataclass
class KeepingCaller:
    """Keeps the steps that it is given; it sends them when the test says so."""

    steps: list[Step] = field(default_factory=list)
    wanted: int = 0
    is_there: bool = True
    broken_by: Exception | None = None

    def give(self, step: Step) -> bool:
        self.steps.append(step)
        return self.is_there

    def read_on(self) -> None:
        self.wanted += 1

    def break_off(self, why: Exception | None) -> None:
        self.broken_by = why
        self.steps.append(CallEnd(why))


class AsgiHarness:
    """`ask` begins a request; `status`, `fields` and `body` are what its client gets."""

    def __init__(
        self,
        limits: HttpLimits | None = None,
        *,
        is_prompt: bool = True,
        authorizer: Authorizer = ALLOW_ALL,
    ) -> None:
        self.core = FakeCore(is_prompt)
        self.offloaded: list[tuple[Any, Any]] = []
        self.site = HttpState(
            core=self.core,
            routes={"echo": EchoProtocol()},
            fallback=EchoProtocol(),
            limits=limits or HttpLimits(),
            authorizer=authorizer,
            offload=lambda work, done: self.offloaded.append((work, done)),
        )

    def ask(
        self,
        path: str,
        method: str = "GET",
        *fields: tuple[bytes, bytes],
        server: tuple[str, int] | None = OUR_OWN,
        version: str = "1.1",
        first: bytes | None = None,
        is_last: bool = False,
        is_guarded: bool = True,
    ) -> AsgiConnection:
        scope = {
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "headers": ((b"host", b"x"), *fields),
            "server": server,
            "client": ("192.0.2.1", 4711),
            "http_version": version,
        }
        self.caller = KeepingCaller()
        self.connection = AsgiConnection(self.site, self.caller, request_of(scope), is_guarded)  # type: ignore[arg-type]
        self.connection.begin(first, is_last)
        return self.connection

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.site.sweep(self.site.now + 0.5, 0.0)

    def send_all(self) -> None:
        """Have the caller say that everything is sent."""
        for step in self.caller.steps:
            if isinstance(step, AnswerPiece):
                self.connection.taken(step.size, step.final)

    @property
    def status(self) -> int:
        (start,) = (step for step in self.caller.steps if isinstance(step, AnswerStart))
        return start.status

    @property
    def fields(self) -> dict[bytes, bytes]:
        (start,) = (step for step in self.caller.steps if isinstance(step, AnswerStart))
        return dict(start.headers)

    @property
    def body(self) -> bytes:
        pieces = [step for step in self.caller.steps if isinstance(step, AnswerPiece)]
        return b"".join(bytes(buffer) for piece in pieces for buffer in piece.buffers)

    def check_nothing_is_left(self) -> None:
        assert not self.site.connections
        assert self.site.held_bytes == self.core.lent == self.site.unread.held_bytes == 0
        assert not self.site.addresses.connections_from("192.0.2.1")
