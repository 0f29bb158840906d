"""One connection's calls without a socket: answers, refusals, cancellations, windows, and going away."""

import gzip
from typing import Any, cast

import numpy as np
import pytest
from tests.harness.echo_rpc import UNARY, EchoRpc
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import USUAL, Heard, Peer, data, prefixed
from tests.harness.h2_session import H2SessionHarness

from trivium.frontends.access_log import AccessLine, AccessLog
from trivium.frontends.h2 import channel, frames, session
from trivium.frontends.h2.channel import WINDOW
from trivium.frontends.h2.frames import ConnectionFault
from trivium.frontends.h2.state import ANSWERED, CANCELLED, LAST_RESORT, LATE
from trivium.types.errors import ServeError
from trivium.types.interfaces import LetAllIn
from trivium.types.wire import RpcAnswer


def later(**limits: Any) -> H2SessionHarness:
    """A core that answers on the test's word."""
    return H2SessionHarness(FakeCore(is_prompt=False), **limits).greet()


def test_a_call_is_answered() -> None:
    talk = H2SessionHarness().greet()
    heard = talk.call(1, UNARY, b"echo text")
    assert heard.headers == [
        {":status": "200", "content-type": "application/grpc"},
        {"grpc-status": "0"},
    ]
    assert (heard.messages, heard.status, heard.reset) == ([b"text"], 0, None)
    assert talk.peer.settings[frames.INITIAL_WINDOW_SIZE] == WINDOW
    assert talk.peer.granted == {0: WINDOW - 65535}
    talk.check_nothing_is_left()


def test_many_calls_with_any_order_of_answers() -> None:
    talk = later()
    for stream in (1, 3, 5):
        talk.call(stream, UNARY, b"echo %d" % stream)
    for index in (2, 0, 1):
        talk.core.tickets[index].echo()
    talk.flush()
    assert [talk.peer.streams[stream].messages for stream in (1, 3, 5)] == [[b"1"], [b"3"], [b"5"]]
    talk.check_nothing_is_left()


def test_a_head_that_is_repeated() -> None:
    """From the second call on the client's header block is a few indexes."""
    talk = H2SessionHarness().greet()
    for stream in range(1, 41, 2):
        assert talk.call(stream, UNARY, b"echo %d" % stream).messages == [b"%d" % stream]
    talk.check_nothing_is_left()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"bad", RpcAnswer(code=3, details="bad message")),
        (b"crash", LAST_RESORT),
        (b"echo crash", LAST_RESORT),
        (b"crash-submit", LAST_RESORT),
    ],
)
def test_errors_are_a_status_alone(message: bytes, said: RpcAnswer) -> None:
    talk = H2SessionHarness().greet()
    heard = talk.call(1, UNARY, message)
    assert (heard.status, heard.details, len(heard.headers)) == (said.code, said.details, 1)
    assert heard.headers[0][":status"] == "200"
    talk.check_nothing_is_left()


def test_deadlines_reach_the_core() -> None:
    talk = later()
    head = talk.peer.open(1, UNARY, ("grpc-timeout", "2S"))
    talk.say(head)
    talk.time.now += 0.5
    talk.say(data(1, prefixed(b"echo x"), ends=True))
    assert talk.core.tickets[0].operation.deadline == pytest.approx(1.5)
    talk.say(talk.peer.open(3, UNARY, ("grpc-timeout", "1m")))
    talk.time.now += 0.5
    talk.say(data(3, prefixed(b"echo x"), ends=True))
    assert talk.core.tickets[1].operation.deadline == 0.0
    talk.check_nothing_is_left()


def test_a_reset_cancels_what_runs() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"echo x")
    talk.say(frames.reset(1, frames.CANCEL))
    assert talk.core.tickets[0].cancelled is CANCELLED
    assert not talk.site.visits
    assert heard.headers == []
    talk.say(
        frames.reset(1, frames.CANCEL), frames.window_update(1, 5), data(1, b"late")
    )  # may still be on its way
    talk.check_nothing_is_left()


