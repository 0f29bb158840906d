"""Settings, pings and floods: what is answered, and what ends the connection by which code."""

import itertools
from collections import deque
from collections.abc import Callable

import pytest
from tests.harness.echo_rpc import UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import Peer, data, prefixed
from tests.harness.h2_session import H2SessionHarness

from trivium.frontends.h2 import frames
from trivium.frontends.h2.frames import ConnectionFault, head

OPAQUE = b"12345678"


def fault_of(talk: H2SessionHarness, *pieces: bytes) -> int:
    with pytest.raises(ConnectionFault) as caught:
        talk.say(*pieces)
    talk.check_nothing_is_left()
    return caught.value.code


def test_settings_are_acknowledged() -> None:
    talk = H2SessionHarness()
    talk.session.feed(memoryview(frames.PREFACE + frames.settings([(99, 1)])))
    assert talk.session.out[-1] == frames.SETTINGS_ACK
    talk.session.out.clear()
    talk.session.feed(memoryview(frames.SETTINGS_ACK))
    assert talk.session.out == []


def test_a_changed_initial_window_lets_go_what_waits() -> None:
    talk = H2SessionHarness(peer=Peer(initial=10)).greet()
    heard = talk.call(1, UNARY, b"echo " + b"x" * 100)
    assert len(heard.data) == 10
    heard.window += 990
    talk.peer.initial = 1000
    talk.say(frames.settings([(frames.INITIAL_WINDOW_SIZE, 1000)]))
    assert heard.messages == [b"x" * 100]
    assert talk.call(3, UNARY, b"echo " + b"x" * 900).messages == [b"x" * 900]
    talk.check_nothing_is_left()


WRONG_SETTINGS = [
    (frames.settings([(frames.INITIAL_WINDOW_SIZE, 2**31)]), frames.FLOW_CONTROL_ERROR),
    (frames.settings([(frames.MAX_FRAME_SIZE, 2**14 - 1)]), frames.PROTOCOL_ERROR),
    (frames.settings([(frames.MAX_FRAME_SIZE, 2**24)]), frames.PROTOCOL_ERROR),
    (frames.settings([(frames.ENABLE_PUSH, 2)]), frames.PROTOCOL_ERROR),
    (head(5, frames.SETTINGS, 0, 0) + bytes(5), frames.FRAME_SIZE_ERROR),
    (head(6, frames.SETTINGS, 1, 0) + bytes(6), frames.FRAME_SIZE_ERROR),
    (head(0, frames.SETTINGS, 0, 1), frames.PROTOCOL_ERROR),
]
WRONG_FRAMES = [
    (head(8, frames.PING, 0, 1) + bytes(8), frames.PROTOCOL_ERROR),
    (head(7, frames.PING, 0, 0) + bytes(7), frames.FRAME_SIZE_ERROR),
    (head(8, frames.GOAWAY, 0, 1) + bytes(8), frames.PROTOCOL_ERROR),
    (head(5, frames.PRIORITY, 0, 0) + bytes(5), frames.PROTOCOL_ERROR),
    (frames.window_update(0, 0), frames.PROTOCOL_ERROR),
    (frames.window_update(0, 2**31 - 1), frames.FLOW_CONTROL_ERROR),
    (frames.window_update(7, 1), frames.PROTOCOL_ERROR),
    (frames.reset(7, 0), frames.PROTOCOL_ERROR),
    (frames.reset(0, 0), frames.PROTOCOL_ERROR),
    (head(3, frames.RST_STREAM, 0, 1) + bytes(3), frames.FRAME_SIZE_ERROR),
    (data(7, b"x"), frames.PROTOCOL_ERROR),
    (data(2, b"x"), frames.PROTOCOL_ERROR),
    (frames.headers(2, b"\x88", ends=True), frames.PROTOCOL_ERROR),
    (frames.headers(1, b"\xff\xff\xff", ends=True), frames.COMPRESSION_ERROR),
]


@pytest.mark.parametrize(("sent", "code"), WRONG_SETTINGS + WRONG_FRAMES)
def test_what_ends_the_connection(sent: bytes, code: int) -> None:
    talk = H2SessionHarness(FakeCore(is_prompt=False)).greet()
    talk.call(1, UNARY, b"echo x")
    assert fault_of(talk, sent) == code


WRONG_ON_A_STREAM = [
    (data(1, b"x"), frames.STREAM_CLOSED),  # behind its end
    (frames.window_update(1, 0), frames.PROTOCOL_ERROR),
    (frames.window_update(1, 2**31 - 1), frames.FLOW_CONTROL_ERROR),
    (frames.headers(1, b"\x82", ends=True), frames.PROTOCOL_ERROR),
]


@pytest.mark.parametrize(("sent", "code"), WRONG_ON_A_STREAM)
def test_what_ends_one_stream(sent: bytes, code: int) -> None:
    talk = H2SessionHarness(FakeCore(is_prompt=False)).greet()
    heard = talk.call(1, UNARY, b"echo x")
    other = talk.call(3, UNARY, b"echo y")
    talk.say(sent)
    assert heard.reset == code
    talk.core.tickets[1].echo()
    talk.flush()
    assert other.messages == [b"y"]
    assert talk.core.tickets[0].cancelled is not None
    talk.check_nothing_is_left()


