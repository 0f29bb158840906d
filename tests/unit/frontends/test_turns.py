"""Turns of connections with much input, on a clock moved by hand; and what a connection does when a turn is over."""

from collections.abc import Callable

import pytest
from tests.harness.echo_rpc import UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_connection import H2ConnectionHarness
from tests.harness.h2_peer import data, prefixed
from tests.harness.http_client import get
from tests.harness.http_connection import HttpHarness

from trivium.frontends.turns import REST, SECONDS, SLICE, TurnQueue


class Clock:
    """Moves on by `step` seconds whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Loop:
    """What was asked for soon, a turn at a time."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.pauses: list[float] = []
        self.computed = 0.0
        self.clock = Clock()
        self.turns = TurnQueue(self.soon.append, self._later, self.clock, lambda: self.computed)

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        self.pauses.append(seconds)
        self.soon.append(work)

    def turn(self) -> bool:
        soon, self.soon[:] = list(self.soon), []
        for work in soon:
            work()
        return bool(soon)


def test_all_large_input_of_a_turn_has_one_time_together_and_the_next_turn_has_another() -> None:
    loop = Loop()
    assert not loop.turns.is_spent()
    loop.clock.now += SECONDS / 2
    assert not loop.turns.is_spent()
    loop.clock.now += SECONDS / 2
    assert loop.turns.is_spent()
    assert loop.turn()
    assert not loop.turns.is_spent()
    loop.turn()
    assert not loop.turn(), "nobody waits, and the loop may sleep"


@pytest.mark.parametrize("cost", [0.1, 1.0, 3.0])
def test_who_waits_goes_on_in_turns_and_no_turn_takes_longer_than_its_time_and_one_piece(cost: float) -> None:
    loop, done, left = Loop(), [], dict.fromkeys("abc", 7)

    def work(name: str) -> Callable[[], bool]:
        def piece() -> bool:
            loop.clock.now += cost * SECONDS
            done.append(name)
            left[name] -= 1
            return bool(left[name])

        return piece

    for name in left:
        loop.turns.add(work(name))
    while True:
        began = loop.clock.now
        if not loop.turn():
            break
        assert loop.clock.now - began <= SECONDS * (1 + cost) * 1.001
    assert "".join(done) == "abc" * 7


def test_input_of_a_grpc_connection_that_takes_too_long_waits_and_none_of_it_is_lost() -> None:
    talk = H2ConnectionHarness(FakeCore())
    clock = Clock()
    talk.shared.turns = TurnQueue(talk.loop.call_soon, talk.loop.call_later, clock, lambda: 0.0)
    talk.greet()
    body = bytes(range(256)) * 200
    stream = talk.peer.open(1, UNARY)
    wire = stream + b"".join(
        data(1, prefixed(b"echo " + body)[at : at + 100], ends=False) for at in range(0, len(body) + 10, 100)
    )
    wire += data(1, b"", ends=True)
    clock.step = SECONDS * 0.6
    buffer = talk.connection.get_buffer(-1)
    buffer[: len(wire)] = wire
    talk.connection.buffer_updated(len(wire))
    buffer[: len(wire)] = b"\xaa" * len(wire)
    assert not talk.transport.reads, "what has come is more than this turn has time for"
    assert not talk.core.tickets
    turns = 0
    while not talk.core.tickets:
        turns += 1
        assert talk.loop.turn()
    assert turns >= len(wire) // SLICE // 2
    talk.turn()
    assert talk.transport.reads
    talk.lose()


def test_a_grpc_connection_that_is_lost_while_its_input_waits_is_forgotten() -> None:
    talk = H2ConnectionHarness(FakeCore())
    clock = Clock()
    talk.shared.turns = TurnQueue(talk.loop.call_soon, talk.loop.call_later, clock, lambda: 0.0)
    talk.greet()
    clock.step = SECONDS
    wire = talk.peer.open(1, UNARY) + data(1, prefixed(bytes(60_000)), ends=False) * 2
    talk.connection.get_buffer(-1)[: len(wire)] = wire
    talk.connection.buffer_updated(len(wire))
    assert not talk.transport.reads
    talk.lose()
    while talk.loop.turn():
        pass


def test_input_of_an_http_connection_that_takes_too_long_waits_and_none_of_it_is_lost() -> None:
    stage, loop = HttpHarness(), Loop()
    stage.site.turns = loop.turns
    loop.clock.step = SECONDS
    assert not loop.turns.is_spent()
    body = b"".join(b"1\r\n%c\r\n" % (at % 251) for at in range(12_000))
    stage.send(
        b"POST /echo/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        + body
        + b"0\r\n\r\n"
        + get("b")
    )
    assert stage.statuses == []
    assert not stage.transport.reads
    while loop.turn():
        stage.read()
    assert [answer.body for answer in stage.answers] == [bytes(at % 251 for at in range(12_000)), b"b"]
    assert stage.transport.reads
    stage.check_nothing_is_left()


def test_others_who_are_busy_get_twice_the_time_and_nobody_else_a_pause() -> None:
    loop = Loop()

    def work() -> bool:
        loop.clock.now += SECONDS
        loop.computed += SECONDS
        return True

    loop.turns.add(work)
    for _ in range(3):
        loop.turn()
    assert not loop.pauses, "nobody else has anything to do"
    for expected in (1, 2, 3):
        loop.clock.now += SECONDS
        loop.computed += SECONDS
        loop.turn()
        assert loop.pauses == pytest.approx([REST * SECONDS] * expected)
    loop.clock.now += REST * SECONDS
    loop.turn()
    assert len(loop.pauses) == 3, "they are gone"


def test_while_somebody_waits_all_large_input_does() -> None:
    loop = Loop()
    loop.turns.add(lambda: True)
    assert loop.turns.is_spent()
