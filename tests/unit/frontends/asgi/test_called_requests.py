"""Requests that another program's server hands over: bodies in pieces, leaving, waiting, and what is refused."""

from dataclasses import replace

import pytest
from tests.harness.asgi_connection import BEYOND, OUR_OWN, AsgiHarness

from trivium.frontends.limits import HttpLimits
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head

BIG = b"abcdefgh" * 400_000  # 3.2 MB, of several steps
LIMITS = HttpLimits(
    body_seconds=20, write_seconds=30, part_seconds=10, slowest_rate=1000, unsent_bytes=200_000
)


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % size


def test_a_request_without_a_body_is_answered() -> None:
    stage = AsgiHarness(replace(HttpLimits(), fields=b"X-Own: 1\r\n"))
    stage.ask("/echo/hello")
    assert (stage.status, stage.body) == (200, b"hello")
    assert stage.fields == {b"x-echo": b"1", b"x-own": b"1", b"content-length": b"5"}
    stage.send_all()
    stage.check_nothing_is_left()


def test_head_has_the_length_alone() -> None:
    stage = AsgiHarness()
    stage.ask("/echo/hello", "HEAD")
    assert (stage.status, stage.body, stage.fields[b"content-length"]) == (200, b"", b"5")


@pytest.mark.parametrize("pieces_of", [1, 1000, 65_536, 10**9])
@pytest.mark.parametrize("size", [1, 5000, 65_536, 65_537, 2**20, 2**20 + 1, 3_200_000])
@pytest.mark.parametrize("is_declared", [True, False])
def test_a_body_comes_in_any_pieces(pieces_of: int, size: int, is_declared: bool) -> None:
    if size // pieces_of > 100_000:
        pytest.skip("the same as for fewer")
    body = BIG[:size]
    stage = AsgiHarness()
    framing = length(size) if is_declared else (b"transfer-encoding", b"chunked")
    connection = stage.ask("/echo/a", "POST", framing)
    for start in range(0, size, pieces_of):
        connection.take(body[start : start + pieces_of], start + pieces_of >= size)
    assert stage.status == 200
    assert stage.body == body
    stage.send_all()
    stage.check_nothing_is_left()


@pytest.mark.parametrize("size", [10, 100_000])
def test_more_or_less_than_the_length_says_is_refused(size: int) -> None:
    for sent in (size - 1, size + 1):
        stage = AsgiHarness()
        stage.ask("/echo/a", "POST", length(size)).take(bytes(sent), True)
        assert stage.status == 400
        stage.send_all()
        stage.check_nothing_is_left()


def test_a_body_beyond_the_limit_is_refused_before_it_is_read() -> None:
    stage = AsgiHarness(replace(HttpLimits(), body_bytes=1000))
    stage.ask("/echo/a", "POST", length(1001))
    assert stage.status == 413
    stage.ask("/echo/a", "POST", (b"transfer-encoding", b"chunked")).take(bytes(1001), False)
    assert stage.status == 413


def test_bodies_have_room_together() -> None:
    stage = AsgiHarness(replace(HttpLimits(), total_body_bytes=100_000))
    first = stage.ask("/echo/a", "POST", length(90_000))
    first.take(bytes(100), False)
    stage.ask("/echo/a", "POST", length(90_000)).take(bytes(100), False)
    assert stage.status == 503
    stage.send_all()
    first.left()
    stage.check_nothing_is_left()


def test_requests_in_work_are_bounded() -> None:
    stage = AsgiHarness(replace(HttpLimits(), connections=8), is_prompt=False)
    for _ in range(8):
        stage.ask("/echo/a")
    stage.ask("/echo/a")
    assert stage.status == 503
    assert int(stage.fields[b"retry-after"]) >= 1


def test_a_body_of_unknown_size_is_asked_for() -> None:
    stage = AsgiHarness()
    stage.ask("/echo/a", "POST", version="2", first=b"hello", is_last=True)
    assert (stage.status, stage.body) == (200, b"hello")
    stage.ask("/echo/a", "POST", version="2", first=b"", is_last=True)
    assert (stage.status, stage.body) == (200, b"a")
    stage.ask("/echo/a", "POST", version="2").take(b"hello", True)
    assert stage.body == b"hello"


