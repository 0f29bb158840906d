"""Resets and ends of sending in every state, and drains."""

from dataclasses import replace

import pytest
from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.http.departures import Departure
from trivium.frontends.http.state import NEVER
from trivium.frontends.limits import HttpLimits
from trivium.types.errors import Code

BIG = b"abcdefgh" * 32768  # 256 KiB
LIMITS = HttpLimits(
    idle_seconds=60,
    header_seconds=10,
    body_seconds=20,
    write_seconds=30,
    linger_seconds=2,
    slowest_rate=1000,
    unsent_bytes=200_000,
)


def staged(is_prompt: bool = True) -> HttpHarness:
    return HttpHarness(LIMITS, FakeCore(is_prompt))


STATES = {
    "nothing sent": b"",
    "half a head": get("a")[:20],
    "half a small body": post("a", b"abc")[:-1],
    "half a large body": post("a", BIG)[:-1],
    "half a large body behind work": get("a") + post("a", BIG)[:-1],
    "half of the chunks": b"POST /echo/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "in work": get("a"),
    "in work with a lease": post("a", BIG),
    "in work with more behind": get("a") * 3,
    "decoding": post("costly", BIG),
    "refused": b"rubbish",
}


@pytest.mark.parametrize("state", STATES)
def test_a_reset_in_every_state_leaves_nothing(state: str) -> None:
    stage = staged(is_prompt=False)
    stage.send(STATES[state])
    stage.leave()
    for ticket in stage.core.tickets:
        assert ticket.cancelled is not None
        assert ticket.cancelled.code is Code.CANCELLED
    stage.check_nothing_is_left()


def test_a_reset_is_noticed_while_nothing_is_read() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a") * 3)
    assert not stage.transport.reads
    stage.wait(100)
    assert not stage.is_closed
    stage.core.tickets[0].echo()
    stage.transport.departure = Departure.GONE
    stage.wait(2)
    assert stage.transport.is_gone
    assert stage.core.tickets[1].cancelled is not None
    stage.check_nothing_is_left()


@pytest.mark.parametrize("state", STATES)
def test_cutting_in_every_state_leaves_nothing(state: str) -> None:
    stage = staged(is_prompt=False)
    stage.send(STATES[state])
    stage.connection.abort()
    stage.connection.abort()
    stage.transport.turn()
    stage.check_nothing_is_left()


@pytest.mark.parametrize("state", STATES)
def test_the_end_of_sending_in_every_state_ends_in_an_answer_or_a_close(state: str) -> None:
    stage = staged(is_prompt=False)
    stage.send(STATES[state])
    stage.end_sending()
    stage.decode_all()
    for ticket in stage.core.tickets:
        assert ticket.cancelled is None, "closing one half is no cancellation"
    while any(not ticket.is_over for ticket in stage.core.tickets):
        next(ticket for ticket in stage.core.tickets if not ticket.is_over).echo()
        stage.read()
    stage.transport.turn()
    assert stage.transport.is_gone
    match state:
        case "nothing sent":
            assert stage.statuses == []
        case "in work" | "in work with a lease" | "in work with more behind" | "decoding":
            assert set(stage.statuses) == {200}
        case "half a large body behind work":
            assert stage.statuses == [200, 400]
        case _:
            assert stage.statuses == [400]
    stage.check_nothing_is_left()


WAIT = LIMITS.half_close_seconds
ASKED = {"one": get("a"), "with a lease": post("a", BIG), "with more behind": get("a") * 3}


@pytest.mark.parametrize("state", ASKED)
def test_who_closes_its_side_is_served_if_its_answer_begins_in_time(state: str) -> None:
    stage = staged(is_prompt=False)
    stage.send(ASKED[state])
    stage.end_sending()
    stage.wait(WAIT - 0.5)
    while any(not ticket.is_over for ticket in stage.core.tickets):
        next(ticket for ticket in stage.core.tickets if not ticket.is_over).echo()
        stage.read()
    assert set(stage.statuses) == {200}
    stage.transport.turn()
    assert stage.transport.is_gone
    stage.check_nothing_is_left()


@pytest.mark.parametrize("state", ASKED)
def test_what_has_not_begun_in_time_is_cancelled_and_the_client_told(state: str) -> None:
    stage = staged(is_prompt=False)
    stage.send(ASKED[state])
    stage.end_sending()
    stage.wait(WAIT)
    assert [ticket.cancelled for ticket in stage.core.tickets] == [None]
    stage.wait(1.5)
    (ticket,) = stage.core.tickets
    assert ticket.cancelled is not None
    assert ticket.cancelled.code is Code.CANCELLED
    assert stage.statuses == [500]
    assert b"had not begun 2 s later" in stage.answers[0].body
    assert stage.transport.is_gone
    stage.check_nothing_is_left()


