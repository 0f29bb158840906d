"""Payloads of every kind, as hypothesis draws them, and both sides of the wire by hand."""

import msgspec
import numpy as np
from hypothesis import strategies as st

from trivium.core.workers.wire import AnswerReader
from trivium.types.datatype import DataType
from trivium.types.operations import Infer, SequenceRef, WantedOutput
from trivium.types.payload import Listed, Raw, RawForm, RawPart, Tensor, Tensors
from trivium_worker.wire import frames, values
from trivium_worker.wire.frames import AnswerTexts

CAPACITY = 2**20
names = st.text(max_size=8)
texts = st.dictionaries(names, names, max_size=3)
scalars = st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | names
shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


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
arguments = st.lists(st.tuples(names, names), max_size=3).map(tuple)
raws = st.builds(Raw, st.lists(parts, max_size=3).map(tuple), texts, arguments, st.integers(0, 599), names)
singles = st.lists(tensors(), max_size=3).map(lambda items: Tensors(tuple(items))) | raws
payloads = st.recursive(
    singles, lambda inner: st.lists(inner, max_size=3).map(lambda all_: Listed(tuple(all_))), max_leaves=4
)
formed = st.builds(msgspec.structs.replace, raws, form=st.sampled_from(RawForm))
infers = st.builds(
    Infer,
    st.just("m"),
    payloads | formed,
    id=names,
    outputs=st.lists(st.builds(WantedOutput, names), max_size=2).map(tuple),
    parameters=st.dictionaries(names, scalars, max_size=2),
    priority=st.integers(0, 9),
    deadline=st.none() | st.floats(0.1, 9),
    sequence=st.none() | st.builds(SequenceRef, st.integers(0, 9) | names, st.booleans(), st.booleans()),
)


def said(payload):
    """A payload's contents, to compare; on either side of the wire."""
    if isinstance(payload, Listed | values.Listed):
        return ["listed", *map(said, payload.payloads)]
    if isinstance(payload, Tensors):
        return [(t.name, t.datatype.wire, t.shape, _contents(t.array)) for t in payload.items]
    if isinstance(payload, list):
        return [(t.name, t.datatype, t.shape, _contents(t.array())) for t in payload]
    parts = [(bytes(p.data), p.content_type, p.name, p.filename) for p in payload.parts]
    form = payload.form.value if isinstance(payload, Raw) else payload.form or RawForm.BODY.value
    return parts, dict(payload.properties), tuple(payload.query), payload.status, payload.reason, form


def _contents(array):
    return array.tolist() if array.dtype == object else array.tobytes()


def as_child(payload):
    """The payload as an adapter would return it."""
    if isinstance(payload, Tensors):
        return [values.Tensor(*row) for row in (_row(t) for t in payload.items)]
    if isinstance(payload, Listed):
        return values.Listed(list(map(as_child, payload.payloads)))
    parts = [values.Part(p.data, p.content_type, p.name, p.filename) for p in payload.parts]
    return values.Raw(parts, dict(payload.properties), tuple(payload.query), payload.status, payload.reason)


def _row(tensor):
    made = values.Tensor.of_array(tensor.name, tensor.array)
    return tensor.name, tensor.datatype.wire, tensor.shape, made.data


def joined(pieces):
    return b"".join(map(bytes, pieces))


def written(outcome, item=1, flags=0, parameters=None, texts=None):
    """An answer as the child writes it."""
    pieces = []
    size = (texts or AnswerTexts()).write(pieces, item, outcome, flags, parameters)
    data = joined(pieces)
    assert size == len(data)
    return data


def done(body, reader=None):
    """What the server makes of the end of a batch; its frame does not come alone."""
    return (reader or AnswerReader()).done(b"head" + body + b"next", 4, 4 + len(body))


def part(body, reader=None):
    return (reader or AnswerReader()).part(b"head" + body + b"next", 4, 4 + len(body))


def whole(pieces):
    """The one frame in these pieces."""
    data = joined(pieces)
    ((kind, at, end),), used = frames.frames(data)
    assert used == end == len(data)
    return kind, data[at:]


def read_run(body, arena):
    """What the child makes of a batch: (number, [(item, id, rows, payload, about)])."""
    number, count = frames.RUN_HEAD.unpack_from(body, 0)
    at, items = frames.RUN_HEAD.size, []
    for _ in range(count):
        item, rows, id_size, text_size, place, base, size = frames.ITEM.unpack_from(body, at)
        at += frames.ITEM.size
        name, text = bytes(body[at : at + id_size]), bytes(body[at + id_size : at + id_size + text_size])
        at += id_size + text_size
        data = arena.memory[base : base + size] if place == frames.ARENA else b""
        if place == frames.INLINE:
            data = body[at : at + size]
            at += size
        about = frames.read(text)
        items.append((item, name.decode(), rows, frames.read_payload(about, memoryview(data)), about))
    assert at == len(body)
    return number, items
