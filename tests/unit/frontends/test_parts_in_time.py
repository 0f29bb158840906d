"""Answers in parts whose next part does not come."""

from dataclasses import replace

from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.limits import HttpLimits
from trivium.types.errors import Code

LIMITS = HttpLimits(part_seconds=20, idle_seconds=1000, write_seconds=1000)


def staged(limits: HttpLimits = LIMITS) -> HttpHarness:
    stage = HttpHarness(limits, FakeCore(is_prompt=False))
    stage.send(get("a"))
    return stage


def test_an_answer_breaks_off_when_no_further_part_comes_in_time() -> None:
    stage = staged()
    stage.wait(100)  # for the first part, a run has its own time
    (ticket,) = stage.core.tickets
    for _ in range(3):
        ticket.say(b"part")
        stage.wait(15)
        assert ticket.cancelled is None
    stage.wait(10)
    assert ticket.cancelled is not None
    assert ticket.cancelled.code is Code.CANCELLED
    assert "no further part" in ticket.cancelled.message
    assert stage.is_closed
    stage.check_nothing_is_left()


def test_a_whole_answer_and_a_server_without_that_limit_wait_for_ever() -> None:
    stage = staged()
    stage.core.tickets[0].say(b"part")
    stage.core.tickets[0].say(b"end", final=True)
    stage.wait(100)
    stage.send(get("a"))
    stage.wait(100)
    assert stage.core.tickets[1].cancelled is None
    patient = staged(replace(LIMITS, part_seconds=HttpLimits().part_seconds))
    patient.core.tickets[0].say(b"part")
    patient.wait(10_000)
    assert patient.core.tickets[0].cancelled is None


def test_the_time_of_a_client_that_does_not_read_is_not_the_models() -> None:
    stage = staged()
    stage.transport.is_stuck = True
    (ticket,) = stage.core.tickets
    ticket.say(bytes(500_000))
    stage.wait(100)
    assert ticket.cancelled is None
    stage.transport.is_stuck = False
    stage.transport.flush()
    stage.wait(15)
    assert ticket.cancelled is None
    stage.wait(10)
    assert ticket.cancelled is not None
    stage.transport.turn()
    stage.check_nothing_is_left()


def test_a_request_that_waits_behind_does_not_lengthen_the_time() -> None:
    stage = staged()
    stage.send(post("a", b"x") * 3)
    stage.core.tickets[0].say(b"part")
    stage.wait(25)
    assert stage.core.tickets[0].cancelled is not None
