"""Time-outs by a clock moved by hand, and back-pressure both ways."""

import pytest
from tests.harness.fake_core import FakeCore, FakeTicket
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.limits import HttpLimits
from trivium.types.errors import Code
from trivium.types.interfaces import Sink
from trivium.types.operations import Operation

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


def test_a_head_that_begins_with_the_end_of_a_large_body_has_its_time_too() -> None:
    stage = staged(is_prompt=False)
    stage.send(post("a", BIG) + b"G")
    stage.wait(60)
    assert stage.statuses == [], "nothing is due while the first one is in work"
    stage.core.tickets[0].echo()
    stage.wait(11)
    assert stage.statuses == [200, 408]
    assert stage.lent == 0
    stage.check_nothing_is_left()


def test_a_client_that_leaves_with_its_next_head_begun_leaves_nothing() -> None:
    stage = staged(is_prompt=False)
    stage.send(post("a", BIG) + b"G")
    assert stage.lent == 1
    stage.leave()
    assert stage.core.tickets[0].cancelled is not None
    assert stage.lent == 0
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


def test_parts_that_come_while_the_client_reads_do_not_hide_that_it_reads() -> None:
    stage = staged(is_prompt=False)
    stage.send(get("a"))
    stage.transport.is_stuck = True
    stage.core.tickets[0].say(b"x" * 100_000)
    for _ in range(20):
        stage.wait(24)
        stage.core.tickets[0].say(b"x" * 10_000)
        stage.flush(10_000)
        stage.wait(6)
    assert not stage.transport.is_gone
    stage.core.tickets[0].say(b"", final=True)
    stage.flush()
    assert len(stage.answers[0].body) == 300_000


def test_too_many_parts_within_submit_cancel_too() -> None:
    class Eager(FakeCore):
        def submit(self, operation: Operation, sink: Sink) -> FakeTicket:
            ticket = super().submit(operation, sink)
            for _ in range(10):
                ticket.say(b"x" * 50_000)
            return ticket

    stage = HttpHarness(LIMITS, Eager(is_prompt=False))
    stage.transport.is_stuck = True
    stage.send(get("a"))
    assert stage.core.tickets[0].cancelled is not None
    stage.transport.turn()
    stage.check_nothing_is_left()


def test_the_lease_behind_a_small_answer_is_given_back_when_that_has_left() -> None:
    stage = staged(is_prompt=False)
    stage.send(post("a", BIG))
    stage.transport.is_stuck = True
    stage.core.tickets[0].say(b"small", final=True)
    assert stage.lent == 1
    stage.flush()
    assert stage.lent == 0
    assert stage.answers[0].body == b"small"


def test_a_closed_connection_waits_for_its_last_bytes_only_so_long() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    stage.send(get("a", b"Connection: close\r\n"))
    stage.wait(29)
    assert not stage.transport.is_gone
    stage.wait(2)
    assert stage.transport.is_gone
