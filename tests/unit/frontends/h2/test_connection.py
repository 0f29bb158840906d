"""A connection's writes, pauses, timers and ends, with a transport and a loop of the test's own."""

from typing import Any

import pytest
from tests.harness.echo_rpc import UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_connection import H2ConnectionHarness
from tests.harness.h2_peer import data, prefixed

from trivium.frontends.h2 import frames
from trivium.frontends.h2.state import CANCELLED


def later(**limits: Any) -> H2ConnectionHarness:
    return H2ConnectionHarness(FakeCore(is_prompt=False), **limits).greet()


def test_what_one_read_asks_is_answered_in_one_write() -> None:
    stage = H2ConnectionHarness().greet()
    before = stage.transport.writes
    stage.say(b"".join(stage.peer.call(stream, UNARY, b"echo x") for stream in range(1, 41, 2)))
    assert stage.transport.writes == before + 1
    assert all(heard.messages == [b"x"] for heard in stage.peer.streams.values())
    stage.lose()


def test_what_one_turn_answers_leaves_in_one_write() -> None:
    stage = later()
    stage.say(b"".join(stage.peer.call(stream, UNARY, b"echo x") for stream in (1, 3, 5)))
    before = stage.transport.writes
    for ticket in stage.core.tickets:
        ticket.echo()
    assert stage.transport.writes == before
    stage.turn()
    assert stage.transport.writes == before + 1
    assert all(heard.messages == [b"x"] for heard in stage.peer.streams.values())
    stage.lose()


@pytest.mark.parametrize(
    ("peername", "peer"),
    [
        (("192.0.2.1", 4711), "ipv4:192.0.2.1:4711"),
        (("::1", 4711, 0, 0), "ipv6:[::1]:4711"),
        (None, "unknown"),
    ],
)
def test_names_of_peers(peername: Any, peer: str) -> None:
    stage = H2ConnectionHarness(peername=peername)
    assert stage.connection.session.peer == peer


def test_http1_is_told_so() -> None:
    stage = H2ConnectionHarness()
    buffer = stage.connection.get_buffer(-1)
    buffer[:16] = b"GET / HTTP/1.1\r\n"
    stage.connection.buffer_updated(16)
    assert stage.transport.sent.startswith(b"HTTP/1.1 505 ")
    assert b"speaks gRPC" in stage.transport.sent
    assert stage.transport.is_shut
    stage.connection.buffer_updated(16)  # what still comes is thrown away
    stage.loop.wait(1.0)
    assert stage.transport.is_closing()
    stage.lose()


def test_other_noise_is_not_answered() -> None:
    stage = H2ConnectionHarness()
    stage.say(b"\x16\x03\x01")
    assert (stage.transport.writes, stage.transport.is_shut) == (0, True)
    stage.lose()


def test_a_fault_is_said_and_ends_the_connection() -> None:
    stage = later()
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.say(data(9, b"x"))
    ((last, code, text),) = stage.peer.goaways
    assert (last, code) == (1, frames.PROTOCOL_ERROR)
    assert "stream 9" in text
    assert stage.core.tickets[0].cancelled is CANCELLED
    assert stage.transport.is_shut
    stage.lose()


def test_a_fault_of_our_own_ends_one_connection(caplog: pytest.LogCaptureFixture) -> None:
    stage = H2ConnectionHarness().greet()
    stage.connection.session.on_headers = None  # type: ignore[assignment,method-assign]
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    assert stage.peer.goaways[0][1] == frames.INTERNAL_ERROR
    assert "failed and is cut off" in caplog.text
    stage.lose()


def test_what_cannot_be_written_ends_one_connection(caplog: pytest.LogCaptureFixture) -> None:
    stage = later()
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.connection.session.put("no bytes")  # type: ignore[arg-type]
    stage.turn()
    assert stage.transport.is_aborted
    assert "cannot be written" in caplog.text
    stage.lose()


