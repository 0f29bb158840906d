"""Calls with messages both ways, over a session, with the loop of the test."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from tests.harness.echo_rpc import SERVER_STREAM, STREAM
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import Heard, Peer, data, prefixed
from tests.harness.h2_session import H2SessionHarness

from trivium.frontends.h2 import frames
from trivium.frontends.h2.channel import WINDOW
from trivium.frontends.h2.state import CANCELLED, LATE
from trivium.types.errors import ServeError
from trivium.types.wire import RpcAnswer


class HandLoop(asyncio.SelectorEventLoop):
    """A loop whose clock is moved by hand."""

    now = 0.0

    def time(self) -> float:
        return self.now


class Streams(H2SessionHarness):
    """Turns of the loop between what is said and what is heard."""

    async def turn(self, *pieces: bytes) -> None:
        self.say(*pieces)
        for _ in range(20):
            await asyncio.sleep(0)
            self.flush()

    async def open(self, stream: int, *more: tuple[str, str]) -> Heard:
        await self.turn(self.peer.open(stream, STREAM, *more))
        return self.peer.streams[stream]


def play(scene: Callable[[Streams], Awaitable[None]], is_prompt: bool = True, **options: Any) -> None:
    async def whole() -> None:
        talk = Streams(FakeCore(is_prompt), **options)
        talk.greet()
        await scene(talk)
        talk.session.lose()
        await talk.turn()
        talk.check_nothing_is_left()

    with asyncio.Runner(loop_factory=HandLoop) as runner:
        runner.run(whole())


def pass_time(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, HandLoop)
    loop.now += seconds


def test_a_stream_that_its_metadata_do_not_allow_ends_before_its_first_message() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1, ("locked", "1"))
        assert (heard.status, heard.details, heard.messages) == (3, "locked", [])
        assert not talk.session.streams
        assert (await talk.open(3)).status is None

    play(scene)


def test_messages_both_ways() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        await talk.turn(data(1, prefixed(b"echo a") + prefixed(b"echo b")))
        assert heard.messages == [b"a", b"b"]
        await talk.turn(data(1, prefixed(b"bad") + prefixed(b"echo c")))
        assert heard.messages[2:] == [b"error: bad message", b"c"]
        await talk.turn(data(1, b"", ends=True))
        assert (heard.status, heard.reset) == (0, None)
        assert not talk.session.streams

    play(scene)


def test_answers_in_any_order_and_in_parts() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        await talk.turn(data(1, prefixed(b"echo a") + prefixed(b"echo b"), ends=True))
        first, second = talk.core.tickets
        second.say(b"1")
        await talk.turn()
        second.echo()
        first.echo()
        await talk.turn()
        assert (heard.messages, heard.status) == ([b"1", b"b", b"a"], 0)

    play(scene, is_prompt=False)


def test_a_stream_without_a_message() -> None:
    async def scene(talk: Streams) -> None:
        await talk.turn(talk.peer.open(1, STREAM, ends=True))
        assert talk.peer.streams[1].status == 0
        assert len(talk.peer.streams[1].headers) == 1

    play(scene)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_reset_cancels_all(turns: int) -> None:
    """Also before the call has run for the first time."""

    async def scene(talk: Streams) -> None:
        talk.say(talk.peer.open(1, STREAM), data(1, prefixed(b"echo a")))
        if turns:
            await talk.turn()
        await talk.turn(frames.reset(1, frames.CANCEL))
        assert [ticket.cancelled for ticket in talk.core.tickets] == [CANCELLED] * turns
        assert not talk.site.visits

    play(scene, is_prompt=False)


def test_a_fault_of_our_own_ends_the_stream() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        await talk.turn(data(1, prefixed(b"crash")))
        assert heard.status == 13

    play(scene)


def test_a_deadline_ends_the_stream() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1, ("grpc-timeout", "1m"))
        await talk.turn(data(1, prefixed(b"echo a")))
        assert heard.status is None
        pass_time(0.002)
        await talk.turn()
        assert (heard.status, heard.details) == (4, "Deadline Exceeded")
        assert talk.core.tickets[0].cancelled is LATE

    play(scene, is_prompt=False)


@pytest.mark.parametrize(("timeout", "why"), [("20m", LATE), ("20S", CANCELLED)])
def test_a_client_that_leaves_at_its_deadline_is_late(timeout: str, why: ServeError) -> None:
    async def scene(talk: Streams) -> None:
        await talk.open(1, ("grpc-timeout", timeout))
        await talk.turn(data(1, prefixed(b"echo a")))
        pass_time(0.015)
        await talk.turn(frames.reset(1, frames.CANCEL))
        assert talk.core.tickets[0].cancelled is why

    play(scene, is_prompt=False)


def test_what_is_too_large_ends_the_stream() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        await talk.turn(data(1, prefixed(b"echo a") + prefixed(bytes(101))))
        assert heard.status == 8
        assert "(101 vs. 100)" in heard.details

    play(scene, message_bytes=100)


def test_a_call_that_is_cut_off_is_told() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        await talk.turn(data(1, prefixed(b"echo a")))
        talk.session.abort(RpcAnswer(code=14, details="going"))
        await talk.turn()
        assert (heard.status, heard.details) == (14, "going")
        assert not talk.site.visits

    play(scene, is_prompt=False)


def test_a_drain_ends_an_idle_stream() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        talk.site.drain()
        await talk.turn()
        assert heard.status == 14

    play(scene)


def test_a_slow_reader_holds_those_who_answer() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        await talk.turn(data(1, prefixed(b"echo a")))
        ticket = talk.core.tickets[0]
        said = 0
        while not ticket.is_held:
            ticket.say(bytes(10_000))
            said += 1
            await talk.turn()
        assert said < 20
        assert len(heard.data) == 100
        await talk.turn(talk.peer.grow(1, 2**20))
        assert len(heard.data) == 65535
        await talk.turn(talk.peer.grow(0, 2**20))
        assert not ticket.is_held
        ticket.echo()
        await talk.turn(data(1, b"", ends=True))
        assert heard.messages == [bytes(10_000)] * said + [b"a"]
        assert heard.status == 0

    play(scene, is_prompt=False, peer=Peer(initial=100))


def test_requests_that_nobody_reads_keep_the_window() -> None:
    """One in work is allowed; the others wait, until the client's window is used up."""

    async def scene(talk: Streams) -> None:
        await talk.open(1)
        message = prefixed(b"echo " + bytes(2**18))
        sent = 0
        while sent + len(message) <= WINDOW + talk.peer.granted.get(1, 0):
            sent += len(message)
            await talk.turn(data(1, message))
            assert sent < 3 * WINDOW
        assert len(talk.core.tickets) == 1
        assert talk.site.held_bytes <= WINDOW + len(message)
        while talk.core.tickets[-1].cancelled is None and len(talk.core.tickets) < sent // len(message):
            talk.core.tickets[-1].echo()
            await talk.turn(talk.peer.grow(0, 2**19), talk.peer.grow(1, 2**19))
        assert talk.peer.granted[1] >= sent - WINDOW // 2
        assert talk.session.streams[1].kept == 0

    play(scene, is_prompt=False, stream_requests=1)


