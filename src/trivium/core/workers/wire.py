"""Batches into frames, frames into outcomes: the server's side of `trivium_child.frames`. Sans-IO.

Small data travels in the frame; from 8 KiB on it lies in the arena, where the front end has received it, or is
copied there if it came from elsewhere and there is room.
"""

from collections.abc import Mapping, Sequence
from struct import error as StructError

from trivium.codecs import binary
from trivium.core.workers.arena import SMALLEST, Arena, ArenaLease
from trivium.types.buffers import Lease
from trivium.types.datatype import BY_NAME, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Payload, PayloadKind, Raw, RawPart, Scalar, Tensor, Tensors
from trivium.types.running import Batch, ItemId, Outcome
from trivium_child import frames

Piece = bytes | memoryview
_CODES = {code.value: code for code in Code}
_BYTES = DataType.BYTES
_BOOL = DataType.BOOL
_WANTED = PayloadKind.TENSORS


class Garbage(ValueError):
    """What came from a worker is no frame of ours."""


class BatchWriter:
    """For one worker. Leases of copies in the arena are put into `copies`, by item."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._texts: dict[object, bytes] = {}
        self.copies: dict[ItemId, Lease] = {}

    def write(self, number: int, batch: Batch) -> list[Piece]:
        """The frame of a batch, in pieces."""
        pieces: list[Piece] = [b"", frames.RUN_HEAD.pack(number, len(batch.items))]
        for item, operation, rows in zip(batch.items, batch.operations, batch.rows, strict=True):
            self._put(pieces, item, operation, rows)
        pieces[0] = frames.HEAD.pack(sum(map(len, pieces)) + 1, frames.RUN)
        return pieces

    def _put(self, pieces: list[Piece], item: ItemId, operation: Infer, rows: int) -> None:
        payload = operation.payload
        if isinstance(payload, Tensors):
            tensors = payload.items
            blobs = [binary.encode(tensor) for tensor in tensors]
            about = self._text(operation, tensors, blobs)
        else:
            assert isinstance(payload, Raw)
            blobs = [part.data for part in payload.parts]
            about = frames.text({"raw": _raw_text(payload), **_wishes(operation)})
        size = sum(map(len, blobs))
        name = operation.id.encode() if operation.id else b""
        place, base = frames.INLINE, 0
        if size >= SMALLEST:
            offset = self._in_arena(item, payload.lease, blobs, size)
            if offset is not None:
                place, base, blobs = frames.ARENA, offset, []
        pieces.append(frames.ITEM.pack(item, rows, len(name), len(about), place, base, size))
        if name:
            pieces.append(name)
        pieces.append(about)
        pieces += blobs

    def _text(self, operation: Infer, tensors: Sequence[Tensor], blobs: Sequence[Piece]) -> bytes:
        is_plain = not operation.parameters and operation.sequence is None and operation.deadline is None
        if not (is_plain and len(tensors) == 1):
            rows = [_tensor_text(tensor, len(blob)) for tensor, blob in zip(tensors, blobs, strict=True)]
            return frames.text({"tensors": rows, **_wishes(operation)})
        tensor, size = tensors[0], len(blobs[0])
        key = tensor.name, tensor.datatype, tensor.shape, size, operation.outputs, operation.priority
        about = self._texts.get(key)
        if about is None:
            about = frames.text({"tensors": [_tensor_text(tensor, size)], **_wishes(operation)})
            if len(self._texts) >= frames.MOST_KNOWN:
                self._texts.clear()
            self._texts[key] = about
        return about

    def _in_arena(self, item: ItemId, lease: Lease | None, blobs: Sequence[Piece], size: int) -> int | None:
        """The offset of the blobs, one behind the other: where they are, or where they are copied to."""
        if isinstance(lease, ArenaLease) and lease.arena is self._arena:
            begin = after = self._arena.offset_of(blobs[0])
            for blob in blobs:
                if len(blob) and self._arena.offset_of(blob) != after:
                    break
                after += len(blob)
            else:
                return begin
        copy = self._arena.lend(size)
        if copy is None:
            return None
        at = 0
        for blob in blobs:
            copy.view[at : at + len(blob)] = blob
            at += len(blob)
        self.copies[item] = copy
        return copy.offset


class AnswerReader:
    """For one worker: what answers say, read once for all that are alike."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, DataType, tuple[int, ...], int]] = {}
        self._texts = frames.Texts()

    def done(self, body: memoryview) -> tuple[int, list[ItemId], list[Outcome], float, float]:
        """Batch, items that ended and their outcomes, when user code began and ended. Raises Garbage."""
        try:
            number, count, began, ended = frames.DONE_HEAD.unpack_from(body, 0)
            at = frames.DONE_HEAD.size
            items: list[ItemId] = []
            outcomes: list[Outcome] = []
            for _ in range(count):
                item, _, outcome, _, at = self._answer(body, at)
                items.append(item)
                outcomes.append(outcome)
        except (ValueError, KeyError, TypeError, StructError) as error:
            raise Garbage(f"an answer that cannot be read: {error!r}") from error
        return number, items, outcomes, began, ended

    def part(self, body: memoryview) -> tuple[ItemId, Outcome, bool, Mapping[str, Scalar]]:
        """Item, what it says, whether it is final, its parameters. Raises Garbage."""
        try:
            item, what, outcome, parameters, _ = self._answer(body, 0)
        except (ValueError, KeyError, TypeError, StructError) as error:
            raise Garbage(f"a part that cannot be read: {error!r}") from error
        return item, outcome, bool(what & frames.FINAL), parameters

    def _answer(self, body: memoryview, at: int) -> tuple[ItemId, int, Outcome, Mapping[str, Scalar], int]:
        item, what, text_size, size = frames.ANSWER.unpack_from(body, at)
        at += frames.ANSWER.size
        about = bytes(body[at : at + text_size])
        at += text_size
        after = at + size
        if after > len(body):
            raise ValueError("an answer is longer than its frame")
        known = self._known.get(about)
        if known is not None and known[3] == size:
            name, datatype, shape, _ = known
            return item, what, Tensors((binary.view(name, datatype, shape, body, at),)), {}, after
        told = self._texts.read(about) if about else {}
        kind = what & 3
        if kind == frames.PAYLOAD:
            outcome: Outcome = self._payload(about, told, body[at:after])
        elif kind == frames.FAILURE:
            outcome = failure(told)
        else:
            outcome = None
        return item, what, outcome, told.get("parameters", {}), after

    def _payload(self, about: bytes, told: Mapping[str, object], data: memoryview) -> Payload:
        payload = read_payload(told, data)
        if isinstance(payload, Tensors) and len(payload.items) == 1 and "parameters" not in told:
            tensor = payload.items[0]
            if tensor.datatype not in (_BYTES, _BOOL) and len(about) <= frames.LONGEST_KNOWN:
                if len(self._known) >= frames.MOST_KNOWN:
                    self._known.clear()
                self._known[about] = tensor.name, tensor.datatype, tensor.shape, len(data)
        return payload


