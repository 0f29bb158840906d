"""Windows and turns: nothing beyond a window, everything that fits, in a fair order."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.frontends.h2 import frames
from trivium.frontends.h2.flow import Bytes, Sender, SendFlow
from trivium.frontends.h2.frames import FLOW_CONTROL_ERROR, MOST_WINDOW, ConnectionFault, StreamFault

LARGE = 10**9


class Reports(Sender):
    """Counts how often all was sent."""

    def __init__(self, number: int, window: int) -> None:
        super().__init__(number, window)
        self.times_sent = 0

    def on_sent(self) -> None:
        self.times_sent += 1


def sent_by(flow: SendFlow, most: int = LARGE) -> list[tuple[int, bytes]]:
    """Payloads of the DATA frames, with their streams; tails (b"tail") as they are."""
    out: list[Bytes] = []
    flow.send(out, most)
    wire = b"".join(out)
    found = []
    while wire:
        if wire.startswith(b"tail"):
            found.append((0, b"tail"))
            wire = wire[4:]
            continue
        high, low, kind, flags, stream = frames.HEAD.unpack_from(wire)
        size = high << 8 | low
        assert (kind, flags) == (frames.DATA, 0)
        assert 0 < size <= flow.frame_size
        found.append((stream, wire[9 : 9 + size]))
        wire = wire[9 + size :]
    return found


def test_one_after_another() -> None:
    flow = SendFlow()
    one, two = Reports(1, 100), Reports(3, 100)
    flow.put(one, b"prefix", b"message")
    assert flow.end(one, b"tail") is False
    flow.put(two, b"x" * 20)
    assert flow.unsent == 33
    assert sent_by(flow) == [(1, b"prefixmessage"), (0, b"tail"), (3, b"x" * 20)]
    assert (one.times_sent, two.times_sent, flow.unsent) == (1, 1, 0)
    assert (one.window, flow.window) == (87, 65535 - 33)
    assert flow.end(two, b"tail") is True
    assert sent_by(flow) == []


def test_turns_are_fair() -> None:
    flow = SendFlow()
    flow.grow(10**6)
    senders = [Reports(number, 10**6) for number in (1, 3, 5)]
    for sender in senders:
        flow.put(sender, bytes(40_000))
    assert [stream for stream, _ in sent_by(flow)] == [1, 3, 5, 1, 3, 5, 1, 3, 5]


def test_a_large_frame_size_is_no_longer_turn() -> None:
    flow = SendFlow()
    flow.grow(10**6)
    flow.frame_size = 2**20
    for number in (1, 3):
        flow.put(Reports(number, 10**6), bytes(100_000))
    assert [(stream, len(data)) for stream, data in sent_by(flow)] == [
        (1, 65536),
        (3, 65536),
        (1, 34464),
        (3, 34464),
    ]


def test_a_closed_stream_window_holds_nobody_else() -> None:
    flow = SendFlow()
    one, two = Reports(1, 5), Reports(3, 100)
    flow.put(one, b"abcdefgh")
    flow.put(two, b"12345678")
    assert sent_by(flow) == [(1, b"abcde"), (3, b"12345678")]
    assert sent_by(flow) == []
    flow.grow_stream(one, 2)
    assert sent_by(flow) == [(1, b"fg")]
    flow.grow_stream(one, 100)
    assert sent_by(flow) == [(1, b"h")]
    assert one.times_sent == 1


def test_the_connection_window_holds_all() -> None:
    flow = SendFlow()
    flow.window = 10
    one, two = Reports(1, 100), Reports(3, 100)
    flow.put(one, b"x" * 8)
    flow.put(two, b"y" * 8)
    assert sent_by(flow) == [(1, b"x" * 8), (3, b"yy")]
    assert sent_by(flow) == []
    flow.grow(3)
    assert sent_by(flow) == [(3, b"yyy")]
    flow.grow(100)
    assert sent_by(flow) == [(3, b"yyy")]


def test_a_changed_initial_window_moves_open_streams() -> None:
    """RFC 9113 6.9.2: also below zero."""
    flow = SendFlow()
    flow.set_initial(10, [])
    one = Reports(1, flow.initial)
    flow.put(one, b"x" * 20)
    assert sent_by(flow) == [(1, b"x" * 10)]
    flow.set_initial(5, [one])
    assert one.window == -5
    flow.grow_stream(one, 5)
    assert sent_by(flow) == []
    flow.set_initial(9, [one])
    assert sent_by(flow) == [(1, b"x" * 4)]


def test_what_is_dropped_is_not_sent() -> None:
    flow = SendFlow()
    one, two = Reports(1, 100), Reports(3, 100)
    flow.put(one, b"gone")
    flow.end(one, b"tail")
    flow.put(two, b"stays")
    flow.drop(one)
    assert flow.unsent == 5
    assert sent_by(flow) == [(3, b"stays")]
    assert one.times_sent == 0


def test_a_measure_is_sent_at_once() -> None:
    flow = SendFlow()
    flow.grow(10**6)
    flow.put(Reports(1, 10**6), bytes(100_000))
    assert sum(len(data) for _, data in sent_by(flow, 20_000)) == 32_768
    assert sum(len(data) for _, data in sent_by(flow)) == 100_000 - 32_768


def overflow_connection(flow: SendFlow) -> None:
    flow.grow(MOST_WINDOW)


def overflow_stream(flow: SendFlow) -> None:
    flow.grow_stream(Reports(1, 1), MOST_WINDOW)


def overflow_initial(flow: SendFlow) -> None:
    flow.set_initial(MOST_WINDOW + 1, [])


def overflow_by_initial(flow: SendFlow) -> None:
    flow.set_initial(MOST_WINDOW, [Reports(1, MOST_WINDOW)])


@pytest.mark.parametrize(
    "work", [overflow_connection, overflow_stream, overflow_initial, overflow_by_initial]
)
def test_windows_have_an_end(work: Callable[[SendFlow], None]) -> None:
    with pytest.raises((ConnectionFault, StreamFault)) as caught:
        work(SendFlow())
    assert caught.value.code == FLOW_CONTROL_ERROR  # type: ignore[attr-defined]


SIZES = st.integers(0, 40_000)
STEP = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 3), SIZES),
    st.tuples(st.just("grow stream"), st.integers(0, 3), SIZES),
    st.tuples(st.just("grow"), st.just(0), SIZES),
    st.tuples(st.just("initial"), st.just(0), SIZES),
    st.tuples(st.just("drop"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("send"), st.just(0), st.integers(1, 100_000)),
)


@given(st.lists(STEP, max_size=60))
def test_windows_are_kept_and_used(steps: list[tuple[str, int, int]]) -> None:
    """A model beside it: never beyond a window, nothing lost or twice, and nothing left that could go."""
    flow = SendFlow()
    senders = [Reports(number, flow.initial) for number in (1, 3, 5, 7)]
    room, rooms = flow.window, [flow.initial] * 4
    waiting = [b""] * 4
    sent = 0
    for kind, index, size in steps:
        if kind == "put":
            piece = bytes([(sent + at) % 251 for at in range(size)])
            sent += size
            waiting[index] += piece
            flow.put(senders[index], piece)
        elif kind == "grow stream":
            rooms[index] += size
            flow.grow_stream(senders[index], size)
        elif kind == "grow":
            room += size
            flow.grow(size)
        elif kind == "initial":
            rooms = [one + size - flow.initial for one in rooms]
            flow.set_initial(size, senders)
        elif kind == "drop":
            waiting[index] = b""
            flow.drop(senders[index])
        else:
            out = sent_by(flow, size)
            for stream, data in out:
                at = stream // 2
                room -= len(data)
                rooms[at] -= len(data)
                assert room >= 0
                assert rooms[at] >= 0
                assert waiting[at].startswith(data)
                waiting[at] = waiting[at][len(data) :]
            if sum(len(data) for _, data in out) < size:
                assert room == 0 or all(not rest or rooms[at] <= 0 for at, rest in enumerate(waiting))
        assert flow.unsent == sum(map(len, waiting))
        assert (flow.window, [sender.window for sender in senders]) == (room, rooms)