def test_one_connection_too_many() -> None:
    stage = H2ConnectionHarness(calls=1).greet()
    assert len(stage.connections) == 1
    connection, transport = stage.connect()
    assert transport.is_shut
    stage.peer.settings = {}
    stage.peer.hear(bytes(transport.sent))
    assert "1 connections are open" in stage.peer.goaways[0][2]
    connection.connection_lost(None)
    stage.lose()


def test_who_never_says_a_word_is_cut() -> None:
    stage = H2ConnectionHarness()
    stage.say(frames.PREFACE[:10])
    stage.wait(20.1)
    assert stage.transport.is_aborted
    stage.lose()


def test_the_end_of_a_client_is_the_end() -> None:
    stage = later()
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    assert stage.connection.eof_received() is False
    stage.lose()
    assert stage.core.tickets[0].cancelled is CANCELLED


def test_a_client_that_ends_is_gone_though_it_has_not_read_what_was_said() -> None:
    """Its transport closes behind what is unsent, which may be never: nothing runs for it until then."""
    stage = later()
    stage.say(stage.peer.grow(0, 2**30))
    stage.transport.is_stuck = True
    stage.say(stage.peer.call(1, UNARY, b"echo x"), stage.peer.call(3, UNARY, b"echo y"))
    stage.core.tickets[0].echo()
    assert stage.connection.eof_received() is False
    assert stage.core.tickets[1].cancelled is CANCELLED
    assert stage.transport.unsent
    stage.loop.wait(10.0)
    assert stage.transport.is_aborted
    stage.lose()


# -- a client that does not read ---------------------------------------------------------------------------


def test_a_full_transport_gets_no_more_data() -> None:
    stage = H2ConnectionHarness().greet()
    stage.transport.is_stuck = True
    stage.say(stage.peer.grow(0, 2**30))
    for stream in range(1, 13, 2):
        stage.say(stage.peer.open(stream, UNARY), stage.peer.grow(stream, 2**30))
        stage.say(data(stream, b"\0\0\3\0\5echo "), data(stream, bytes(3 * 2**16), ends=True))
    assert stage.transport.is_paused
    assert len(stage.transport.unsent) < 600_000
    assert stage.connection.session.flow.unsent > 500_000
    stage.transport.is_stuck = False
    while stage.transport.unsent:
        stage.transport.flush(50_000)
        stage.turn()
    assert all(heard.messages == [bytes(3 * 2**16)] for heard in stage.peer.streams.values())
    stage.lose()


def test_nothing_is_read_while_too_much_is_unsent() -> None:
    stage = H2ConnectionHarness().greet()
    stage.transport.is_stuck = True
    stage.say(stage.peer.grow(0, 2**30))
    stream = 1
    while stage.transport.reads:
        stage.say(stage.peer.open(stream, UNARY), stage.peer.grow(stream, 2**30))
        stage.say(data(stream, b"\0\0\3\0\5echo "), data(stream, bytes(3 * 2**16), ends=True))
        stream += 2
        assert stream < 100
    stage.transport.is_stuck = False
    stage.transport.flush()
    stage.turn()
    assert stage.transport.reads
    assert all(heard.status == 0 for heard in stage.peer.streams.values())
    stage.lose()


def test_pings_of_a_client_that_does_not_read_are_bounded() -> None:
    stage = H2ConnectionHarness(ping_strikes=0).greet()
    stage.transport.is_stuck = True
    for _ in range(10**6):
        if not stage.transport.reads or stage.transport.is_shut:
            break
        stage.say(frames.ping(b"12345678") * 100)
        stage.time.now += 1
    assert not stage.transport.reads
    assert len(stage.transport.unsent) < 1_100_000
    stage.lose()


# -- time --------------------------------------------------------------------------------------------------


def test_a_silent_client_is_pinged_and_cut() -> None:
    stage = later(keepalive_seconds=10.0, keepalive_timeout=3.0)
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.wait(9.9)
    assert stage.peer.pings == []
    stage.wait(0.2)
    assert len(stage.peer.pings) == 1
    stage.wait(3.1)
    assert stage.transport.is_aborted
    stage.lose()


