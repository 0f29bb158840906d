"""Bytes to frames: whole, abort anywhere, padded, continued, and wrong."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.frontends.h2 import frames
from trivium.frontends.h2.frame_reader import FrameReader, NoHttp2
from trivium.frontends.h2.frames import CONTINUATION, DATA, HEADERS, PREFACE, ConnectionFault, head

SETTINGS = frames.settings([])


class Notes:
    """What was heard; pieces of DATA are put together."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.data: dict[int, bytearray] = {}
        self.counted: dict[int, int] = {}
        self.long: list[int] = []

    def on_data(self, stream: int, piece: memoryview, counted: int, ends: bool) -> None:
        self.data.setdefault(stream, bytearray()).extend(piece)
        self.counted[stream] = self.counted.get(stream, 0) + counted
        if ends:
            self.heard.append(("data", stream, bytes(self.data[stream]), self.counted[stream]))

    def on_long_block(self, size: int) -> None:
        self.long.append(size)

    def on_headers(self, stream: int, block: bytes, ends: bool) -> None:
        self.heard.append(("headers", stream, block, ends))

    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self.heard.append((kind, flags, stream, payload))


def read(*pieces: bytes) -> Notes:
    notes = Notes()
    reader = FrameReader(notes, 50_000, 1000, 4000)
    for piece in pieces:
        scratch = bytearray(piece)
        reader.feed(memoryview(scratch))
        scratch[:] = bytes(len(scratch))  # others use it now
    return notes


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return head(len(payload), kind, flags, stream) + payload


ALL = (
    PREFACE
    + SETTINGS
    + frame(HEADERS, 0x4, 1, b"block")
    + frame(DATA, 0, 1, b"some")
    + frame(DATA, 0, 1, b"")
    + frame(DATA, 0x9, 1, b"\x03data" + bytes(3))
    + frame(HEADERS, 0x2D, 3, b"\x02" + b"prior" + b"padded block" + bytes(2))
    + frame(HEADERS, 0x1, 5, b"one ")
    + frame(CONTINUATION, 0, 5, b"two ")
    + frame(CONTINUATION, 0x4, 5, b"three")
    + frame(DATA, 0x8, 7, b"\x00")
    + frame(DATA, 0x9, 7, b"\x04" + bytes(4))
    + frame(0x42, 0xFF, 2**31 - 1, b"unknown")
    + frame(DATA, 0x1, 9, bytes(40_000))
)
HEARD = [
    (frames.SETTINGS, 0, 0, b""),
    ("headers", 1, b"block", False),
    ("data", 1, b"somedata", 12),
    ("headers", 3, b"padded block", True),
    ("headers", 5, b"one two three", True),
    ("data", 7, b"", 6),
    (0x42, 0xFF, 2**31 - 1, b"unknown"),
    ("data", 9, bytes(40_000), 40_000),
]


def test_whole() -> None:
    assert read(ALL).heard == HEARD


def test_byte_by_byte() -> None:
    assert read(*(ALL[at : at + 1] for at in range(len(ALL)))).heard == HEARD


@given(st.lists(st.integers(0, len(ALL)), max_size=40))
def test_cut_anywhere(cuts: list[int]) -> None:
    edges = sorted([0, *cuts, len(ALL)])
    notes = read(*(ALL[begin:end] for begin, end in itertools.pairwise(edges)))
    assert notes.heard == HEARD


WRONG = [
    (b"GET / HTTP/1.1\r\n\r\n", frames.PROTOCOL_ERROR),
    (b"PRI * HTTP/2.0\r\n\r\nXX", frames.PROTOCOL_ERROR),
    (PREFACE + frame(DATA, 0, 0, b"x"), frames.PROTOCOL_ERROR),
    (PREFACE + frame(HEADERS, 4, 0, b"x"), frames.PROTOCOL_ERROR),
    (PREFACE + frame(DATA, 0x8, 1, b""), frames.PROTOCOL_ERROR),
    (PREFACE + frame(DATA, 0x8, 1, b"\x01"), frames.PROTOCOL_ERROR),
    (PREFACE + frame(DATA, 0x8, 1, b"\x05abcd"), frames.PROTOCOL_ERROR),
    (PREFACE + head(50_001, DATA, 0, 1), frames.FRAME_SIZE_ERROR),
    (PREFACE + head(4001, HEADERS, 4, 1), frames.ENHANCE_YOUR_CALM),
    (PREFACE + head(1001, frames.PING, 0, 0), frames.FRAME_SIZE_ERROR),
    (PREFACE + frame(HEADERS, 0xC, 1, b"\x05abc"), frames.PROTOCOL_ERROR),
    (PREFACE + frame(HEADERS, 0x24, 1, b"abc"), frames.PROTOCOL_ERROR),
    (PREFACE + frame(HEADERS, 0xC, 1, b""), frames.PROTOCOL_ERROR),
    (PREFACE + frame(CONTINUATION, 4, 1, b""), frames.PROTOCOL_ERROR),
    (PREFACE + frame(HEADERS, 0, 1, b"") + frame(CONTINUATION, 4, 3, b""), frames.PROTOCOL_ERROR),
    (PREFACE + frame(HEADERS, 0, 1, b"") + frame(DATA, 0, 1, b""), frames.PROTOCOL_ERROR),
    (PREFACE + frame(HEADERS, 0, 1, b"") + SETTINGS, frames.PROTOCOL_ERROR),
    (PREFACE + frame(HEADERS, 0, 1, b"") + frame(HEADERS, 4, 3, b""), frames.PROTOCOL_ERROR),
    (PREFACE + frame(frames.PUSH_PROMISE, 4, 1, b"abcd"), frames.PROTOCOL_ERROR),
    (
        PREFACE + frame(HEADERS, 0, 1, bytes(3000)) + head(1001, CONTINUATION, 0, 1),
        frames.ENHANCE_YOUR_CALM,
    ),
    (PREFACE + frame(HEADERS, 0, 1, b"") + frame(CONTINUATION, 0, 1, b"") * 33, frames.ENHANCE_YOUR_CALM),
]


@pytest.mark.parametrize(("sent", "code"), WRONG)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_what_is_wrong(sent: bytes, code: int, size: int) -> None:
    with pytest.raises(ConnectionFault) as caught:
        read(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert caught.value.code == code


def test_what_is_no_http2_is_kept_for_its_refusal() -> None:
    with pytest.raises(NoHttp2) as caught:
        read(b"GET /")
    assert caught.value.began == b"GET /"


@pytest.mark.parametrize("size", [1, 500, 10_000])
def test_a_long_header_block_is_told_before_it_is_kept(size: int) -> None:
    parts = (900, 900, 900)
    sent = PREFACE + b"".join(
        frame(CONTINUATION if index else HEADERS, 4 if index == 2 else 0, 1, bytes(part))
        for index, part in enumerate(parts)
    )
    notes = read(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert sorted(set(notes.long)) == [1800, 2700]
    assert notes.heard == [("headers", 1, bytes(2700), False)]


def test_a_usual_header_block_is_not_told() -> None:
    assert read(ALL).long == []