@pytest.mark.parametrize(("waited", "why", "status"), [(1.7, CANCELLED, 1), (1.99, LATE, 4), (2.5, LATE, 4)])
def test_a_client_that_resets_at_its_deadline_is_late(waited: float, why: ServeError, status: int) -> None:
    talk = later()
    lines = Lines()
    talk.site.log = cast(AccessLog, lines)
    talk.say(talk.peer.open(1, UNARY, ("grpc-timeout", "2S")), data(1, prefixed(b"echo x"), ends=True))
    talk.time.now += waited
    talk.say(frames.reset(1, frames.CANCEL))
    assert talk.core.tickets[0].cancelled is why
    assert [line.status for line in lines] == [status]
    talk.check_nothing_is_left()


def test_a_lost_connection_cancels_all() -> None:
    talk = later()
    talk.call(1, UNARY, b"echo x")
    talk.call(3, UNARY, b"echo y")
    talk.say(talk.peer.open(5, UNARY), data(5, prefixed(b"echo z")[:-1]))
    talk.session.lose()
    assert [ticket.cancelled for ticket in talk.core.tickets] == [CANCELLED, CANCELLED]
    talk.check_nothing_is_left()


def test_an_encoder_that_ends_early_ends_the_operation() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"echo x")
    ticket = talk.core.tickets[0]
    ticket.say(b"not yet")
    ticket.say(b"enough")
    talk.flush()
    assert heard.messages == [b"enough"]
    assert ticket.cancelled is ANSWERED
    talk.check_nothing_is_left()


def test_a_client_that_has_not_said_all_is_told_to_stop() -> None:
    talk = H2SessionHarness().greet()
    talk.say(talk.peer.open(1, UNARY), data(1, prefixed(b"echo x") + prefixed(b"more")))
    heard = talk.peer.streams[1]
    assert (heard.messages, heard.status, heard.reset) == ([b"x"], 0, frames.NO_ERROR)
    talk.say(data(1, prefixed(b"and more"), ends=True))  # was on its way
    assert len(talk.core.tickets) == 1
    talk.check_nothing_is_left()


def test_a_client_that_says_its_end_in_the_same_turn_is_not_told_to_stop() -> None:
    talk = H2SessionHarness().greet()
    talk.say(talk.peer.open(1, UNARY) + data(1, prefixed(b"echo x")) + data(1, b"", ends=True))
    assert (talk.peer.streams[1].messages, talk.peer.streams[1].reset) == ([b"x"], None)
    talk.say(talk.peer.open(3, "/no/such") + data(3, prefixed(b"echo x"), ends=True))
    assert (talk.peer.streams[3].status, talk.peer.streams[3].reset) == (12, None)
    talk.check_nothing_is_left()


@pytest.mark.parametrize("payload", [b"", b"\0\0", prefixed(b"echo x")[:-1]])
@pytest.mark.parametrize("by_trailers", [False, True])
def test_calls_without_a_whole_message(payload: bytes, by_trailers: bool) -> None:
    talk = H2SessionHarness().greet()
    talk.say(talk.peer.open(1, UNARY), data(1, payload, ends=not by_trailers))
    if by_trailers:
        talk.say(frames.headers(1, talk.peer.encoder.encode([("a", "b")]), ends=True))
    heard = talk.peer.streams[1]
    assert heard.status == 13
    assert "without a request message" in heard.details
    talk.check_nothing_is_left()


REFUSED = [
    ("/no/such", (), 200, 12, "There is no service 'no' here; there are: test.Echo."),
    ("/test.Echo/Such", (), 200, 12, "no RPC /test.Echo/Such"),
    (UNARY, (("grpc-encoding", "snappy"),), 200, 12, "'snappy'"),
    (UNARY, (("grpc-timeout", "x"),), 200, 13, "grpc-timeout is 'x'"),
]


def test_a_service_that_there_is_not_is_refused_by_the_fallback() -> None:
    talk = H2SessionHarness()
    talk.site.fallback = EchoRpc()
    heard = talk.greet().call(1, "/no/such", b"echo x")
    assert (heard.status, heard.details) == (12, "no RPC /no/such")
    talk.check_nothing_is_left()


def test_an_authorizer_that_lets_all_in_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(LetAllIn, "authorize", fail)
    talk = H2SessionHarness().greet()
    assert talk.call(1, UNARY, b"echo x").status == 0
    talk.check_nothing_is_left()


