"""Streams of the gRPC front end without a socket, over the same stand-in core as HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.harness.echo_rpc import FakeThreads
from tests.harness.fake_core import FakeCore

from trivium.frontends.h2.call import COSTLY_BYTES
from trivium.frontends.h2.state import (
    ANSWERED,
    CANCELLED,
    LAST_RESORT,
    LATE,
    ActiveCall,
    GrpcLimits,
    GrpcState,
    RpcMethod,
    why_reset,
)
from trivium.frontends.h2.stream_call import FULL, Stream
from trivium.frontends.shares import AddressUse
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Operation, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind, costly_rpc

STREAM = "/test.Echo/Stream"


class EchoRpc:
    """A request is `verb text`; the answer is the text, or parts of it as the core says them."""

    def kind(self, method: str) -> RpcKind:
        return RpcKind.UNARY

    def scope(self, method: str) -> AccessScope:
        return AccessScope.INFER

    def admit(self, call: RpcCall) -> None:
        """All are let in."""

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        return b"costly" in message

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, "EchoRpc"]:
        verb, _, text = message.partition(b" ")
        if verb == b"bad":
            raise ServeError(Code.INVALID, "bad message")
        if verb == b"crash":
            raise RuntimeError("a fault in decode")
        return Infer(verb.decode(), Raw((RawPart(text),)), deadline=call.timeout), self

    def encode(self, part: ResponsePart) -> RpcAnswer:
        if part.error is not None:
            return self.refuse(RpcCall(""), part.error)
        assert isinstance(part.payload, Raw)
        text = bytes(part.payload.parts[0].data)
        if text == b"crash":
            raise RuntimeError("a fault in encode")
        if text == b"end all":
            return RpcAnswer(code=9, details="ended")
        said = RpcAnswer(text, part.final or text == b"enough")
        return costly_rpc(lambda: said) if text.startswith(b"slowly") else said

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        if call.method == STREAM:
            return RpcAnswer(f"error: {error.message}".encode())
        return RpcAnswer(code=3, details=error.message)


def site(core: FakeCore, **limits: Any) -> GrpcState:
    return GrpcState(core, {"test.Echo": EchoRpc()}, GrpcLimits(**limits))


@pytest.mark.parametrize(
    ("timeout", "waited", "why"),
    [
        (None, 1e9, CANCELLED),
        (10.0, 8.9, CANCELLED),
        (10.0, 9.9, LATE),  # grpc says 10.0 for all from 9.91 s on
        (10.0, 10.1, LATE),
        (0.05, 0.01, CANCELLED),
        (0.05, 0.048, LATE),  # 2 ms on its way
        (0.0, 0.0, LATE),
    ],
)
def test_a_client_that_leaves_at_its_deadline_is_late(
    timeout: float | None, waited: float, why: ServeError
) -> None:
    assert why_reset(timeout, waited) is why


class Place:
    """The connection of a stream."""

    def __init__(self, site: GrpcState) -> None:
        self.site = site
        self.use = AddressUse()
        self.peer = "somebody"
        self.now = 0.0
        self.elsewhere = FakeThreads()

    def leave(self, visit: ActiveCall, code: int, is_answered: bool) -> None:
        self.site.leave(visit, is_answered)


class Client:
    """The other end of a stream: what it sends, what it has read; with `reads` False it takes nothing."""

    def __init__(self, core: FakeCore, **limits: Any) -> None:
        self.site = site(core, **limits)
        self.core = core
        self.heard: list[bytes] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self._sent: asyncio.Queue[bytes | None] = asyncio.Queue()
        place = Place(self.site)
        self.threads = place.elsewhere
        self.stream = Stream(
            place,
            RpcMethod(RpcKind.STREAM, AccessScope.INFER, EchoRpc()),
            lambda: RpcCall(STREAM),
            self._sent.get,
            self._write,
        )
        self.site.enter(self.stream)
        self.over = asyncio.ensure_future(self.stream.run())

    async def _write(self, message: bytes) -> None:
        await self.reads.wait()
        self.heard.append(message)

    async def send(self, *messages: bytes | None) -> None:
        for message in messages:
            self._sent.put_nowait(message)
        await self.turn()

    async def turn(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def ends(self, held: int = 0) -> RpcAnswer:
        """Its status; what is `held` then is read by a thread."""
        said = await asyncio.wait_for(self.over, 5)
        assert self.site.held_bytes == held
        assert all(ticket.is_over or ticket.cancelled for ticket in self.core.tickets)
        return said


def streaming(scene: Callable[[Client], Awaitable[None]], is_prompt: bool = True, **limits: Any) -> None:
    async def play() -> None:
        await scene(Client(FakeCore(is_prompt), **limits))

    asyncio.run(play())


def test_requests_are_answered_in_any_order() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo a", b"echo b", b"echo c", None)
        for index in (2, 0, 1):
            client.core.tickets[index].echo()
        assert await client.ends() == RpcAnswer()
        assert client.heard == [b"c", b"a", b"b"]

    streaming(scene, is_prompt=False)


def test_errors_are_in_band_and_our_faults_end_the_stream() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"bad", b"echo a", b"crash", b"echo b", None)
        assert await client.ends() == LAST_RESORT
        assert client.heard == [b"error: bad message", b"a"]

    streaming(scene)


def test_parts_come_as_they_are_said() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x")
        ticket = client.core.tickets[0]
        ticket.say(b"1")
        await client.turn()
        assert client.heard == [b"1"]
        ticket.say(b"2", final=True)
        await client.send(None)
        assert await client.ends() == RpcAnswer()
        assert client.heard == [b"1", b"2"]

    streaming(scene, is_prompt=False)


def test_an_answer_that_ends_early_ends_its_operation_alone() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x", b"echo y")
        first, second = client.core.tickets
        first.say(b"enough")
        assert first.cancelled is ANSWERED
        second.echo()
        await client.send(None)
        assert await client.ends() == RpcAnswer()
        assert client.heard == [b"enough", b"y"]

    streaming(scene, is_prompt=False)


def test_a_cancelled_stream_cancels_all_that_runs() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x", b"echo y")
        client.core.tickets[1].echo()
        client.over.cancel()
        with pytest.raises(asyncio.CancelledError):
            await client.ends()
        assert [ticket.cancelled for ticket in client.core.tickets] == [CANCELLED, None]
        assert client.site.held_bytes == 0

    streaming(scene, is_prompt=False)


def test_a_status_ends_the_stream_behind_what_was_said() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x", b"echo y")
        client.core.tickets[0].say(b"1")
        client.core.tickets[0].say(b"end all")
        assert await client.ends() == RpcAnswer(code=9, details="ended")
        assert client.heard == [b"1"]
        assert client.core.tickets[1].cancelled is not None

    streaming(scene, is_prompt=False)


def test_a_client_that_does_not_read_is_given_up() -> None:
    async def scene(client: Client) -> None:
        client.reads.clear()
        await client.send(b"echo x")
        ticket = client.core.tickets[0]
        for _ in range(5):
            ticket.say(bytes(30))
            await client.turn()
        assert ticket.cancelled is not None
        assert client.heard == []
        client.reads.set()
        said = await client.ends()
        assert said.code == 8
        assert "left 120 bytes of responses unread; the limit is 100" in said.details
        assert len(client.heard) == 1

    streaming(scene, is_prompt=False, unsent_bytes=100)


def test_one_large_response_is_no_reason() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo " + bytes(1000), None)
        assert await client.ends() == RpcAnswer()
        assert len(client.heard[0]) == 1000

    streaming(scene, unsent_bytes=100)


def test_no_more_requests_are_read_than_may_be_in_work() -> None:
    async def scene(client: Client) -> None:
        await client.send(*[b"echo %d" % turn for turn in range(5)], None)
        assert len(client.core.tickets) == 2
        for index in range(5):
            client.core.tickets[index].echo()
            await client.turn()
        assert await client.ends() == RpcAnswer()
        assert client.heard == [b"0", b"1", b"2", b"3", b"4"]

    streaming(scene, is_prompt=False, stream_requests=2)


def test_no_room_for_a_request() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x", b"echo y", None)
        client.core.tickets[0].echo()
        assert await client.ends() == RpcAnswer()
        assert b"would exceed the limit of 8" in client.heard[0]
        assert client.heard[1] == b"x"

    streaming(scene, is_prompt=False, total_message_bytes=8)


def test_a_drain_ends_an_idle_stream_at_once_and_others_when_answered() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x")
        client.site.drain()
        await client.turn()
        assert not client.over.done()
        client.core.tickets[0].echo()
        said = await client.ends()
        assert (said.code, client.heard) == (14, [b"x"])

    async def idle(client: Client) -> None:
        client.site.drain()
        assert (await client.ends()).code == 14

    streaming(scene, is_prompt=False)
    streaming(idle)


def test_a_costly_response_is_written_elsewhere_and_what_follows_waits() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x", b"echo y", None)
        slow, other = client.core.tickets
        slow.say(b"slowly 1")
        assert slow.is_held
        slow.say(b"2")
        other.echo()
        await client.turn()
        assert client.heard == [b"y"], "another request waits for it"
        client.threads.run()
        await client.turn()
        assert client.heard == [b"y", b"slowly 1", b"2"]
        assert not slow.is_held
        slow.say(b"slowly 3")
        slow.say(b"slowly 4", final=True)
        client.threads.run()
        assert await client.ends() == RpcAnswer()
        assert client.heard[3:] == [b"slowly 3", b"slowly 4"]

    streaming(scene, is_prompt=False)


def test_who_is_full_stays_held_when_something_was_written() -> None:
    async def scene(client: Client) -> None:
        client.reads.clear()
        await client.send(b"echo x")
        ticket = client.core.tickets[0]
        ticket.say(b"slowly " + bytes(FULL + 1))
        client.threads.run()
        await client.turn()
        ticket.say(b"slowly " + bytes(FULL + 1))
        client.threads.run()
        assert ticket.is_held
        ticket.say(b"slowly too")
        client.reads.set()
        await client.turn()
        assert ticket.is_held, "its last part is being written"
        client.threads.run()
        assert not ticket.is_held
        ticket.echo()
        await client.send(None)
        assert await client.ends() == RpcAnswer()

    streaming(scene, is_prompt=False, unsent_bytes=10 * FULL)


def test_a_request_that_is_answered_at_once_and_slowly() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo slowly", None)
        assert not client.over.done()
        client.threads.run()
        assert await client.ends() == RpcAnswer()
        assert client.heard == [b"slowly"]

    streaming(scene)


def test_a_stream_that_ends_while_a_response_is_written() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"echo x", b"echo y")
        client.core.tickets[0].say(b"slowly")
        client.core.tickets[0].say(b"behind")
        client.core.tickets[1].say(b"end all")
        assert (await client.ends(held=len(b"echo x"))).code == 9
        client.threads.run()
        assert client.heard == []
        assert client.site.held_bytes == 0

    streaming(scene, is_prompt=False)


def test_a_message_that_a_thread_reads_stays_booked_when_its_stream_has_ended() -> None:
    async def scene(client: Client) -> None:
        message = b"echo costly" + bytes(COSTLY_BYTES)
        await client.send(message)
        client.over.cancel()
        await asyncio.wait([client.over])
        assert client.site.held_bytes == len(message)
        client.threads.run()
        assert client.site.held_bytes == 0
        assert not client.core.tickets

    streaming(scene, is_prompt=False)


def test_a_large_message_stays_booked_while_the_core_holds_it() -> None:
    async def scene(client: Client) -> None:
        message = b"echo " + bytes(COSTLY_BYTES)
        await client.send(message)
        lease = client.core.tickets[0].operation.payload.lease
        assert lease is not None
        lease.hold()
        client.over.cancel()
        await asyncio.wait([client.over])
        assert client.site.held_bytes == len(message)
        lease.release()
        assert client.site.held_bytes == 0

    streaming(scene, is_prompt=False)
