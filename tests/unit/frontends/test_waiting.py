"""Time-outs by a clock moved by hand, back-pressure, disconnects in every state, drains."""

from errno import ECONNRESET

import pytest
from tests.unit.frontends.stage import FakeCore, Stage, get, post

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


def staged(is_prompt: bool = True) -> Stage:
    return Stage(LIMITS, FakeCore(is_prompt))


def test_an_idle_connection_is_closed_and_a_request_starts_the_wait_anew() -> None:
    stage = staged()
    stage.wait(59)
    stage.send(get("a"))
    stage.wait(59)
    assert not stage.is_closed
    stage.wait(2)
    assert stage.transport.is_gone
    assert stage.statuses == [200]
    stage.check_nothing_is_left()


def test_a_head_must_be_whole_in_time_however_it_trickles() -> None:
    stage = staged()
    for byte in get("abcdefghijkl"):
        stage.send(bytes([byte]))
        stage.wait(1)
    assert stage.statuses == [408]
    assert stage.is_closed
    stage.check_nothing_is_left()


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_body_at_one_byte_per_second(size: int) -> None:
    stage = staged()
    stage.send(post("a", b"x" * size)[:-size])
    for _ in range(19):
        stage.send(b"x")
        stage.wait(1)
    assert stage.statuses == []
    stage.send(b"x")
    stage.wait(2)
    assert stage.statuses == [408]
    assert stage.transport.is_shut
    stage.wait(3)
    assert stage.transport.is_gone
    stage.check_nothing_is_left()


def test_chunks_at_one_byte_per_second() -> None:
    stage = staged()
    stage.send(b"POST /echo/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(22):
        stage.send(b"1\r\nx\r\n")
        stage.wait(1)
    assert stage.statuses == [408]
    stage.check_nothing_is_left()


def test_a_body_that_is_fast_enough_may_take_its_time() -> None:
    stage = staged()
    stage.send(post("a", b"x" * 200_000)[:-200_000])
    for _ in range(100):
        stage.send(b"x" * 2000)
        stage.wait(1)
    assert stage.statuses == [200]


def test_work_may_take_any_time() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a"))
    stage.wait(1000)
    stage.core.tickets[0].echo()
    assert stage.statuses == [200]
    stage.wait(59)
    assert not stage.is_closed


def test_the_half_head_behind_a_long_work_gets_its_time() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a") + get("b")[:20])
    stage.wait(1000)
    stage.core.tickets[0].echo()
    stage.wait(9)
    stage.send(get("b")[20:])
    stage.core.tickets[1].echo()
    assert stage.statuses == [200, 200]


def test_a_client_that_never_reads_is_cut_off() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    stage.send(post("a", BIG))
    assert stage.lent == 1
    stage.wait(29)
    assert not stage.transport.is_gone
    stage.wait(2)
    assert stage.transport.is_gone
    stage.check_nothing_is_left()


def test_a_client_that_reads_slowly_is_not_cut_off() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    stage.send(post("a", BIG))
    while stage.transport.unsent:
        stage.wait(29)
        stage.flush(20_000)
        stage.wait(1)
    assert stage.statuses == [200]


def test_nothing_is_read_while_an_answer_is_unsent() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    stage.send(post("a", BIG) * 40)
    assert len(stage.core.tickets) == 1
    assert stage.lent == 1
    assert len(stage.kernel) >= 39 * len(BIG)
    while stage.kernel or stage.transport.unsent:
        stage.flush()
        assert stage.lent <= 1
    assert stage.statuses == [200] * 40
    stage.check_nothing_is_left()


def test_small_answers_pile_up_to_the_high_water_only() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    stage.send(post("a", b"x" * 10_000) * 100)
    assert len(stage.core.tickets) < 10
    assert stage.site.held_bytes == 0
    while stage.kernel or stage.transport.unsent:
        stage.flush()
    assert stage.statuses == [200] * 100


def test_an_answer_in_parts_that_is_not_read_is_cut_off() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a"))
    stage.transport.is_stuck = True
    ticket = stage.core.tickets[0]
    for _ in range(10):
        if not ticket.is_over:
            ticket.say(b"x" * 50_000)
    assert ticket.cancelled is not None
    assert ticket.cancelled.code is Code.CANCELLED
    stage.transport.turn()
    stage.check_nothing_is_left()


def test_an_answer_in_parts_that_is_read_slowly_goes_on_past_the_write_limit() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a"))
    stage.transport.is_stuck = True
    for _ in range(10):
        stage.core.tickets[0].say(b"x" * 70_000)
        stage.flush()
        stage.wait(100)  # for the model
    stage.core.tickets[0].say(b"", final=True)
    stage.flush()
    assert len(stage.answers[0].body) == 700_000


def test_a_closed_connection_waits_for_its_last_bytes_only_so_long() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    stage.send(get("a", b"Connection: close\r\n"))
    stage.wait(29)
    assert not stage.transport.is_gone
    stage.wait(2)
    assert stage.transport.is_gone


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
    stage.transport.error = ECONNRESET
    stage.wait(2)
    assert stage.transport.is_gone
    assert stage.core.tickets[1].cancelled is not None
    stage.check_nothing_is_left()


@pytest.mark.parametrize("state", STATES)
def test_cutting_in_every_state_leaves_nothing(state: str) -> None:
    stage = staged(is_prompt=False)
    stage.send(STATES[state])
    stage.connection.cut()
    stage.connection.cut()
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


def test_a_whole_request_and_its_end_may_come_together_with_the_first_work() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a"))
    stage.end_sending()
    stage.wait(1000)
    stage.core.tickets[0].echo()
    stage.transport.turn()
    assert stage.statuses == [200]
    assert stage.transport.is_gone


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
    assert stage.site.finished == 1
    assert stage.connection.unfinished() is None
    stage.check_nothing_is_left()


@pytest.mark.parametrize("cut", [5, -1])
def test_draining_waits_for_a_request_that_has_begun(cut: int) -> None:
    stage = staged()
    request = post("a", b"abc")
    stage.send(request[:20])
    stage.site.drain()
    stage.send(request[20:cut] if cut < 0 else b"")
    assert not stage.is_closed
    stage.send(request[cut:] if cut < 0 else request[20:])
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