@pytest.mark.parametrize(("path", "more", "http", "code", "says"), REFUSED)
@pytest.mark.parametrize("ends", [False, True])
def test_calls_that_are_not_let_in(
    path: str, more: tuple[tuple[str, str], ...], http: int, code: int, says: str, ends: bool
) -> None:
    talk = H2SessionHarness().greet()
    talk.say(talk.peer.open(1, path, *more, ends=ends))
    heard = talk.peer.streams[1]
    assert (heard.headers[0][":status"], heard.status) == (str(http), code)
    assert says in heard.details
    assert heard.reset == (None if ends else frames.NO_ERROR)
    assert talk.call(3, UNARY, b"echo x").status == 0
    talk.check_nothing_is_left()


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [("application/grpc", "text/plain", "415"), ("POST", "GET", "405")],
)
def test_what_is_no_grpc_is_refused_in_http(old: str, new: str, status: str) -> None:
    talk = H2SessionHarness().greet()
    head = [
        (name, new if value == old else value) for name, value in [*USUAL[:2], (":path", UNARY), *USUAL[2:]]
    ]
    talk.peer.streams[1] = Heard(0)
    talk.say(frames.headers(1, talk.peer.encoder.encode(head), ends=True))
    heard = talk.peer.streams[1]
    assert (heard.headers[0][":status"], heard.status) == (status, 13)
    talk.check_nothing_is_left()


def test_malformed_requests_are_reset() -> None:
    talk = H2SessionHarness().greet()
    talk.say(talk.peer.open(1, UNARY, ("connection", "close")))
    heard = talk.peer.streams[1]
    assert (heard.headers, heard.reset) == ([], frames.PROTOCOL_ERROR)
    assert talk.call(3, UNARY, b"echo x").status == 0
    talk.check_nothing_is_left()


def test_more_calls_than_are_allowed() -> None:
    talk = later(calls=2)
    heard = [talk.call(stream, UNARY, b"echo x") for stream in (1, 3, 5)]
    assert [one.status for one in heard] == [None, None, 8]
    assert heard[2].details == "Concurrent RPC limit exceeded!"
    talk.core.tickets[0].echo()
    talk.flush()
    assert talk.call(7, UNARY, b"echo x").status is None
    talk.check_nothing_is_left()


def test_a_message_too_large_is_refused_from_its_prefix() -> None:
    talk = H2SessionHarness(message_bytes=100).greet()
    talk.say(talk.peer.open(1, UNARY), data(1, prefixed(bytes(101))[:6]))
    heard = talk.peer.streams[1]
    assert (heard.status, heard.reset) == (8, frames.NO_ERROR)
    assert heard.details == "SERVER: Received message larger than max (101 vs. 100)"
    talk.say(data(1, bytes(100), ends=True))
    assert talk.call(3, UNARY, b"echo x").status == 0
    talk.check_nothing_is_left()


def test_no_room_for_a_message() -> None:
    talk = later(total_message_bytes=10)
    talk.call(1, UNARY, b"echo x")
    heard = talk.call(3, UNARY, b"echo y")
    assert heard.status == 8
    assert "would exceed the limit of 10" in heard.details
    talk.check_nothing_is_left()


def test_windows_of_requests_are_given_back() -> None:
    talk = H2SessionHarness(message_bytes=2**30).greet()
    talk.say(talk.peer.open(1, UNARY), data(1, prefixed(b"echo " + bytes(12 * 2**20))[:5]))
    for _ in range(12 * 2**20 // 2**18):
        talk.say(data(1, bytes(2**18)))
    assert talk.peer.granted[1] >= 10 * 2**20
    assert talk.peer.granted[0] >= 10 * 2**20
    talk.check_nothing_is_left()


def test_windows_of_requests_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "WINDOW", 100)
    monkeypatch.setattr(session, "WINDOW", frames.DEFAULT_WINDOW + 1)
    talk = later()
    talk.say(talk.peer.open(1, UNARY), talk.peer.open(3, UNARY))
    talk.say(data(1, prefixed(bytes(200))))
    assert talk.peer.streams[1].reset == frames.FLOW_CONTROL_ERROR
    with pytest.raises(ConnectionFault) as caught:
        talk.say(data(3, prefixed(bytes(frames.DEFAULT_WINDOW))))
    assert caught.value.code == frames.FLOW_CONTROL_ERROR
    talk.check_nothing_is_left()