def test_a_client_that_answers_stays() -> None:
    stage = later(keepalive_seconds=10.0, keepalive_timeout=3.0, pings_without_data=0)
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    for turn in range(5):
        stage.wait(10.1)
        assert len(stage.peer.pings) == turn + 1
        stage.say(frames.ping(stage.peer.pings[-1], is_ack=True))
    assert not stage.transport.is_closing()
    stage.lose()


def test_an_idle_client_is_not_pinged() -> None:
    stage = H2ConnectionHarness(keepalive_seconds=10.0).greet()
    stage.wait(100.0)
    assert stage.peer.pings == []
    assert not stage.transport.is_closing()
    stage.lose()


def test_what_comes_puts_the_ping_off() -> None:
    stage = later(keepalive_seconds=10.0)
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    for _ in range(5):
        stage.wait(8.0)
        stage.say(frames.window_update(0, 1))
    assert stage.peer.pings == []
    stage.wait(10.1)
    assert len(stage.peer.pings) == 1
    stage.lose()


def test_an_old_connection_ends_behind_its_calls() -> None:
    stage = later(age_seconds=60.0)
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.wait(60.1)
    assert [last for last, _, _ in stage.peer.goaways] == [2**31 - 1]
    stage.say(frames.ping(stage.peer.pings[0], is_ack=True))
    assert [last for last, _, _ in stage.peer.goaways] == [2**31 - 1, 1]
    stage.wait(1000.0)
    assert not stage.transport.is_shut
    stage.core.tickets[0].echo()
    stage.turn()
    assert stage.peer.streams[1].status == 0
    assert stage.transport.is_shut
    stage.lose()


def test_an_old_connection_is_cut_after_its_grace() -> None:
    stage = later(age_seconds=60.0, grace_seconds=5.0)
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.wait(65.1)
    assert stage.peer.streams[1].status == 14
    assert stage.transport.is_shut
    stage.lose()


def test_a_client_that_does_not_hear_that_it_should_leave() -> None:
    stage = H2ConnectionHarness().greet()
    stage.connection.leave()
    stage.wait(0.9)
    assert not stage.transport.is_shut
    stage.wait(0.2)
    assert [last for last, _, _ in stage.peer.goaways] == [2**31 - 1, 0]
    assert stage.transport.is_shut
    stage.wait(1.1)
    assert stage.transport.is_closing()
    stage.lose()


def test_a_connection_that_comes_during_a_drain() -> None:
    stage = H2ConnectionHarness()
    stage.site.is_draining = True
    _, transport = stage.connect()
    stage.loop.wait(0.1)
    stage.peer.hear(bytes(transport.sent))
    assert stage.peer.settings
    assert stage.peer.goaways[0][0] == 2**31 - 1


def test_nothing_is_said_behind_the_end() -> None:
    """Neither by a timer nor by what waited for room."""
    stage = later(keepalive_seconds=0.5, age_seconds=0.7, pings_without_calls=True)
    stage.say(stage.peer.call(1, UNARY, b"echo " + bytes(100_000)))
    stage.core.tickets[0].echo()
    stage.turn()
    assert stage.connection.session.flow.unsent
    stage.transport.is_stuck = True
    stage.connection.leave()
    stage.connection.abort()
    writes = stage.transport.writes
    stage.connection.pause_writing()
    stage.connection.resume_writing()
    stage.loop.wait(0.9)
    assert stage.transport.writes == writes
    assert not stage.transport.is_aborted
    stage.lose()


def test_who_is_cut_off_hears_the_status_though_its_window_is_closed() -> None:
    stage = later()
    stage.say(stage.peer.call(1, UNARY, b"echo " + bytes(200_000)))
    stage.core.tickets[0].echo()
    stage.turn()
    assert stage.connection.session.flow.unsent
    assert not stage.peer.streams[1].has_ended
    stage.connection.abort()
    stage.hear()
    assert stage.peer.streams[1].has_ended
    stage.lose()


