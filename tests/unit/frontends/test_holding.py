"""Whoever makes the parts of an answer is held while its client does not read: over HTTP, and on a gRPC stream."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get
from tests.harness.http_connection import HttpHarness
from tests.unit.frontends.test_grpc_calls import Client, streaming

from trivium.frontends.h2.stream_call import FULL
from trivium.frontends.http.departures import Departure


def stuck() -> HttpHarness:
    """A client that has asked for an answer in parts, and does not read."""
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.transport.is_stuck = True
    stage.send(get("a"))
    return stage


def test_a_client_that_does_not_read_holds_whoever_answers() -> None:
    stage = stuck()
    ticket = stage.core.tickets[0]
    ticket.say(b"x" * 60_000)
    assert not ticket.is_held
    ticket.say(b"x" * 10_000)
    assert ticket.is_held
    stage.flush(30_000)
    assert ticket.is_held, "it has read a little"
    stage.flush(35_000)
    assert not ticket.is_held
    ticket.say(b"x" * 70_000)
    assert ticket.is_held
    ticket.say(b"", final=True)
    stage.flush()
    assert len(stage.answers[0].body) == 140_000
    stage.check_nothing_is_left()


def test_a_transport_that_is_full_later_holds_too() -> None:
    stage = stuck()
    ticket = stage.core.tickets[0]
    ticket.say(b"x")
    stage.connection.pause_writing()
    assert ticket.is_held
    stage.connection.resume_writing()
    assert not ticket.is_held


def test_an_answer_that_has_been_given_holds_nobody() -> None:
    stage = stuck()
    first = stage.core.tickets[0]
    first.say(b"x")
    first.say(b"x" * 70_000, final=True)
    assert not first.is_held
    stage.send(get("b"))
    stage.flush()
    second = stage.core.tickets[1]
    second.say(b"x")
    assert (first.is_held, second.is_held) == (False, False)


def test_a_client_that_leaves_while_it_is_held_cancels() -> None:
    stage = stuck()
    stage.core.tickets[0].say(b"x" * 70_000)
    stage.leave()
    assert stage.core.tickets[0].cancelled is not None
    stage.check_nothing_is_left()


def test_of_a_client_that_sends_no_more_it_is_found_out_whether_it_has_left() -> None:
    stage = stuck()
    stage.end_sending()
    stage.core.tickets[0].say(b"x")
    stage.wait(3)
    assert stage.core.tickets[0].cancelled is None
    stage.transport.departure = Departure.GONE
    stage.wait(2)
    assert stage.core.tickets[0].cancelled is not None


def several(scene: Callable[[Client], Awaitable[None]]) -> None:
    streaming(scene, is_prompt=False, unsent_bytes=10 * FULL)


def test_a_stream_that_is_not_read_holds_all_its_requests_and_reads_no_more() -> None:
    async def scene(client: Client) -> None:
        client.reads.clear()
        await client.send(b"echo x", b"echo y")
        first, second = client.core.tickets
        first.say(b"small")
        await client.turn()  # the writer waits with this one
        first.say(bytes(FULL))
        assert (first.is_held, second.is_held) == (False, False)
        second.say(b"more")
        assert (first.is_held, second.is_held) == (True, True)
        await client.send(b"echo z", b"echo last")
        assert len(client.core.tickets) == 3, "one was being read"
        assert client.core.tickets[2].is_held
        client.reads.set()
        await client.turn()
        assert [ticket.is_held for ticket in client.core.tickets] == [False] * 4
        for ticket in client.core.tickets:
            ticket.echo()
        await client.send(None)
        assert (await client.ends()).code == 0

    several(scene)


def test_a_slow_stream_holds_nobody_elses() -> None:
    async def play() -> None:
        core = FakeCore(is_prompt=False)
        slow, quick = Client(core), Client(core)
        slow.reads.clear()
        await slow.send(b"echo x")
        await quick.send(b"echo y")
        for _ in range(3):
            core.tickets[0].say(bytes(FULL))
            core.tickets[1].say(bytes(FULL))
            await quick.turn()
        assert [ticket.is_held for ticket in core.tickets] == [True, False]
        slow.reads.set()
        for client, ticket in zip((slow, quick), core.tickets, strict=True):
            await client.turn()
            ticket.echo()
            await client.send(None)
        assert [(await client.ends()).code for client in (slow, quick)] == [0, 0]

    asyncio.run(play())


def test_a_stream_that_is_cancelled_while_it_is_held_cancels_its_requests() -> None:
    async def scene(client: Client) -> None:
        client.reads.clear()
        await client.send(b"echo x")
        for _ in range(3):
            client.core.tickets[0].say(bytes(FULL))
            await client.turn()
        client.over.cancel()
        await asyncio.wait([client.over])
        assert client.core.tickets[0].cancelled is not None
        assert client.site.held_bytes == 0

    several(scene)