def test_large_answers_wait_for_windows() -> None:
    talk = H2SessionHarness(peer=Peer(initial=1000)).greet()
    heard = talk.call(1, UNARY, b"echo " + b"x" * 200_000)
    assert len(heard.data) == 1000
    talk.say(talk.peer.grow(1, 100_000))
    assert len(heard.data) == 65535  # the connection's
    talk.say(talk.peer.grow(0, 1_000_000))
    assert len(heard.data) == 101_000
    talk.say(talk.peer.grow(1, 1_000_000))
    assert (heard.messages, heard.status) == ([b"x" * 200_000], 0)
    talk.check_nothing_is_left()


def test_a_reset_drops_what_is_unsent() -> None:
    talk = H2SessionHarness(peer=Peer(initial=10)).greet()
    talk.call(1, UNARY, b"echo " + bytes(1000))
    assert talk.session.flow.unsent == 1000 + 5 - 10
    talk.say(frames.reset(1, frames.CANCEL))
    assert talk.session.flow.unsent == 0
    talk.check_nothing_is_left()


def test_a_client_that_leaves_too_much_unread_gets_no_more_calls() -> None:
    talk = H2SessionHarness(peer=Peer(initial=10), total_message_bytes=8000).greet()
    assert talk.call(1, UNARY, b"echo " + bytes(2000)).status is None
    heard = talk.call(3, UNARY, b"echo x")
    assert heard.status == 8
    assert "bytes of responses unread; the limit is 1000" in heard.details
    talk.check_nothing_is_left()


def test_nothing_of_an_answer_is_lost_while_the_transport_is_full() -> None:
    talk = H2SessionHarness().greet()
    talk.session.is_choked = True
    talk.session.feed(memoryview(talk.peer.call(1, UNARY, b"echo text")))
    assert talk.session.flow.unsent == 9
    talk.session.is_choked = False
    talk.flush()
    assert talk.peer.streams[1].messages == [b"text"]
    talk.check_nothing_is_left()


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_packed_answers_to_those_who_take_them(coding: str) -> None:
    talk = H2SessionHarness(compression=coding).greet()
    text = b"a long text " * 1000
    accepts = (("grpc-accept-encoding", f"identity,{coding}"),)
    heard = talk.call(1, UNARY, b"echo " + text, more=accepts)
    assert heard.headers[0]["grpc-encoding"] == coding
    assert heard.data[0] == 1
    assert len(heard.data) < 500
    assert talk.call(3, UNARY, b"echo short", more=accepts).messages == [b"short"]
    plain = talk.call(5, UNARY, b"echo " + text)
    assert ("grpc-encoding" in plain.headers[0], plain.messages) == (False, [text])
    talk.check_nothing_is_left()


NOISE = np.random.default_rng(0).bytes(20_000)
GZIP = (("grpc-encoding", "gzip"),)


def test_large_packed_requests_wait_for_a_thread() -> None:
    talk = H2SessionHarness().greet()
    packed = prefixed(gzip.compress(b"echo " + NOISE), 1)
    talk.say(talk.peer.open(1, UNARY, *GZIP), data(1, packed, ends=True))
    assert talk.core.tickets == []
    assert talk.call(3, UNARY, b"echo x").status == 0
    talk.threads.run()
    talk.flush()
    assert talk.peer.streams[1].messages == [NOISE]
    talk.check_nothing_is_left()


@pytest.mark.parametrize(
    ("payload", "limits", "code", "says"),
    [
        (gzip.compress(NOISE, mtime=0)[:-10], {}, 13, "not packed by gzip"),
        (gzip.compress(NOISE, mtime=0), {"message_bytes": 20_100 - 101}, 8, "larger than max"),
        (gzip.compress(NOISE + bytes(9000), mtime=0), {"total_message_bytes": 25_000}, 8, "hold"),
    ],
)
def test_packed_requests_that_are_refused_later(
    payload: bytes, limits: dict[str, int], code: int, says: str
) -> None:
    talk = H2SessionHarness(**limits).greet()
    talk.say(talk.peer.open(1, UNARY, *GZIP), data(1, prefixed(payload, 1), ends=True))
    talk.threads.run()
    talk.flush()
    assert talk.peer.streams[1].status == code
    assert says in talk.peer.streams[1].details
    talk.check_nothing_is_left()