def test_a_slow_reader_gets_to_the_end_of_what_was_said() -> None:
    stage = later()
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.transport.is_stuck = True
    stage.connection.abort()
    assert stage.transport.is_shut
    for _ in range(4):
        stage.loop.wait(4.0)
        stage.transport.flush(5)
    assert not stage.transport.is_aborted
    stage.loop.wait(20.0)
    assert stage.transport.is_aborted
    stage.lose()


# -- a time for everything -----------------------------------------------------------------------------------

BEGUN = {
    "nothing of it": b"",
    "half of its prefix": prefixed(bytes(100))[:3],
    "its prefix": prefixed(bytes(100))[:5],
    "half of it": prefixed(bytes(100))[:50],
}


@pytest.mark.parametrize("begun", BEGUN)
def test_a_message_that_does_not_come_ends_its_call(begun: str) -> None:
    stage = H2ConnectionHarness(message_seconds=20.0, slowest_rate=1000).greet()
    stage.say(stage.peer.open(1, UNARY))
    if BEGUN[begun]:
        stage.say(data(1, BEGUN[begun]))
    stage.wait(19.0)
    assert stage.peer.streams[1].status is None
    stage.wait(22.0)
    assert stage.peer.streams[1].status == 4
    assert "in time" in stage.peer.streams[1].details
    assert not stage.site.visits
    assert stage.loop.timers > 0
    stage.lose()


def test_a_message_that_comes_slowly_enough_has_its_time() -> None:
    stage = H2ConnectionHarness(message_seconds=2.0, slowest_rate=100).greet()
    stage.say(stage.peer.open(1, UNARY))
    whole = prefixed(b"echo " + bytes(3000))
    for at in range(0, len(whole), 150):
        stage.say(data(1, whole[at : at + 150], at + 150 >= len(whole)))
        stage.wait(1.0)
    assert stage.peer.streams[1].status == 0
    stage.lose()


@pytest.mark.parametrize("takes", [0, 999, 1000])
def test_a_client_that_takes_too_little_of_a_large_answer_is_reset(takes: int) -> None:
    stage = later(write_seconds=10.0, message_seconds=20.0, slowest_rate=1000)
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.core.tickets[0].say(bytes(200_000), final=True)
    stage.wait(10.0)
    for _ in range(4):
        if takes and not stage.peer.streams[1].reset:
            stage.say(stage.peer.grow(0, takes), stage.peer.grow(1, takes))
        stage.wait(10.0)
    # A status would tell of a whole answer.
    assert stage.peer.streams[1].reset == (None if takes == 1000 else frames.CANCEL)
    assert bool(stage.connection.session.streams) is (takes == 1000)
    stage.lose()


def test_a_stream_without_a_message_may_last() -> None:
    stage = H2ConnectionHarness(FakeCore(is_prompt=False), message_seconds=2.0).greet()
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.wait(60.0)
    assert stage.peer.streams[1].status is None, "its message has come, and its answer has not"
    stage.core.tickets[0].echo()
    stage.wait(1.0)
    assert stage.peer.streams[1].status == 0
    stage.lose()


def test_a_connection_without_a_call_is_asked_to_go_and_one_with_a_call_is_not() -> None:
    stage = H2ConnectionHarness(FakeCore(is_prompt=False), idle_seconds=10.0).greet()
    stage.say(stage.peer.call(1, UNARY, b"echo x"))
    stage.wait(100.0)
    assert not stage.peer.goaways
    stage.core.tickets[0].echo()
    stage.say(frames.ping(b"12345678"))
    stage.wait(9.0)
    assert not stage.peer.goaways
    stage.wait(12.0)
    assert stage.peer.goaways[0][1] == frames.NO_ERROR
    assert stage.transport.is_shut
    stage.lose()


def test_a_connection_may_idle_for_ever_where_that_is_wanted() -> None:
    stage = H2ConnectionHarness(idle_seconds=None).greet()
    stage.wait(7000.0)
    assert not stage.peer.goaways
    stage.lose()