@pytest.mark.parametrize("state", ["in work", "half a body", "half a large body", "answered"])
def test_who_leaves_leaves_nothing(state: str) -> None:
    stage = AsgiHarness(is_prompt=state == "answered")
    if state in ("in work", "answered"):
        connection = stage.ask("/echo/a")
    else:
        connection = stage.ask("/echo/a", "POST", length(10 if state == "half a body" else 200_000))
        connection.take(b"abc", False)
    connection.left()
    connection.left()
    for ticket in stage.core.tickets:
        assert state == "answered" or (ticket.cancelled and ticket.cancelled.code is Code.CANCELLED)
    stage.check_nothing_is_left()


def test_a_slow_body_is_refused_in_time() -> None:
    stage = AsgiHarness(LIMITS)
    stage.ask("/echo/a", "POST", length(100)).take(b"abc", False)
    stage.wait(19)
    assert not stage.caller.steps
    stage.wait(2)
    assert stage.status == 408


def test_a_stream_holds_the_model_back_and_goes_on() -> None:
    stage = AsgiHarness(LIMITS, is_prompt=False)
    connection = stage.ask("/echo/a")
    (ticket,) = stage.core.tickets
    ticket.say(bytes(70_000))
    assert ticket.is_held
    connection.taken(70_000, False)
    assert not ticket.is_held
    ticket.say(b"end", final=True)
    connection.taken(3, True)
    assert b"content-length" not in stage.fields
    stage.check_nothing_is_left()


def test_a_stream_that_nobody_reads_is_given_up() -> None:
    stage = AsgiHarness(LIMITS, is_prompt=False)
    stage.ask("/echo/a")
    stage.core.tickets[0].say(bytes(70_000))
    stage.wait(31)
    assert isinstance(stage.caller.broken_by, ServeError)
    assert stage.core.tickets[0].cancelled is not None
    stage.ask("/echo/a")
    stage.core.tickets[1].say(bytes(200_001))
    assert stage.caller.broken_by is not None
    stage.check_nothing_is_left()


def test_a_stream_that_falls_silent_breaks_off() -> None:
    stage = AsgiHarness(LIMITS, is_prompt=False)
    connection = stage.ask("/echo/a")
    stage.core.tickets[0].say(b"one")
    connection.taken(3, False)
    stage.wait(11)
    assert stage.caller.broken_by is not None
    stage.check_nothing_is_left()


def test_an_answer_that_is_none_breaks_off() -> None:
    stage = AsgiHarness()
    stage.ask("/echo/crash-send")
    assert stage.caller.broken_by is not None
    stage.check_nothing_is_left()


def test_a_caller_that_is_gone_ends_its_request() -> None:
    stage = AsgiHarness(is_prompt=False)
    stage.ask("/echo/a")
    stage.caller.is_there = False
    stage.core.tickets[0].say(b"one")
    stage.check_nothing_is_left()


def test_a_drain_answers_what_is_in_work_and_refuses_what_is_new() -> None:
    stage = AsgiHarness(is_prompt=False)
    first = stage.ask("/echo/a")
    caller = stage.caller
    stage.site.drain()
    stage.ask("/echo/a")
    assert stage.status == 500  # what `EchoProtocol` makes of DRAINING
    assert b"went down" in stage.body
    assert first.unfinished() == "GET /echo/a (0.0 s)"
    first.end()
    assert caller.steps


class Nobody:
    """Lets nobody in."""

    def authorize(self, scope: object, head: Head) -> None:
        raise ServeError(Code.UNAUTHENTICATED, "no key")


def test_keys_are_asked_for() -> None:
    stage = AsgiHarness(authorizer=Nobody())  # type: ignore[arg-type]
    stage.ask("/echo/a")
    assert stage.status == 401
    assert b"www-authenticate" in stage.fields


@pytest.mark.parametrize(
    ("server", "is_guarded", "status"),
    [
        (OUR_OWN, True, 200),
        (None, True, 200),
        (("testserver", 80), True, 200),
        (("::1", 80), True, 200),
        (BEYOND, True, 500),
        (("::", 80), True, 500),
        (BEYOND, False, 200),
    ],
)
def test_other_machines_are_let_in_where_somebody_said_so(
    server: tuple[str, int] | None, is_guarded: bool, status: int
) -> None:
    stage = AsgiHarness()
    stage.ask("/echo/a", server=server, is_guarded=is_guarded)
    assert stage.status == status  # FORBIDDEN is 500 to `EchoProtocol`
    assert (b"open=True" in stage.body) is (status == 500)
