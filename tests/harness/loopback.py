"""A real front end on a free port of loopback, in this process, with a stub core.

After each scene nothing may be left (tasks, descriptors, leases, connections) and the server must still answer.
"""

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass

import psutil
import uvloop
from tests.harness.fake_core import EchoProtocol, FakeCore, FakeTicket
from tests.harness.http_client import get, post, read_answers

from trivium.frontends.http.frontend import HttpFrontend
from trivium.frontends.limits import HttpLimits
from trivium.types.interfaces import Sink
from trivium.types.listeners import BindAddress
from trivium.types.operations import Infer, Operation

BIG = bytes(range(256)) * 16384  # 4 MiB
PROCESS = psutil.Process()


class StubCore(FakeCore):
    """`echo` answers at once, `slow` after a fifth of a second, `never` when it is cancelled."""

    def submit(self, operation: Operation, sink: Sink) -> FakeTicket:
        ticket = super().submit(operation, sink)
        assert isinstance(operation, Infer)
        if operation.model == "slow":
            asyncio.get_running_loop().call_later(0.2, lambda: None if ticket.is_over else ticket.echo())
        elif operation.model != "never":
            ticket.echo()
        return ticket


@dataclass
class Served:
    """A running front end."""

    frontend: HttpFrontend
    core: StubCore
    port: int
    takes_bodies: bool = True  # else the limits are too small for one

    @property
    def lent(self) -> int:
        return self.core.lent

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """One request on a connection of its own; status and body of the last answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            writer.write_eof()
            answers = read_answers(await asyncio.wait_for(reader.read(), 60))
            return answers[-1].status, answers[-1].body
        finally:
            await leave(writer)

    async def is_well(self) -> None:
        """It answers, and nothing is left of those who were here before."""
        assert await self.ask(get("echo")) == (200, b"echo")
        if self.takes_bodies:
            assert await self.ask(post("echo", BIG)) == (200, BIG)
        await until(lambda: not self.frontend.debug_state().connections)
        await until(lambda: not self.lent)  # a thread may still be reading what nobody waits for any more
        await until(lambda: not self.frontend.debug_state().held_bytes)


@contextlib.asynccontextmanager
async def served(limits: HttpLimits, *, takes_bodies: bool = True) -> AsyncIterator[Served]:
    """A front end on a free port of loopback; checks what it leaves behind."""
    loop = asyncio.get_running_loop()
    (
        await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    ).close()  # libuv keeps a descriptor in reserve
    await asyncio.sleep(0.01)
    tasks, descriptors = asyncio.all_tasks(), PROCESS.num_fds()
    core = StubCore(is_prompt=False)
    stub = Served(None, core, 0, takes_bodies)  # type: ignore[arg-type]
    stub.frontend = HttpFrontend(core, {"echo": EchoProtocol()}, EchoProtocol(), limits)
    stub.port = (await stub.frontend.start(BindAddress("127.0.0.1"))).port
    try:
        yield stub
        await stub.is_well()
    finally:
        await stub.frontend.close()
    assert stub.lent == 0
    await until(lambda: asyncio.all_tasks() == tasks)
    await until(lambda: PROCESS.num_fds() <= descriptors)
    assert all(ticket.is_over for ticket in core.tickets)


def run(limits: HttpLimits, scene: Callable[[Served], Awaitable[None]], *, takes_bodies: bool = True) -> None:
    """Play one scene on a loop of its own."""

    async def play() -> None:
        async with served(limits, takes_bodies=takes_bodies) as stub:
            await asyncio.wait_for(scene(stub), 120)

    main: Coroutine[object, object, None] = play()
    uvloop.run(main)


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something to become true; fail if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.01)


async def leave(writer: asyncio.StreamWriter, *, by_reset: bool = False) -> None:
    if by_reset:
        transport_socket = writer.get_extra_info("socket")
        transport_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()
    with contextlib.suppress(OSError):  # the server was first
        await writer.wait_closed()


async def all_that_comes(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), 60)
