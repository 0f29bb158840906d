"""Batches into frames and outcomes out of them: the same values on both sides, and nothing but Garbage for noise."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trivium.core.workers import wire
from trivium.core.workers.arena import SMALLEST, Arena
from trivium.core.workers.wire import AnswerReader, BatchWriter, Garbage, write_reply
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, SequenceRef, WantedOutput
from trivium.types.payload import Raw, RawPart, Tensor, Tensors
from trivium.types.running import Batch
from trivium_child import frames, values
from trivium_child.frames import AnswerTexts

CAPACITY = 2**20
names = st.text(max_size=8)
texts = st.dictionaries(names, names, max_size=3)
scalars = st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | names
shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@pytest.fixture(scope="module")
def arena():
    made = Arena("m", CAPACITY)
    yield made
    made.close()


@st.composite
def tensors(draw):
    datatype, shape = draw(st.sampled_from(DataType)), draw(shapes)
    count = int(np.prod(shape))
    if datatype is DataType.BYTES:
        array = np.empty(count, dtype=object)
        array[:] = [draw(st.binary(max_size=5)) for _ in range(count)]
        return Tensor(draw(names), datatype, shape, array.reshape(shape))
    data = draw(st.binary(min_size=count * datatype.itemsize, max_size=count * datatype.itemsize))
    if datatype is DataType.BOOL:
        data = bytes(byte & 1 for byte in data)
    return Tensor(draw(names), datatype, shape, np.frombuffer(bytearray(data), datatype.dtype).reshape(shape))


parts = st.builds(RawPart, st.binary(max_size=20), names, names, names)
raws = st.builds(Raw, st.lists(parts, max_size=3).map(tuple), texts, texts, st.integers(0, 599), names)
payloads = st.lists(tensors(), max_size=3).map(lambda items: Tensors(tuple(items))) | raws
infers = st.builds(
    Infer,
    st.just("m"),
    payloads,
    id=names,
    outputs=st.lists(st.builds(WantedOutput, names), max_size=2).map(tuple),
    parameters=st.dictionaries(names, scalars, max_size=2),
    priority=st.integers(0, 9),
    deadline=st.none() | st.floats(0.1, 9),
    sequence=st.none() | st.builds(SequenceRef, st.integers(0, 9) | names, st.booleans(), st.booleans()),
)


def said(payload):
    """A payload's contents, to compare; on either side of the wire."""
    if isinstance(payload, Tensors):
        return [(t.name, t.datatype.wire, t.shape, t.array.tolist() if t.datatype is DataType.BYTES else t.array.tobytes())
                for t in payload.items]  # fmt: skip
    if isinstance(payload, list):
        return [(t.name, t.datatype, t.shape, t.array().tolist() if t.datatype == "BYTES" else bytes(t.data))
                for t in payload]  # fmt: skip
    parts = [(bytes(p.data), p.content_type, p.name, p.filename) for p in payload.parts]
    return parts, dict(payload.properties), dict(payload.query), payload.status, payload.reason


def as_child(payload):
    """The payload as an adapter would return it."""
    if isinstance(payload, Tensors):
        return [values.Tensor(*row) for row in (_row(t) for t in payload.items)]
    parts = [values.Part(p.data, p.content_type, p.name, p.filename) for p in payload.parts]
    return values.Raw(parts, dict(payload.properties), dict(payload.query), payload.status, payload.reason)


def _row(tensor):
    made = values.Tensor.of_array(tensor.name, tensor.array)
    return tensor.name, tensor.datatype.wire, tensor.shape, made.data


def joined(pieces):
    return b"".join(map(bytes, pieces))


def whole(pieces):
    """The one frame in these pieces."""
    data = joined(pieces)
    ((kind, body),), used = frames.frames(data)
    assert used == len(data)
    return kind, body


def read_run(body, arena):
    """What the child makes of a batch: (number, [(item, id, rows, payload, about)])."""
    number, count = frames.RUN_HEAD.unpack_from(body, 0)
    at, items = frames.RUN_HEAD.size, []
    for _ in range(count):
        item, rows, id_size, text_size, place, base, size = frames.ITEM.unpack_from(body, at)
        at += frames.ITEM.size
        name, text = bytes(body[at : at + id_size]), bytes(body[at + id_size : at + id_size + text_size])
        at += id_size + text_size
        data = arena.memory[base : base + size]
        if place == frames.INLINE:
            data = body[at : at + size]
            at += size
        about = frames.read(text)
        items.append((item, name.decode(), rows, frames.read_payload(about, data), about))
    assert at == len(body)
    return number, items


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
@given(st.lists(payloads | st.just(values.END) | st.builds(values.Failure, names), min_size=1, max_size=4))
def test_outcomes_arrive_as_they_were(outcomes):
    texts, reader = AnswerTexts(), AnswerReader()
    for number in (1, 2):
        pieces = [frames.DONE_HEAD.pack(number, len(outcomes), 1.5, 2.5)]
        for item, outcome in enumerate(outcomes):
            is_value = isinstance(outcome, Tensors | Raw)
            pieces += texts.write(item, as_child(outcome) if is_value else outcome)
        found, items, came, began, ended = reader.done(memoryview(joined(pieces)))
        assert (found, items, began, ended) == (number, list(range(len(outcomes))), 1.5, 2.5)
        for one, outcome in zip(came, outcomes, strict=True):
            if isinstance(outcome, values.Failure):
                assert (one.code, one.message, one.status) == (Code.MODEL_FAILED, outcome.message, None)
            else:
                assert (one and said(one)) == (None if outcome is values.END else said(outcome))


