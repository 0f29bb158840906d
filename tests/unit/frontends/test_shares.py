"""Shares of a pool, by tables; and that they are kept on both wires, from first to last."""

import pytest
from tests.harness.echo_rpc import UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_connection import H2ConnectionHarness
from tests.harness.h2_peer import data, prefixed
from tests.harness.h2_session import H2SessionHarness
from tests.harness.http_connection import HttpHarness

from trivium.frontends.h2 import frames
from trivium.frontends.http.request import STEP
from trivium.frontends.limits import HttpLimits
from trivium.frontends.shares import Addresses, has_room
from trivium.types.shares import share_of


@pytest.mark.parametrize(
    ("limit", "share"), [(4096, 1024), (100, 25), (64, 16), (63, 16), (17, 16), (16, 16), (3, 3), (1, 1)]
)
def test_a_share_is_a_quarter_but_no_less_than_anybody_needs(limit: int, share: int) -> None:
    assert share_of(limit) == share


@pytest.mark.parametrize(
    ("limit", "taken", "own", "more", "expected"),
    [
        (100, 0, 0, 1, True),
        (100, 74, 74, 1, True),  # the pool is not three quarters full
        (100, 75, 75, 1, False),
        (100, 75, 24, 1, True),
        (100, 75, 25, 1, False),
        (100, 99, 0, 1, True),
        (100, 100, 0, 1, False),
        (100, 60, 60, 20, False),
        (100, 60, 0, 20, True),
        (10, 9, 9, 1, True),  # so few that one client may need them all
        (10, 10, 0, 1, False),
    ],
)
def test_an_address_is_bounded_once_a_pool_is_three_quarters_full(
    limit: int, taken: int, own: int, more: int, expected: bool
) -> None:
    assert has_room(limit, taken, own, more) is expected


def test_an_address_is_forgotten_with_its_last_connection() -> None:
    addresses = Addresses()
    place, use = addresses.enter(("192.0.2.1", 1))
    assert addresses.enter(("192.0.2.1", 2)) == (place, use)
    assert addresses.enter(("192.0.2.2", 2))[1] is not use
    assert addresses.enter("") == addresses.enter(None)
    assert use.connections == 2
    addresses.leave(place)
    addresses.leave(place)
    assert addresses.enter(("192.0.2.1", 3))[1] is not use


def test_http_connections_of_one_address_leave_a_quarter_to_others() -> None:
    stage = HttpHarness(HttpLimits(connections=100))
    for _ in range(80):
        stage.connect()
    assert stage.statuses == [503]
    assert len(stage.site.connections) == 75
    stage.address = "192.0.2.9"
    for _ in range(25):
        stage.connect()
    assert len(stage.site.connections) == 100


def test_bodies_of_one_address_leave_a_quarter_to_others() -> None:
    stage = HttpHarness(HttpLimits(total_body_bytes=40 * STEP, body_bytes=10 * STEP), FakeCore())
    head = b"POST /echo/a HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (2 * STEP)
    for _ in range(30):
        stage.connect()
        stage.send(head + b"x")
    assert stage.site.held_bytes == 30 * STEP
    stage.connect()
    stage.send(head + b"x")
    assert stage.statuses == [503]
    stage.address = "192.0.2.9"
    for _ in range(5):
        stage.connect()
        stage.send(head + bytes(2 * STEP))
        assert stage.statuses == [200]


def test_streams_of_a_grpc_connection_are_announced_and_bounded() -> None:
    talk = H2SessionHarness(FakeCore(is_prompt=False), calls=100).greet()
    assert talk.peer.settings[frames.MAX_CONCURRENT_STREAMS] == 25
    for stream in range(1, 61, 2):
        talk.say(talk.peer.open(stream, UNARY) + data(stream, prefixed(b"echo x"), ends=True))
    assert len(talk.core.tickets) == 25
    assert [talk.peer.streams[stream].reset for stream in (51, 59)] == [frames.REFUSED_STREAM] * 2
    talk.core.tickets[0].echo()
    talk.say(talk.peer.open(61, UNARY) + data(61, prefixed(b"echo x"), ends=True))
    assert len(talk.core.tickets) == 26


def test_calls_of_one_address_leave_a_quarter_to_others() -> None:
    stage = H2ConnectionHarness(FakeCore(is_prompt=False), calls=100)
    made = 0

    def call(times: int) -> int:
        nonlocal made
        before = len(stage.core.tickets)
        stage.peer = type(stage.peer)()
        stage.connection, stage.transport = stage.connect()
        stage.greet()
        for at in range(times):
            stream = 2 * at + 1
            stage.say(stage.peer.open(stream, UNARY) + data(stream, prefixed(b"echo x"), ends=True))
        made += 1
        return len(stage.core.tickets) - before

    assert [call(25) for _ in range(5)] == [25, 25, 25, 0, 0]
    stage.peername = ("192.0.2.9", 1)
    assert call(25) == 25


def test_grpc_connections_of_one_address_leave_a_quarter_to_others() -> None:
    stage = H2ConnectionHarness(calls=100)
    transports = [stage.connect()[1] for _ in range(90)]
    assert [transport.is_shut for transport in transports] == [False] * 74 + [True] * 16