def test_an_answer_that_has_begun_goes_on_and_what_is_behind_it_is_not_begun() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a") * 2)
    stage.core.tickets[0].say(b"part")
    stage.end_sending()
    for _ in range(20):
        stage.wait(10)
        stage.core.tickets[0].say(b"part")
    stage.core.tickets[0].say(b"end", final=True)
    stage.transport.turn()
    assert len(stage.core.tickets) == 1
    assert stage.statuses == [200, 500]
    assert stage.answers[0].body == b"part" * 21 + b"end"
    stage.check_nothing_is_left()


def test_one_that_begins_late_behind_another_has_what_is_left_of_the_time() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a") * 2)
    stage.end_sending()
    stage.wait(WAIT - 0.5)
    stage.core.tickets[0].echo()
    assert stage.core.tickets[1].cancelled is None
    stage.wait(2)
    assert stage.core.tickets[1].cancelled is not None
    assert stage.statuses == [200, 500]
    stage.check_nothing_is_left()


def test_the_end_of_sending_is_noticed_while_nothing_is_read() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a") * 3)
    assert not stage.transport.reads
    stage.wait(100)
    stage.transport.departure = Departure.SENDS_NO_MORE
    stage.wait(WAIT)
    assert stage.core.tickets[0].cancelled is None
    stage.wait(2.5)
    assert stage.core.tickets[0].cancelled is not None
    stage.leave()
    stage.check_nothing_is_left()


def test_whose_connection_is_gone_with_its_end_is_cancelled_at_once() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a"))
    stage.transport.departure = Departure.GONE  # as over a Unix socket
    stage.end_sending()
    assert stage.core.tickets[0].cancelled is not None
    stage.check_nothing_is_left()


def test_without_a_limit_the_end_of_sending_cancels_nothing() -> None:
    stage = HttpHarness(replace(LIMITS, half_close_seconds=NEVER), FakeCore(is_prompt=False))
    stage.send(get("a"))
    stage.end_sending()
    stage.wait(1000)
    stage.core.tickets[0].echo()
    stage.transport.turn()
    assert stage.statuses == [200]
    assert stage.transport.is_gone


NOT_ASKED = ("nothing sent", "half a head", "refused")


@pytest.mark.parametrize("state", STATES)
def test_the_end_of_a_drain_answers_what_was_asked(state: str) -> None:
    stage = staged(is_prompt=False)
    stage.send(STATES[state])
    stage.site.drain()
    answered = stage.statuses
    stage.connection.end()
    assert stage.statuses == answered + ([] if state in NOT_ASKED else [500])
    if state not in NOT_ASKED:
        assert b"The server went down before this request was done" in stage.answers[0].body
    stage.connection.abort()
    stage.transport.turn()
    stage.check_nothing_is_left()


def test_the_end_of_a_drain_is_the_last_part_of_a_stream() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a"))
    stage.core.tickets[0].say(b"part")
    stage.site.drain()
    stage.connection.end()
    assert stage.answers[0].body.startswith(b"part")
    assert b"went down" in stage.answers[0].body
    assert stage.core.tickets[0].cancelled is not None
    assert stage.core.tickets[0].cancelled.code is Code.DRAINING
    stage.transport.turn()
    stage.check_nothing_is_left()


def test_draining_closes_what_is_idle_and_finishes_what_is_not() -> None:
    stage = staged(is_prompt=False)
    stage.site.drain()
    stage.transport.turn()
    assert stage.transport.is_gone
    stage.connect()
    stage.transport.turn()
    assert stage.transport.is_gone, "accepted a moment too late"
    stage = staged(is_prompt=False)
    stage.send(get("a") + get("b"))
    stage.wait(3)
    stage.site.drain()
    assert not stage.is_closed
    assert stage.connection.unfinished() == "GET /echo/a (3.0 s)"
    stage.core.tickets[0].echo()
    assert stage.statuses == [200]
    assert stage.answers[0].fields[b"connection"] == b"close"
    assert stage.is_closed
    assert stage.site.answered == 1
    assert stage.connection.unfinished() is None
    stage.check_nothing_is_left()


@pytest.mark.parametrize("abort", [5, -1])
def test_draining_waits_for_a_request_that_has_begun(abort: int) -> None:
    stage = staged()
    request = post("a", b"abc")
    stage.send(request[:20])
    stage.site.drain()
    stage.send(request[20:abort] if abort < 0 else b"")
    assert not stage.is_closed
    stage.send(request[abort:] if abort < 0 else request[20:])
    assert stage.statuses == [200]
    assert stage.answers[0].fields[b"connection"] == b"close"
    assert stage.transport.is_gone


def test_draining_lets_an_unsent_answer_leave() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    stage.send(post("a", BIG))
    stage.site.drain()
    assert "bytes were unsent" in (stage.connection.unfinished() or "")
    stage.flush()
    assert stage.statuses == [200]
    assert stage.transport.is_gone
    stage.check_nothing_is_left()