def test_a_message_larger_than_the_window_arrives() -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        message = prefixed(b"echo " + bytes(3 * WINDOW))
        for at in range(0, len(message), 2**18):
            assert at <= WINDOW + talk.peer.granted.get(1, 0), "it cannot be sent"
            await talk.turn(data(1, message[at : at + 2**18]))
        await talk.turn(talk.peer.grow(0, 2**24), talk.peer.grow(1, 2**24))
        assert [len(text) for text in heard.messages] == [3 * WINDOW]

    play(scene)


def test_packed_messages_keep_their_order() -> None:
    async def scene(talk: Streams) -> None:
        noise = np.random.default_rng(0).bytes(20_000)
        heard = await talk.open(1, ("grpc-encoding", "gzip"))
        packed = [prefixed(gzip.compress(b"echo " + text), 1) for text in (noise, noise[::-1])]
        await talk.turn(
            data(1, packed[0] + prefixed(b"echo a")), data(1, packed[1] + prefixed(b"echo b"), ends=True)
        )
        assert heard.messages == []
        talk.threads.run()
        await talk.turn()
        talk.threads.run()
        await talk.turn()
        assert heard.messages == [noise, b"a", noise[::-1], b"b"]
        assert heard.status == 0

    play(scene)


def test_a_server_stream_answers_one_message_by_several_and_ignores_what_comes_behind_it() -> None:
    async def scene(talk: Streams) -> None:
        await talk.turn(talk.peer.open(1, SERVER_STREAM), data(1, prefixed(b"echo a") + prefixed(b"echo b")))
        (ticket,) = talk.core.tickets
        heard = talk.peer.streams[1]
        ticket.say(b"first")
        await talk.turn()
        ticket.say(b"second", final=True)
        await talk.turn(data(1, b"", frames.END_STREAM))
        assert (heard.messages, heard.status) == ([b"first", b"second"], 0)
        assert talk.core.tickets == [ticket]

    play(scene, is_prompt=False)


def test_a_server_stream_without_a_message_is_an_error() -> None:
    async def scene(talk: Streams) -> None:
        await talk.turn(talk.peer.open(1, SERVER_STREAM), data(1, b"", frames.END_STREAM))
        heard = talk.peer.streams[1]
        assert (heard.status, talk.core.tickets) == (13, [])
        assert "without a request message" in heard.details

    play(scene)


def test_an_error_ends_a_server_stream() -> None:
    async def scene(talk: Streams) -> None:
        await talk.turn(talk.peer.open(1, SERVER_STREAM), data(1, prefixed(b"bad"), frames.END_STREAM))
        assert (talk.peer.streams[1].status, talk.peer.streams[1].details) == (3, "bad message")

    play(scene)


def test_a_server_stream_that_is_reset_cancels_what_runs() -> None:
    async def scene(talk: Streams) -> None:
        await talk.turn(talk.peer.open(1, SERVER_STREAM), data(1, prefixed(b"echo a"), frames.END_STREAM))
        await talk.turn(frames.reset(1, frames.CANCEL))
        assert talk.core.tickets[0].cancelled is CANCELLED

    play(scene, is_prompt=False)


@pytest.mark.parametrize("takes", [999, 1000])
def test_a_client_that_takes_too_little_of_a_stream_ends_it(takes: int) -> None:
    async def scene(talk: Streams) -> None:
        heard = await talk.open(1)
        await talk.turn(data(1, prefixed(b"echo a")))
        (ticket,) = talk.core.tickets
        ticket.say(bytes(200_000))
        await talk.turn()
        assert ticket.is_held
        for _ in range(4):
            talk.time.now += 5.0
            talk.session.end_late(talk.time.now)
            await talk.turn()
        assert (heard.status, ticket.cancelled) == (None, None), "its time is not up"
        await talk.turn(talk.peer.grow(0, takes), talk.peer.grow(1, takes))
        for _ in range(2):
            talk.time.now += 5.0
            talk.session.end_late(talk.time.now)
            await talk.turn()
        if takes == 1000:
            assert heard.status is None
            return
        assert (heard.status, "too slowly" in heard.details) == (8, True)
        assert ticket.cancelled is not None
        assert not talk.session.streams

    play(scene, is_prompt=False, write_seconds=21.0, slowest_rate=1000)
