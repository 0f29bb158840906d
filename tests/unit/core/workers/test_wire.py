"""Batches into frames and outcomes out of them: the same values on both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples
from tests.harness.worker_frames import (
    CAPACITY,
    as_child,
    done,
    infers,
    joined,
    names,
    part,
    payloads,
    read_run,
    said,
    scalars,
    whole,
    written,
)

from trivium.core.workers import wire
from trivium.core.workers.arena import Arena
from trivium.core.workers.wire import AnswerReader, BatchWriter, write_reply
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Listed, Raw, Tensors
from trivium.types.running import Batch
from trivium_worker.wire import frames, values
from trivium_worker.wire.frames import AnswerTexts


@pytest.fixture(scope="module")
def arena():
    made = Arena("m", CAPACITY)
    yield made
    made.close()


@settings(max_examples=examples(200))
@given(st.lists(infers, min_size=1, max_size=4))
def test_a_batch_arrives_as_it_was(arena, infers):
    writer = BatchWriter(arena)
    for number in (1, 2):  # the second time some of it is known by heart
        batch = Batch(list(range(10, 10 + len(infers))), infers, [1] * len(infers))
        kind, body = whole(writer.write(number, batch))
        assert kind == frames.RUN
        found, items = read_run(body, arena)
        assert found == number
        for (item, name, rows, payload, about), infer in zip(items, infers, strict=True):
            assert (infers[item - 10], name, rows) == (infer, infer.id, 1)
            assert said(payload) == said(infer.payload)
            assert about.get("outputs", []) == [output.name for output in infer.outputs]
            assert about.get("parameters", {}) == infer.parameters
            assert about.get("priority", 0) == infer.priority
            assert about.get("timeout") == infer.deadline
            sequence = infer.sequence
            assert about.get("sequence") == (sequence and [sequence.id, sequence.starts, sequence.ends])
    assert writer.copies == {}


@settings(max_examples=examples(200))
@given(st.lists(payloads | st.just(values.END) | st.builds(values.Failure, names), min_size=1, max_size=4))
def test_outcomes_arrive_as_they_were(outcomes):
    texts, reader = AnswerTexts(), AnswerReader()
    for number in (1, 2):
        pieces = [frames.DONE_HEAD.pack(number, len(outcomes), 1.5, 2.5, 7)]
        for item, outcome in enumerate(outcomes):
            is_value = isinstance(outcome, Tensors | Raw | Listed)
            pieces.append(written(as_child(outcome) if is_value else outcome, item, texts=texts))
        found, items, came, *times, rows = done(joined(pieces), reader)
        assert (found, items, times, rows) == (number, list(range(len(outcomes))), [1.5, 2.5], 7)
        for one, outcome in zip(came, outcomes, strict=True):
            if isinstance(outcome, values.Failure):
                assert (one.code, one.message, one.status) == (Code.MODEL_FAILED, outcome.message, None)
            else:
                assert (one and said(one)) == (None if outcome is values.END else said(outcome))


@settings(max_examples=examples(200))
@given(payloads | st.just(values.END), st.dictionaries(names, scalars, max_size=2), st.booleans())
def test_parts_arrive_with_their_parameters(outcome, parameters, final):
    is_end = outcome is values.END
    body = written(outcome if is_end else as_child(outcome), 7, frames.FINAL * final, parameters or None)
    item, came, is_final, told = part(body)
    assert (item, is_final, told) == (7, final, parameters)
    assert came is None if is_end else said(came) == said(outcome)


@settings(max_examples=examples(200))
@given(payloads | st.none(), st.dictionaries(names, scalars, max_size=2), st.booleans())
def test_replies_arrive_as_they_were(payload, parameters, final):
    kind, body = whole(write_reply(3, payload, None, final, parameters))
    assert kind == frames.REPLY
    number, what, text_size, size = frames.ANSWER.unpack_from(body, 0)
    at = frames.ANSWER.size
    about = frames.read(body[at : at + text_size])
    assert (number, bool(what & frames.FINAL), about.get("parameters", {})) == (3, final, parameters)
    assert at + text_size + size == len(body)
    if payload is not None:
        assert said(frames.read_payload(about, memoryview(body)[at + text_size :])) == said(payload)


def test_errors_arrive_with_code_and_status():
    error = ServeError(Code.NOT_FOUND, "nobody is there", status=404)
    _, body = whole(write_reply(3, None, error, True, {}))
    about = frames.read(body[frames.ANSWER.size :])
    assert about == {"code": "not found", "message": "nobody is there", "status": 404}
    told = (("invalid", 418, 418), ("no such code", 99, None), ("invalid", "x", None), ("invalid", 204, None))
    for code, status, found in told:
        came = wire.failure({"code": code, "message": "m", "status": status})
        assert (came.code, came.status) == (
            Code.INVALID if code == "invalid" else Code.MODEL_FAILED,
            found,
        )


@pytest.mark.parametrize("metadata", [{"words": "a text", "count": 3}, None, [1], "no mapping"])
def test_a_reason_comes_with_its_metadata_as_texts(metadata):
    told = {"code": "invalid", "message": "m", "status": None, "reason": "translation", "metadata": metadata}
    came = wire.failure(told)
    expected = {"words": "a text", "count": "3"} if isinstance(metadata, dict) else {}
    assert (came.reason, came.metadata) == ("translation", expected)