def read_payload(told: Mapping[str, object], data: memoryview) -> Payload:
    """The payload that a text describes, viewing `data`. ValueError, KeyError or TypeError where it does not."""
    payload = frames.read_payload(dict(told), data)
    if isinstance(payload, list):
        try:
            return Tensors(
                tuple(
                    binary.decode(t.name, BY_NAME[t.datatype], t.shape, memoryview(t.data)) for t in payload
                )
            )
        except ServeError as error:
            raise ValueError(error.message) from error
    parts = tuple(RawPart(bytes(p.data), p.content_type, p.name, p.filename) for p in payload.parts)
    return Raw(parts, payload.properties, payload.query, payload.status, payload.reason)


def failure(told: Mapping[str, object]) -> ServeError:
    """The error that a worker tells of."""
    status = told.get("status")
    return ServeError(
        _CODES.get(str(told["code"]), Code.MODEL_FAILED),
        str(told["message"]),
        status=status if isinstance(status, int) and 100 <= status <= 599 else None,
    )


def write_reply(
    number: int,
    payload: Payload | None,
    error: ServeError | None,
    final: bool,
    parameters: Mapping[str, object],
) -> list[Piece]:
    """The frame of one part of the answer to an upward call."""
    flags = frames.FINAL if final else 0
    blobs: list[Piece] = []
    told: dict[str, object]
    if error is not None:
        what, told = (
            frames.FAILURE,
            {"code": error.code.value, "message": error.message, "status": error.status},
        )
    elif payload is None:
        what, told = frames.NOTHING, {"parameters": dict(parameters)}
    else:
        what, told = frames.PAYLOAD, {"parameters": dict(parameters)} if parameters else {}
        if isinstance(payload, Tensors):
            blobs = [binary.encode(tensor) for tensor in payload.items]
            rows = zip(payload.items, blobs, strict=True)
            told["tensors"] = [_tensor_text(tensor, len(blob)) for tensor, blob in rows]
        else:
            assert isinstance(payload, Raw)
            blobs = [part.data for part in payload.parts]
            told["raw"] = _raw_text(payload)
    about = frames.text(told)
    size = sum(map(len, blobs))
    fixed = frames.ANSWER.pack(number, what | flags, len(about), size)
    return [frames.HEAD.pack(1 + len(fixed) + len(about) + size, frames.REPLY), fixed, about, *blobs]


def _tensor_text(tensor: Tensor, size: int) -> list[object]:
    return [tensor.name, tensor.datatype.wire, list(tensor.shape), size]


def _raw_text(raw: Raw) -> dict[str, object]:
    return {
        "parts": [[part.name, part.content_type, part.filename, len(part.data)] for part in raw.parts],
        "properties": dict(raw.properties),
        "query": dict(raw.query),
        "status": raw.status,
        "reason": raw.reason,
    }


def _wishes(operation: Infer) -> dict[str, object]:
    told: dict[str, object] = {}
    if operation.outputs:
        told["outputs"] = [output.name for output in operation.outputs]
    if operation.parameters:
        told["parameters"] = dict(operation.parameters)
    if operation.priority:
        told["priority"] = operation.priority
    if operation.deadline is not None:
        told["timeout"] = operation.deadline
    sequence = operation.sequence
    if sequence is not None:
        told["sequence"] = [sequence.id, sequence.starts, sequence.ends]
    return told