def test_a_fault_of_our_own_while_unpacking() -> None:
    talk = H2SessionHarness().greet()
    talk.say(talk.peer.open(1, UNARY, *GZIP), data(1, prefixed(gzip.compress(NOISE), 1), ends=True))
    ((_, done),) = talk.threads
    done(MemoryError())
    talk.flush()
    assert (talk.peer.streams[1].status, talk.peer.streams[1].details) == (13, LAST_RESORT.details)
    talk.check_nothing_is_left()


def test_a_call_that_is_gone_before_its_request_is_unpacked() -> None:
    talk = H2SessionHarness().greet()
    talk.say(talk.peer.open(1, UNARY, *GZIP), data(1, prefixed(gzip.compress(NOISE), 1), ends=True))
    talk.say(frames.reset(1, frames.CANCEL))
    talk.threads.run()
    assert talk.core.tickets == []
    talk.check_nothing_is_left()


def test_going_away_in_two_steps() -> None:
    talk = later()
    talk.call(1, UNARY, b"echo x")
    talk.session.housekeeping.leave()
    talk.session.housekeeping.leave()
    talk.flush()
    assert talk.peer.goaways == [(2**31 - 1, frames.NO_ERROR, "")]
    talk.call(3, UNARY, b"echo y")  # was on its way
    (ping,) = talk.peer.pings
    talk.say(frames.ping(b"anything", is_ack=True), frames.ping(ping, is_ack=True))
    assert talk.peer.goaways[1:] == [(3, frames.NO_ERROR, "")]
    assert talk.call(5, UNARY, b"echo z").reset == frames.REFUSED_STREAM
    assert not talk.session.is_finished
    for ticket in talk.core.tickets:
        ticket.echo()
    talk.flush()
    assert [talk.peer.streams[stream].messages for stream in (1, 3)] == [[b"x"], [b"y"]]
    assert talk.session.is_finished
    talk.check_nothing_is_left()


class Lines(list[AccessLine]):
    """A log."""

    add = list.append


def test_the_access_log_gets_a_line_per_call() -> None:
    talk = later()
    lines = Lines()
    talk.site.log = cast(AccessLog, lines)
    for stream in (1, 3):
        talk.call(stream, UNARY, b"echo text")
    talk.time.now += 1.5
    talk.core.tickets[0].echo()
    talk.say(frames.reset(3, frames.CANCEL))
    assert [(line.method, line.path, line.status, line.size) for line in lines] == [
        ("gRPC", UNARY, 0, 4),
        ("gRPC", UNARY, 1, 0),
    ]
    assert [(line.peer, line.time, line.seconds) for line in lines] == [("ipv4:192.0.2.1:4711", 1e9, 1.5)] * 2
    talk.check_nothing_is_left()


def test_calls_that_are_cut_off_are_told() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"echo x")
    talk.session.abort(RpcAnswer(code=14, details="going"))
    talk.flush()
    assert (heard.status, heard.details) == (14, "going")
    assert talk.core.tickets[0].cancelled is CANCELLED
    talk.check_nothing_is_left()


def test_nothing_comes_before_the_greeting() -> None:
    talk = H2SessionHarness()
    with pytest.raises(ConnectionFault) as caught:
        talk.say(frames.PREFACE + frames.ping(bytes(8)))
    assert caught.value.code == frames.PROTOCOL_ERROR


def test_a_costly_message_is_decoded_elsewhere() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"costly " + bytes(200_000))
    assert not talk.core.tickets
    talk.threads.run()
    talk.core.tickets[0].say(b"done", final=True)
    talk.flush()
    assert heard.messages == [b"done"]
    talk.check_nothing_is_left()


def test_a_call_that_is_reset_while_its_message_is_decoded_is_over() -> None:
    talk = later()
    talk.call(1, UNARY, b"costly " + bytes(200_000))
    talk.say(frames.reset(1, frames.CANCEL))
    talk.threads.run()
    assert not talk.core.tickets
    talk.check_nothing_is_left()


def test_a_costly_message_that_cannot_be_read_is_refused() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"bad costly " + bytes(200_000))
    talk.threads.run()
    talk.flush()
    assert heard.status == 3
    talk.check_nothing_is_left()


