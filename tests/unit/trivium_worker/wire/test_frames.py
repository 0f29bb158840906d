"""Frames: whole ones found in whatever comes together, claims that are none refused, texts written once."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium_worker.wire import frames
from trivium_worker.wire.frames import HEAD, AnswerTexts, Texts
from trivium_worker.wire.values import Failure, Part, Raw, Tensor

bodies = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=30)), max_size=6)


@settings(max_examples=examples(300))
@given(bodies, st.data())
def test_frames_are_found_however_they_come(sent, data):
    stream = b"".join(frames.frame(kind, body) for kind, body in sent)
    came, kept = [], b""
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        kept, stream = kept + stream[:cut], stream[cut:]
        found, used = frames.frames(kept)
        came += [(kind, kept[at:end]) for kind, at, end in found]
        kept = kept[used:]
        assert not kept or len(kept) < (frames.wanted(kept, 0) or 5)
    assert kept == b""
    assert came == sent


@settings(max_examples=examples(500))
@given(st.binary(max_size=60))
def test_noise_is_frames_or_refused(noise):
    try:
        found, used = frames.frames(noise)
    except ValueError:
        return
    assert 0 <= used <= len(noise)
    assert sum(5 + end - at for _, at, end in found) == used
    assert frames.wanted(noise, used) <= frames.MOST + 4


@pytest.mark.parametrize("size", [0, frames.MOST + 1, 2**32 - 1])
def test_claims_that_are_none(size):
    head = struct.pack("<IB", size, 1)
    with pytest.raises(ValueError, match=f"claims {size} bytes"):
        frames.frames(head)
    assert frames.wanted(head[:4], 0) == 0, "nobody waits for so much"
    assert frames.wanted(struct.pack("<I", frames.MOST), 0) == frames.MOST + 4
    assert frames.wanted(b"\x01\x00", 0) == 0


def test_the_kinds_are_all_different():
    names = "SETUP RUN CANCEL PING REPLY STOP TAKEN READY REFUSED DONE PART PONG CALL ASK LOG MEASURE HANG_UP"
    kinds = [getattr(frames, name) for name in names.split()]
    assert len(set(kinds)) == len(kinds)


@given(st.binary(max_size=20))
def test_texts_are_objects_or_refused(noise):
    with contextlib.suppress(ValueError):
        assert isinstance(frames.read(noise), dict)


@pytest.mark.parametrize("noise", [b"[1]", b"1", b"null", b"", b"\xff", b"[" * 100_000, b'{"a":' * 50_000])
def test_what_is_no_object(noise):
    with pytest.raises(ValueError):
        frames.read(noise)


def test_texts_may_hold_anything_that_python_does():
    told = {"half a pair": "\ud800", "ä": [1.5, None, True, 2**80], "nan": float("inf")}
    assert frames.read(frames.text(told))["ä"] == [1.5, None, True, 2**80]


def test_texts_are_decoded_once_while_they_are_short_and_few():
    texts = Texts()
    short = frames.text({"a": 1})
    assert texts.read(short) is texts.read(bytes(short))
    long = frames.text({"a": "x" * frames.LONGEST_KNOWN})
    assert texts.read(long) is not texts.read(long)
    many = [frames.text({"number": number}) for number in range(3 * frames.MOST_KNOWN)]
    for text in many:
        texts.read(text)
    assert 0 < sum(texts.known(text) is not None for text in (short, *many)) <= frames.MOST_KNOWN
    with pytest.raises(ValueError):
        texts.read(b"[]")


def written(texts, number, outcome, flags=0):
    pieces = []
    assert texts.write(pieces, number, outcome, flags) == sum(map(len, pieces))
    return pieces


def test_answers_that_are_alike_are_described_once():
    texts = AnswerTexts()
    for number in range(2):
        tensor = Tensor("x", "FP32", (1,), b"1234")
        head, about, data = written(texts, number, [tensor])
        assert frames.ANSWER.unpack(head) == (number, frames.PAYLOAD, len(about), 4)
        assert data == b"1234"
    assert about is written(texts, 9, [Tensor("x", "FP32", [1], b"5678")])[1]
    for size in range(3 * frames.MOST_KNOWN):
        written(texts, 1, [Tensor("x", "UINT8", (size,), bytes(size))])
    again = written(texts, 9, [Tensor("x", "FP32", (1,), b"5678")])[1]
    assert again == about
    assert again is not about, "what is old is forgotten"


def test_what_is_no_outcome_is_not_written():
    for outcome in (None, "text", {"a": 1}):
        with pytest.raises(AssertionError, match="no outcome"):
            written(AnswerTexts(), 1, outcome)


def test_a_failure_keeps_code_and_status():
    head, about = written(AnswerTexts(), 4, Failure("it is bad", "invalid", 418), frames.FINAL)
    assert frames.ANSWER.unpack(head) == (4, frames.FAILURE | frames.FINAL, len(about), 0)
    assert frames.read(about) == {"code": "invalid", "message": "it is bad", "status": 418}


def test_a_payload_is_cut_where_its_text_says():
    tensors = [
        Tensor("a", "UINT8", (2,), b"12"),
        Tensor("b", "UINT8", (0,), b""),
        Tensor("c", "UINT8", (1,), b"3"),
    ]
    rows, blobs = frames.tensors_text(tensors)
    found = frames.read_payload({"tensors": rows}, memoryview(b"".join(blobs)))
    assert [(t.name, bytes(t.data)) for t in found] == [("a", b"12"), ("b", b""), ("c", b"3")]
    raw = Raw(
        [Part(b"one", "text/plain", "f", "f.txt"), Part(b"")],
        {"P": "1"},
        [("q", "2"), ("q", "1"), ("a", "")],
        201,
        "Made",
    )
    told, blobs = frames.raw_text(raw)
    came = frames.read_payload({"raw": told}, memoryview(b"".join(blobs)))
    assert [(bytes(p.data), p.content_type, p.name, p.filename) for p in came.parts] == [
        (b"one", "text/plain", "f", "f.txt"), (b"", "", "", ""),
    ]  # fmt: skip
    assert (came.properties, came.query, came.status, came.reason) == (
        {"P": "1"},
        [("q", "2"), ("q", "1"), ("a", "")],
        201,
        "Made",
    )
    for data in (b"oneX", b"on"):
        with pytest.raises(ValueError, match="describes 3 bytes"):
            frames.read_payload({"raw": told}, memoryview(data))


def test_a_frame_is_its_head_and_its_body():
    assert frames.frame(frames.STOP) == HEAD.pack(1, frames.STOP)
    assert frames.frame(7, memoryview(b"ab")) == b"\x03\x00\x00\x00\x07ab"
