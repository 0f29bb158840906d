"""What a worker sends that is none of ours is ProtocolError, whatever it is, and costs nothing."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples
from tests.harness.worker_frames import as_child, done, part, payloads, written

from trivium.core.workers.wire import AnswerReader, ProtocolError
from trivium.types.payload import Raw
from trivium_worker.wire import frames


def answer(about, data=b"", item=1, what=frames.PAYLOAD):
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    return frames.ANSWER.pack(item, what, len(text), len(data)) + text + data


def read_all(body):
    """Whatever a worker sends is understood or ProtocolError, by each of the readers."""
    for read, data in ((part, body), (done, frames.DONE_HEAD.pack(1, 1, 0.0, 0.0, 0) + body)):
        try:
            read(data)
        except ProtocolError:
            continue


@settings(max_examples=examples(500))
@given(st.binary(max_size=200))
def test_noise_is_garbage(noise):
    read_all(noise)
    with contextlib.suppress(ProtocolError):
        done(noise)


@settings(max_examples=examples(300))
@given(st.one_of(payloads), st.data())
def test_what_was_cut_or_changed_is_garbage_or_understood(payload, data):
    body = bytearray(written(as_child(payload)))
    cut = data.draw(st.integers(0, len(body)))
    read_all(bytes(body[:cut]))
    for _ in range(3):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    read_all(bytes(body))


trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
rows = st.lists(
    st.tuples(
        trees, st.sampled_from(["FP32", "BYTES", "BOOL", "X"]) | trees, st.lists(trees, max_size=3), trees
    ),
    max_size=3,
)
abouts = st.one_of(
    trees,
    st.fixed_dictionaries({"tensors": rows | trees}, optional={"parameters": trees}),
    st.fixed_dictionaries(
        {
            "raw": trees
            | st.fixed_dictionaries(
                {"parts": rows | trees, "properties": trees, "query": trees, "status": trees, "reason": trees}
            )
        }
    ),
)


@settings(max_examples=examples(1000))
@given(abouts, st.binary(max_size=16), st.integers(0, 7))
def test_whatever_an_answer_says_of_itself(about, data, what):
    body = answer(about, data, what=what)
    read_all(body)
    try:
        _, outcome, _, parameters = part(body)
    except ProtocolError:
        return
    assert all(isinstance(value, bool | int | float | str) for value in parameters.values())
    if isinstance(outcome, Raw):
        assert isinstance(outcome.status, int)
        assert all(
            isinstance(v, str)
            for v in (*outcome.properties.values(), *(part for pair in outcome.query for part in pair))
        )


HOSTILE = {
    "no JSON": b"{",
    "no object": b"[]",
    "deeper than a reader goes": b"[" * 100_000,
    "deep in an object": b'{"tensors":' + b"[" * 100_000,
    "neither": b"{}",
    "a row too short": {"tensors": [["x", "FP32", [1]], ["y"]]},
    "no such datatype": {"tensors": [["x", "FP31", [1], 4]]},
    "more than there is": {"tensors": [["x", "FP32", [2], 8]]},
    "a shape of all the world": {"tensors": [["x", "FP32", [2**62, 4], 4]]},
    "a shape of less than nothing": {"tensors": [["x", "FP32", [-1], 4]]},
    "a shape of parts": {"tensors": [["x", "FP32", [1.0], 4]]},
    "a status of text": {"raw": {"parts": [], "properties": {}, "query": {}, "status": "x", "reason": ""}},
    "parameters of a list": {"tensors": [["x", "FP32", [1], 4]], "parameters": [1]},
    "a parameter of a list": {"tensors": [["x", "FP32", [1], 4]], "parameters": {"a": []}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers(name):
    with pytest.raises(ProtocolError):
        part(answer(HOSTILE[name], b"1234"))


def test_a_claim_of_length_costs_nothing():
    for text_size, size in ((2**32 - 1, 0), (0, 2**63), (2, 2**64 - 1)):
        with pytest.raises(ProtocolError):
            part(frames.ANSWER.pack(1, 0, text_size, size) + b"{}")
    with pytest.raises(ProtocolError):
        done(frames.DONE_HEAD.pack(1, 2**32 - 1, 0.0, 0.0, 0))


def read_one(body, reader):
    return done(frames.DONE_HEAD.pack(1, 1, 0.0, 0.0, 0) + body, reader)[2][0]


def test_what_is_known_by_heart_is_still_measured():
    reader = AnswerReader()
    about = {"tensors": [["x", "FP32", [1], 4]]}
    for _ in range(2):
        outcome = read_one(answer(about, b"1234"), reader)
        assert outcome.items[0].shape == (1,)
    for data in (b"", b"123", b"12345678"):
        with pytest.raises(ProtocolError):
            read_one(answer(about, data), reader)