def test_a_costly_answer_is_written_elsewhere() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"echo x")
    talk.core.tickets[0].say(b"slowly", final=True)
    talk.flush()
    assert heard.headers == []
    assert talk.site.visits, "a drain has nothing to wait for"
    talk.threads.run()
    talk.flush()
    assert (heard.messages, heard.status) == ([b"slowly"], 0)
    talk.check_nothing_is_left()


def test_parts_that_come_while_one_is_written_are_in_order() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"echo x")
    for said in (b"slowly", b"slowly enough?", b"enough"):
        talk.core.tickets[0].say(said)
    talk.threads.run()
    talk.flush()
    assert (heard.messages, heard.status) == ([b"enough"], 0)
    assert talk.core.tickets[0].cancelled is ANSWERED
    talk.check_nothing_is_left()


def test_a_costly_answer_that_cannot_be_written_is_our_fault() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"echo x")
    talk.core.tickets[0].say(b"slowly crash", final=True)
    talk.threads.run()
    talk.flush()
    assert (heard.status, heard.details) == (LAST_RESORT.code, LAST_RESORT.details)
    talk.check_nothing_is_left()


def test_a_call_that_is_reset_while_its_answer_is_written_is_over() -> None:
    talk = later()
    heard = talk.call(1, UNARY, b"echo x")
    talk.core.tickets[0].say(b"slowly", final=True)
    talk.say(frames.reset(1, frames.CANCEL))
    assert not talk.site.visits
    talk.threads.run()
    talk.flush()
    assert heard.headers == []
    talk.check_nothing_is_left()


LONG = (("x-long", "a" * 100_000),)


def in_frames(talk: H2SessionHarness, stream: int, *more: tuple[str, str]) -> list[bytes]:
    """The frames of a head, of the size that every peer takes."""
    opened = talk.peer.open(stream, UNARY, *more)[frames.HEAD_BYTES :]
    pieces = [opened[at : at + 2**14] for at in range(0, len(opened), 2**14)]
    return [
        frames.head(
            len(piece),
            frames.CONTINUATION if number else frames.HEADERS,
            frames.END_HEADERS * (number == len(pieces) - 1),
            stream,
        )
        + piece
        for number, piece in enumerate(pieces)
    ]


def test_metadata_that_are_too_long_end_their_call_alone() -> None:
    """As with grpc's own servers; what is in work on the connection, and what comes after it, is served."""
    talk = later()
    talk.call(1, UNARY, b"echo first")
    talk.say(*in_frames(talk, 3, *LONG), data(3, prefixed(b"echo x"), ends=True))
    refused = talk.peer.streams[3]
    assert (refused.status, talk.peer.goaways) == (8, [])
    assert "The metadata of this call exceed the limit of 16384 bytes" in refused.details
    talk.call(5, UNARY, b"echo last")
    for ticket in talk.core.tickets:
        ticket.echo()
    talk.flush()
    assert [talk.peer.streams[stream].messages for stream in (1, 5)] == [[b"first"], [b"last"]]
    talk.check_nothing_is_left()


def test_a_header_block_that_does_not_end_is_booked_and_dropped() -> None:
    talk = later()
    begun = in_frames(talk, 1, *LONG)
    talk.say(*begun[:-1])
    assert len(b"".join(begun[:-1])) - 9 * len(begun) < talk.site.held_bytes <= session.MOST_BLOCK
    talk.session.lose()
    talk.check_nothing_is_left()


def test_header_blocks_find_no_room_where_messages_find_none() -> None:
    talk = later(message_bytes=1000, total_message_bytes=20_000)
    with pytest.raises(ConnectionFault) as refused:
        talk.say(*in_frames(talk, 1, *LONG))
    assert refused.value.code == frames.ENHANCE_YOUR_CALM
    talk.check_nothing_is_left()


def test_metadata_that_are_too_long_again_and_again_end_the_connection() -> None:
    """Each of them costs the loop milliseconds and its client nothing."""
    talk = later()

    def say_often() -> None:
        for stream in range(1, 400, 2):
            talk.say(*in_frames(talk, stream, *LONG), data(stream, b"", ends=True))

    with pytest.raises(ConnectionFault) as refused:
        say_often()
    assert refused.value.code == frames.ENHANCE_YOUR_CALM
    assert 20 <= len(talk.peer.streams) <= 80
    talk.check_nothing_is_left()