@settings(max_examples=200, deadline=None)
@given(payloads | st.just(values.END), st.dictionaries(names, scalars, max_size=2), st.booleans())
def test_parts_arrive_with_their_parameters(outcome, parameters, final):
    is_end = outcome is values.END
    pieces = AnswerTexts().write(
        7, outcome if is_end else as_child(outcome), frames.FINAL * final, parameters or None
    )
    item, came, is_final, told = AnswerReader().part(memoryview(joined(pieces)))
    assert (item, is_final, told) == (7, final, parameters)
    assert came is None if is_end else said(came) == said(outcome)


@settings(max_examples=200, deadline=None)
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
        assert said(frames.read_payload(about, body[at + text_size :])) == said(payload)


def test_errors_arrive_with_code_and_status():
    error = ServeError(Code.NOT_FOUND, "nobody is there", status=404)
    _, body = whole(write_reply(3, None, error, True, {}))
    about = frames.read(body[frames.ANSWER.size :])
    assert about == {"code": "not found", "message": "nobody is there", "status": 404}
    for code, status, found in (("invalid", 418, 418), ("no such code", 99, None), ("invalid", "x", None)):
        came = wire.failure({"code": code, "message": "m", "status": status})
        assert (came.code, came.status) == (
            Code.INVALID if code == "invalid" else Code.MODEL_FAILED,
            found,
        )


# -- the arena ---------------------------------------------------------------------------------------------


def run(arena, payload, **fields):
    """The one item of a batch, as the child reads it, and whether it lies in the arena."""
    writer = BatchWriter(arena)
    _, body = whole(writer.write(1, Batch([5], [Infer(model="m", payload=payload, **fields)], [1])))
    _, (item,) = read_run(body, arena)
    return item[3], writer.copies, len(body)


def received(arena, *blobs):
    """A body in the arena; its lease, and a view of each blob."""
    lease = arena.lend(sum(map(len, blobs)))
    at, views = 0, []
    for blob in blobs:
        lease.view[at : at + len(blob)] = blob
        views.append(lease.view[at : at + len(blob)])
        at += len(blob)
    return lease, views


def floats(name, view):
    array = np.frombuffer(view, "<f4")
    return Tensor(name, DataType.FP32, array.shape, array)


def test_what_was_received_in_the_arena_stays_there(arena):
    lease, views = received(arena, bytes(range(256)) * 40, b"abcd" * 100)
    payload = Tensors((floats("a", views[0]), floats("b", views[1])), lease)
    came, copies, size = run(arena, payload)
    assert said(came) == said(payload)
    assert copies == {}
    assert size < 500
    lease.release()


def test_a_tensor_without_elements_among_others_in_the_arena(arena):
    lease, views = received(arena, bytes(SMALLEST), b"1234")
    for order in ((b"", views[0], views[1]), (views[0], b"", views[1]), (views[0], views[1], b"")):
        payload = Tensors(tuple(floats(str(i), view) for i, view in enumerate(order)), lease)
        came, copies, _ = run(arena, payload)
        assert said(came) == said(payload)
        assert copies == {}
    lease.release()


@pytest.mark.parametrize("kind", ["bytes", "json", "swapped", "apart"])
def test_what_lies_elsewhere_than_its_body_is_copied(arena, kind):
    """A lease says where the body is, not where what was decoded from it is."""
    lease, views = received(arena, bytes(range(256)) * 40, b"abcd" * 2600)
    if kind == "bytes":
        array = np.array([bytes(views[0])], dtype=object)
        payload = Tensors((Tensor("x", DataType.BYTES, (1,), array),), lease)
    elif kind == "json":
        payload = Tensors((floats("x", bytes(views[0])),), lease)
    elif kind == "swapped":
        payload = Tensors((floats("a", views[1]), floats("b", views[0])), lease)
    else:
        payload = Tensors((floats("a", views[0][:1000]), floats("b", views[1])), lease)
    came, copies, size = run(arena, payload)
    assert said(came) == said(payload)
    assert list(copies) == [5]
    assert size < 500
    for held in (*copies.values(), lease):
        held.release()
    assert arena.lent == 0


