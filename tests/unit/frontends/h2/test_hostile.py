"""Conversations that nobody planned: legal ones with any windows and cuts, and such as break every rule."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.echo_rpc import UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import Peer, data, prefixed
from tests.harness.h2_session import H2SessionHarness
from tests.harness.properties import examples

from trivium.frontends.h2 import frames
from trivium.frontends.h2.frames import ConnectionFault

# -- legal -------------------------------------------------------------------------------------------------

CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "size": st.sampled_from([0, 1, 100, 16_379, 16_384, 70_000, 200_000]),
            "frame": st.sampled_from([1000, 16_384, 60_000]),
            "padding": st.sampled_from([None, 0, 7, 255]),
            "timeout": st.booleans(),
            "ends_apart": st.booleans(),
            "is_cancelled": st.sampled_from([False, False, False, True]),
        }
    ),
    min_size=1,
    max_size=6,
)


def request(peer: Peer, stream: int, call: dict[str, Any]) -> list[bytes]:
    more = (("grpc-timeout", f"{stream}S"),) if call["timeout"] else ()
    pieces = [peer.open(stream, UNARY, *more)]
    payload = prefixed(b"echo " + bytes([stream]) * call["size"])
    step = call["frame"]
    for at in range(0, len(payload), step):
        part = payload[at : at + step]
        ends = not call["ends_apart"] and at + step >= len(payload)
        if call["padding"] is None:
            pieces.append(data(stream, part, ends))
            continue
        padding = call["padding"]
        head = frames.head(len(part) + 1 + padding, frames.DATA, 0x8 | int(ends), stream)
        pieces.append(head + bytes([padding]) + part + bytes(padding))
    if call["ends_apart"]:
        pieces.append(data(stream, b"", ends=True))
    return pieces


@settings(max_examples=examples(60))
@given(
    CALLS,
    st.sampled_from([0, 1, 1000, 65_535, 10**6]),
    st.sampled_from([2**14, 2**20]),
    st.sampled_from([9, 1000, 100_000, 10**7]),
    st.randoms(use_true_random=False),
)
def test_legal_peers_get_their_answers(
    calls: list[dict[str, Any]], initial: int, frame: int, abort: int, chance: Any
) -> None:
    """Calls interleaved, windows opened bit by bit, the answers in any order, all of it abort anywhere."""
    talk = H2SessionHarness(FakeCore(is_prompt=False), peer=Peer(initial, frame)).greet()
    queues = {2 * at + 1: request(talk.peer, 2 * at + 1, call) for at, call in enumerate(calls)}
    wire = bytearray(b"".join(queue.pop(0) for queue in queues.values()))  # heads in their order
    while queues:
        stream = chance.choice(list(queues))
        wire += queues[stream].pop(0)
        if not queues[stream]:
            del queues[stream]
    for at in range(0, len(wire), abort):
        talk.say(bytes(wire[at : at + abort]))
    tickets = list(talk.core.tickets)
    assert len(tickets) == len(calls)
    chance.shuffle(tickets)
    for ticket in tickets:
        ticket.echo()
        talk.flush()
    for at, call in enumerate(calls):
        if call["is_cancelled"] and 2 * at + 1 in talk.session.streams:
            talk.say(frames.reset(2 * at + 1, frames.CANCEL))
    while talk.session.streams:
        stream = chance.choice(list(talk.session.streams))
        talk.say(talk.peer.grow(0, 50_000), talk.peer.grow(stream, chance.choice([1000, 100_000])))
    for at, call in enumerate(calls):
        heard = talk.peer.streams[2 * at + 1]
        if heard.has_ended or not call["is_cancelled"]:
            assert heard.messages == [bytes([2 * at + 1]) * call["size"]]
            assert (heard.status, heard.reset) == (0, None)
    assert not talk.peer.goaways
    talk.check_nothing_is_left()


# -- hostile -----------------------------------------------------------------------------------------------

NUMBERS = st.sampled_from([0, 1, 2, 3, 5, 7, 2**31 - 1, 2**32 - 1])
PAYLOADS = st.one_of(st.binary(max_size=40), st.just(prefixed(b"echo x")), st.just(b"\x88\x82\x87"))
ANY_FRAME = st.builds(
    lambda kind, flags, stream, payload: frames.head(len(payload), kind, flags, stream) + payload,
    st.integers(0, 12),
    st.sampled_from([0, 1, 4, 5, 8, 9, 0xC, 0x20, 0x2D, 0xFF]),
    NUMBERS,
    PAYLOADS,
)
NEAR = st.one_of(
    st.builds(frames.window_update, NUMBERS, st.sampled_from([0, 1, 2**31 - 1])),
    st.builds(frames.reset, NUMBERS, st.integers(0, 20)),
    st.builds(
        lambda a, b: frames.settings([(a, b)]),
        st.integers(0, 8),
        st.sampled_from([0, 1, 2**14, 2**31, 2**32 - 1]),
    ),
    st.builds(data, st.sampled_from([1, 3, 5]), PAYLOADS, st.booleans()),
    st.just(frames.ping(b"12345678")),
)


@settings(max_examples=examples(300))
@given(
    st.lists(st.one_of(ANY_FRAME, NEAR, st.sampled_from(["call", "open", "answer", "bytes"])), max_size=30),
    st.binary(max_size=30),
    st.booleans(),
    st.sampled_from([1, 11, 10**6]),
)
def test_hostile_peers_end_their_own_connection_alone(
    steps: list[bytes | str], noise: bytes, is_prompt: bool, abort: int
) -> None:
    """Whatever comes: either it is understood or the connection ends with a code, and nothing is left of it."""
    talk = H2SessionHarness(FakeCore(is_prompt), message_bytes=1000, total_message_bytes=3000, calls=5)
    peer = talk.peer
    stream = -1
    wire = bytearray(peer.greeting())
    answers = 0
    for step in steps:
        if isinstance(step, bytes):
            wire += step
        elif step == "bytes":
            wire += noise
        elif step == "answer":
            answers += 1
        else:
            stream += 2
            wire += peer.call(stream, UNARY, b"echo x") if step == "call" else peer.open(stream, UNARY)
    with contextlib.suppress(ConnectionFault):
        for at in range(0, len(wire), abort):
            talk.session.feed(memoryview(bytes(wire[at : at + abort])))
            for ticket in talk.core.tickets[:answers]:
                if not ticket.is_over:
                    ticket.echo()
            talk.session.pump()
            talk.session.out.clear()
            assert talk.site.held_bytes <= 3000
            assert len(talk.site.visits) <= 5
            assert talk.session.flow.window >= 0
    talk.check_nothing_is_left()


@pytest.mark.parametrize("prefix", [b"", frames.PREFACE, frames.PREFACE + frames.settings([])])
@given(noise=st.binary(max_size=300))
def test_any_bytes(prefix: bytes, noise: bytes) -> None:
    talk = H2SessionHarness()
    with contextlib.suppress(ConnectionFault):
        talk.session.feed(memoryview(prefix + noise))
    talk.check_nothing_is_left()


FLOODS = {
    "DATA frames of one byte": data(1, b"x"),
    "DATA frames that are all padding": frames.head(200, frames.DATA, frames.PADDED, 1)
    + bytes([199])
    + bytes(199),
    "acknowledgements of SETTINGS that nobody sent": frames.SETTINGS_ACK,
    "answers to pings that nobody sent": frames.ping(b"12345678", is_ack=True),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_frames_that_cost_more_than_they_bring_end_the_connection(flood: str) -> None:
    talk = H2SessionHarness(FakeCore(is_prompt=False)).greet()
    talk.say(talk.peer.open(1, UNARY) + data(1, prefixed(bytes(10**6))[:100]))
    with pytest.raises(ConnectionFault) as refused:
        talk.say(FLOODS[flood] * 100_000)
    assert refused.value.code == frames.ENHANCE_YOUR_CALM


def test_a_message_in_pieces_of_a_kilobyte_costs_nothing() -> None:
    talk = H2SessionHarness(FakeCore()).greet()
    talk.say(talk.peer.open(1, UNARY))
    payload = prefixed(b"echo " + bytes(2**22))
    for at in range(0, len(payload), 1000):
        talk.say(data(1, payload[at : at + 1000], at + 1000 >= len(payload)))
    assert len(talk.core.tickets) == 1