def test_what_means_nothing_is_ignored() -> None:
    talk = H2SessionHarness().greet()
    talk.say(head(5, frames.PRIORITY, 0, 9) + bytes(5), head(3, 0x77, 0xFF, 3) + b"abc")
    talk.say(frames.goaway(0, 0, "bye"), frames.ping(OPAQUE, is_ack=True))
    assert talk.call(1, UNARY, b"echo x").status == 0
    talk.check_nothing_is_left()


def test_pings_are_answered() -> None:
    talk = H2SessionHarness().greet()
    talk.say(frames.ping(OPAQUE))
    assert talk.peer.pongs == [OPAQUE]


def test_too_many_pings() -> None:
    talk = H2SessionHarness(FakeCore(is_prompt=False), ping_seconds=10.0, ping_strikes=2).greet()
    talk.call(1, UNARY, b"echo x")
    for _ in range(3):
        talk.say(frames.ping(OPAQUE))
        talk.time.now += 1
    with pytest.raises(ConnectionFault, match="too_many_pings") as caught:
        talk.say(frames.ping(OPAQUE))
    assert caught.value.code == frames.ENHANCE_YOUR_CALM


def test_pings_beside_answers_are_welcome() -> None:
    talk = H2SessionHarness(ping_seconds=300.0).greet()
    for stream in range(1, 200, 2):
        talk.call(stream, UNARY, b"echo x")
        talk.say(frames.ping(OPAQUE))
    assert len(talk.peer.pongs) == 100
    talk.check_nothing_is_left()


def nothing(talk: H2SessionHarness, turn: int) -> bytes:
    if not turn:
        return talk.peer.open(1, UNARY) + data(1, b"")
    return data(1, b"")


def resets(talk: H2SessionHarness, turn: int) -> bytes:
    stream = 2 * turn + 1
    return talk.peer.call(stream, UNARY, b"echo x") + frames.reset(stream, frames.CANCEL)


def malformed(talk: H2SessionHarness, turn: int) -> bytes:
    return talk.peer.open(2 * turn + 1, UNARY, ("connection", "close"), ends=True)


FLOODS: list[Callable[[H2SessionHarness, int], bytes]] = [
    nothing,
    resets,
    malformed,
    lambda talk, turn: frames.settings([]),
    lambda talk, turn: frames.ping(OPAQUE),
    lambda talk, turn: frames.window_update(0, 1),
    lambda talk, turn: head(5, frames.PRIORITY, 0, 1) + bytes(5),
    lambda talk, turn: head(0, 0x55, 0, 1),
]


@pytest.mark.parametrize("flood", FLOODS)
def test_floods_end_the_connection(flood: Callable[[H2SessionHarness, int], bytes]) -> None:
    """With the least budget, that of 4096 cancelled calls."""
    talk = H2SessionHarness(FakeCore(is_prompt=False), calls=10, ping_strikes=0).greet()
    turns = itertools.count()

    def send() -> None:
        talk.session.feed(memoryview(flood(talk, next(turns))))
        talk.session.out.clear()

    with pytest.raises(ConnectionFault) as caught:
        deque(iter(send, "never"), 0)
    assert caught.value.code == frames.ENHANCE_YOUR_CALM
    assert "Too many resets" in caught.value.text
    assert next(turns) > 4000
    talk.check_nothing_is_left()


def test_a_busy_client_is_no_flood() -> None:
    """As grpcio does: a window update and a ping beside every call, and some calls cancelled."""
    talk = H2SessionHarness().greet()
    for turn in range(3000):
        stream = 2 * turn + 1
        assert talk.call(stream, UNARY, b"echo x").status == 0
        talk.say(talk.peer.grow(0, 16), frames.ping(OPAQUE), frames.SETTINGS_ACK)
        if not turn % 10:
            talk.time.now += 0.01
    talk.check_nothing_is_left()


def test_the_servers_own_pings() -> None:
    talk = H2SessionHarness(FakeCore(is_prompt=False), pings_without_data=2).greet()
    house = talk.session.housekeeping
    assert not house.ask_alive()  # there is no call
    talk.call(1, UNARY, b"echo x")
    assert [house.ask_alive() for _ in range(3)] == [True, True, False]
    talk.flush()
    assert len(talk.peer.pings) == 2
    assert house.awaits_pong
    talk.say(frames.ping(talk.peer.pings[0], is_ack=True))
    assert not house.awaits_pong
    talk.core.tickets[0].echo()
    talk.say(talk.peer.open(3, UNARY), data(3, prefixed(b"echo y")[:5]))
    assert house.ask_alive()
    idle = H2SessionHarness(pings_without_calls=True, pings_without_data=0).greet()
    assert all(idle.session.housekeeping.ask_alive() for _ in range(10))
    talk.check_nothing_is_left()