def test_another_arenas_lease_is_no_place_of_this_one(arena):
    other = Arena("other", CAPACITY)
    lease, views = received(other, bytes(SMALLEST))
    payload = Tensors((floats("a", views[0]),), lease)
    came, copies, _ = run(arena, payload)
    assert said(came) == said(payload)
    copies[5].release()
    other.close()


def test_where_there_is_no_room_it_goes_inline(arena):
    whole_of_it = arena.lend(CAPACITY)
    payload = Raw((RawPart(bytes(range(256)) * 64),))
    came, copies, size = run(arena, payload)
    assert said(came) == said(payload)
    assert copies == {}
    assert size > 2**14
    whole_of_it.release()


@pytest.mark.parametrize("length", [0, 1, 70_000])
def test_a_request_may_be_called_anything(arena, length):
    writer = BatchWriter(arena)
    infer = Infer(model="m", payload=Tensors(()), id="é\ud800"[:length] * (length // 2 or 1))
    _, body = whole(writer.write(1, Batch([5], [infer], [1])))
    _, ((_, name, *_),) = read_run(body, arena)
    assert name == infer.id.replace("\ud800", "\\ud800")


def test_numbers_of_batches_do_not_run_out(arena):
    number = 2**40
    _, body = whole(BatchWriter(arena).write(number, Batch([5], [Infer(model="m", payload=Tensors(()))], [1])))
    assert read_run(body, arena)[0] == number


def test_many_small_items_are_one_batch(arena):
    count = 70_000
    infer = Infer(model="m", payload=Tensors(()))
    _, body = whole(BatchWriter(arena).write(1, Batch(list(range(count)), [infer] * count, [1] * count)))
    assert len(read_run(body, arena)[1]) == count


# -- hostile -----------------------------------------------------------------------------------------------


def answer(about, data=b"", item=1, what=frames.PAYLOAD):
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    return frames.ANSWER.pack(item, what, len(text), len(data)) + text + data


def read_all(body):
    """Whatever a worker sends is understood or Garbage, by each of the readers."""
    reader = AnswerReader()
    for read, data in ((reader.part, body), (reader.done, frames.DONE_HEAD.pack(1, 1, 0.0, 0.0) + body)):
        try:
            read(memoryview(data))
        except Garbage:
            continue


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_garbage(noise):
    read_all(noise)
    try:
        AnswerReader().done(memoryview(noise))
    except Garbage:
        pass


@settings(max_examples=300, deadline=None)
@given(st.one_of(payloads), st.data())
def test_what_was_cut_or_changed_is_garbage_or_understood(payload, data):
    body = bytearray(joined(AnswerTexts().write(1, as_child(payload))))
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
    st.tuples(trees, st.sampled_from(["FP32", "BYTES", "BOOL", "X"]) | trees, st.lists(trees, max_size=3), trees),
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


@settings(max_examples=1000, deadline=None)
@given(abouts, st.binary(max_size=16), st.integers(0, 7))
def test_whatever_an_answer_says_of_itself(about, data, what):
    body = answer(about, data, what=what)
    read_all(body)
    reader = AnswerReader()
    try:
        _, outcome, _, parameters = reader.part(memoryview(body))
    except Garbage:
        return
    assert all(isinstance(value, bool | int | float | str) for value in parameters.values())
    if isinstance(outcome, Raw):
        assert isinstance(outcome.status, int)
        assert all(isinstance(v, str) for v in (*outcome.properties.values(), *outcome.query.values()))


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
    with pytest.raises(Garbage):
        AnswerReader().part(memoryview(answer(HOSTILE[name], b"1234")))


def test_a_claim_of_length_costs_nothing():
    for text_size, size in ((2**32 - 1, 0), (0, 2**63), (2, 2**64 - 1)):
        with pytest.raises(Garbage):
            AnswerReader().part(memoryview(frames.ANSWER.pack(1, 0, text_size, size) + b"{}"))
    with pytest.raises(Garbage):
        AnswerReader().done(memoryview(frames.DONE_HEAD.pack(1, 2**16 - 1, 0.0, 0.0)))


def test_what_is_known_by_heart_is_still_measured():
    reader = AnswerReader()
    about = {"tensors": [["x", "FP32", [1], 4]]}
    for _ in range(2):
        (_, outcome, _, _) = reader.part(memoryview(answer(about, b"1234")))
        assert outcome.items[0].shape == (1,)
    for data in (b"", b"123", b"12345678"):
        with pytest.raises(Garbage):
            reader.part(memoryview(answer(about, data)))
