"""Batches into frames, frames into outcomes: the server's side of `trivium_worker.wire.frames`. Sans-IO.

Small data travels in the frame; from 8 KiB on it lies in the arena, where the front end has received it, or is
copied there if it came from elsewhere and there is room.
"""

from collections.abc import Mapping, Sequence
from struct import Struct
from struct import error as StructError

import msgspec

from trivium.codecs import binary
from trivium.core.workers.arena import SMALLEST, Arena, ArenaLease
from trivium.core.workers.generation_wire import read_parts, request_text
from trivium.types.buffers import Lease
from trivium.types.datatype import BY_NAME, DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, RunAgain, ServeError
from trivium.types.generation import Generate
from trivium.types.operations import PREDICT, Infer
from trivium.types.payload import (
    NOT_MADE,
    Listed,
    PackedTensor,
    Payload,
    Raw,
    RawPart,
    Scalar,
    Tensor,
    Tensors,
    Whole,
)
from trivium.types.running import Batch, Executed, ItemId, Outcome, Stepped
from trivium_worker.wire import frames, values

Piece = bytes | memoryview


def tensor_text(tensor: Tensor, size: int) -> list[object]:
    """A tensor of `size` bytes."""
    return [tensor.name, tensor.datatype.wire, list(tensor.shape), size]


def raw_text(raw: Raw) -> dict[str, object]:
    """A raw body."""
    return {
        "parts": [[part.name, part.content_type, part.filename, len(part.data)] for part in raw.parts],
        "properties": dict(raw.properties),
        "query": raw.query,
        "status": raw.status,
        "reason": raw.reason,
        "path": raw.path,
        "form": raw.form.value,
    }


def payload_text(payload: Payload) -> tuple[dict[str, object], list[Piece]]:
    """Return the description of a payload, and its data."""
    if isinstance(payload, Tensors):
        blobs: list[Piece] = [binary.encode(tensor) for tensor in payload.items]
        rows = zip(payload.items, blobs, strict=True)
        return {"tensors": [tensor_text(tensor, len(blob)) for tensor, blob in rows]}, blobs
    if isinstance(payload, Raw):
        return {"raw": raw_text(payload)}, [part.data for part in payload.parts]
    if isinstance(payload, Generate):
        return request_text(payload)
    assert isinstance(payload, Listed), "a worker takes no parts of answers"
    found = [payload_text(one) for one in payload.payloads]
    described = [[told, sum(map(len, data))] for told, data in found]
    return {"listed": described}, [blob for _, data in found for blob in data]


def wishes(operation: Infer) -> dict[str, object]:
    """Return what a request says apart from its payload; nothing where it says nothing."""
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
    if operation.method != PREDICT:
        told["method"] = operation.method
    if operation.context:
        told["context"] = operation.context
    return told


_CODES = {code.value: code for code in Code}
_BYTES = DataType.BYTES
_BOOL = DataType.BOOL
_RUN_FRAME = Struct(frames.HEAD.format + frames.RUN_HEAD.format[1:])
_ITEM, _ITEM_SIZE = frames.ITEM.pack, frames.ITEM.size
_RUN, _RUN_SIZE = _RUN_FRAME.pack, _RUN_FRAME.size
_DONE, _DONE_SIZE = frames.DONE_HEAD.unpack_from, frames.DONE_HEAD.size
_ANSWER, _ANSWER_SIZE = frames.ANSWER.unpack_from, frames.ANSWER.size

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, StructError)
"""What reading a frame raises that is none of ours."""


class ProtocolError(ValueError):
    """Raised where what came from a worker is no frame of ours."""


class BatchWriter:
    """Writes batches for one worker. Leases of copies in the arena are put into `copies`, by item."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._texts: dict[object, bytes] = {}
        self.copies: dict[ItemId, Lease] = {}

    def write(self, number: int, batch: Batch) -> list[Piece]:
        """The frame of a batch, in pieces. Most requests are one small tensor, and alike but for its numbers."""
        pieces: list[Piece] = [b""]
        size = _RUN_SIZE - 4
        texts = self._texts
        # Not strict: a keyword's argument takes a hundred lines of code that a lone request finds in no cache.
        for item, operation, rows in zip(batch.items, batch.operations, batch.rows):  # noqa: B905
            payload = operation.payload
            if (
                type(payload) is Tensors
                and len(payload.items) == 1
                and not (operation.id or operation.parameters or operation.priority or operation.sequence)
                and operation.deadline is None
                and not operation.context
            ):
                tensor = payload.items[0]
                much = tensor.size if type(tensor) is PackedTensor else tensor.array.nbytes
                about = texts.get((tensor.name, tensor.datatype.wire, tensor.shape, much, operation.outputs))
                if about is not None:
                    length = len(about)
                    if much < SMALLEST:
                        pieces += (_ITEM(item, rows, 0, length, 0, 0, much), about, binary.encode(tensor))
                        size += _ITEM_SIZE + length + much
                        continue
                    place = self._arena.place_of(payload)
                    if place is not None:
                        pieces.append(_ITEM(item, rows, 0, length, frames.ARENA, place, much))
                        pieces.append(about)
                        size += _ITEM_SIZE + length
                        continue
            size += self._put(pieces, item, operation, rows)
        if size > frames.MOST:
            raise ServeError(
                Code.TOO_LARGE,
                f"The requests of one batch come to {size} bytes; a worker process takes {frames.MOST} at most. Send "
                "less at once, or let the model put fewer requests together.",
            )
        pieces[0] = _RUN(size, frames.RUN, number, len(batch.items))
        return pieces

    def _put(self, pieces: list[Piece], item: ItemId, operation: Infer, rows: int) -> int:
        """Add a request of any kind; its bytes in the frame."""
        payload = operation.payload
        if isinstance(payload, Tensors):
            tensors = payload.items
            blobs = [binary.encode(tensor) for tensor in tensors]
            about = self._text(operation, tensors, blobs)
        elif isinstance(payload, Raw):
            blobs = [part.data for part in payload.parts]
            about = self._raw_text(operation, payload)
        else:
            told, blobs = payload_text(payload)
            about = frames.text({**told, **wishes(operation)})
        size = sum(map(len, blobs))
        name = operation.id.encode("utf-8", "backslashreplace") if operation.id else b""
        place, base = frames.INLINE, 0
        if size >= SMALLEST:
            offset = self._in_arena(item, payload.lease, blobs, size)
            if offset is not None:
                place, base, blobs = frames.ARENA, offset, []
        pieces.append(_ITEM(item, rows, len(name), len(about), place, base, size))
        if name:
            pieces.append(name)
        pieces.append(about)
        pieces += blobs
        return _ITEM_SIZE + len(name) + len(about) + (0 if place else size)

    def _text(self, operation: Infer, tensors: Sequence[Tensor], blobs: Sequence[Piece]) -> bytes:
        rows = [tensor_text(tensor, len(blob)) for tensor, blob in zip(tensors, blobs, strict=True)]
        asked = wishes(operation)
        about = frames.text({"tensors": rows, **asked})
        if len(tensors) == 1 and tensors[0].datatype is not _BYTES and asked.keys() <= {"outputs"}:
            if len(self._texts) >= frames.MOST_KNOWN:
                self._texts.clear()
            tensor = tensors[0]
            key = tensor.name, tensor.datatype.wire, tensor.shape, len(blobs[0]), operation.outputs
            self._texts[key] = about
        return about

    def _raw_text(self, operation: Infer, raw: Raw) -> bytes:
        """Return the description of a body, remembered for those that are alike: one part, and nothing asked for."""
        asked = wishes(operation)
        if len(raw.parts) != 1 or asked:
            return frames.text({"raw": raw_text(raw), **asked})
        (part,) = raw.parts
        told = tuple(raw.properties.items()), raw.query, raw.status, raw.reason, raw.path, raw.form
        key = part.name, part.content_type, part.filename, len(part.data), told
        about = self._texts.get(key)
        if about is None:
            about = frames.text({"raw": raw_text(raw)})
            if len(self._texts) >= frames.MOST_KNOWN:
                self._texts.clear()
            if len(about) <= frames.LONGEST_KNOWN:
                self._texts[key] = about
        return about

    def _in_arena(self, item: ItemId, lease: Lease | None, blobs: Sequence[Piece], size: int) -> int | None:
        """The offset of the blobs, one behind the other: where they are, or where they are copied to."""
        if isinstance(lease, ArenaLease) and lease.arena is self._arena:
            places = [(self._arena.offset_of(blob), len(blob)) for blob in blobs if len(blob)]
            begin = after = places[0][0]
            for at, length in places:
                if at != after:
                    break
                after += length
            else:  # what was decoded into memory of its own, such as BYTES and JSON, lies elsewhere
                if lease.offset <= begin and after <= lease.offset + len(lease.view):
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
    """Reads what answers of one worker say, once for all that are alike."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, DataType, tuple[int, ...], int]] = {}
        self._raws: dict[bytes, tuple[int, str, Raw]] = {}
        self._texts = frames.Texts()

    def done(
        self, came: bytes, at: int, end: int
    ) -> tuple[int, list[ItemId], list[Outcome], float, float, int]:
        """Read a frame's body in `came`: the batch, items that ended and their outcomes, when user code began and
        ended, and what it got in rows where not all of it ended. Raises ProtocolError.
        """
        try:
            number, count, began, ended, rows = _DONE(came, at)
            at += _DONE_SIZE
            items: list[ItemId] = []
            outcomes: list[Outcome] = []
            known = self._known
            while len(items) < count:
                item, _, text_size, size = _ANSWER(came, at)
                text = at + _ANSWER_SIZE
                begin = text + text_size
                after = begin + size
                one = known.get(came[text:begin])
                items.append(item)
                if one is not None and one[3] == size and after <= end:
                    name, datatype, shape, _ = one
                    tensor = PackedTensor(name, datatype, shape, NOT_MADE, came, begin, size)
                    outcomes.append(Tensors((tensor,)))
                    at = after
                else:
                    _, _, outcome, _, at = self._answer(came, at, end)
                    outcomes.append(outcome)
        except UNREADABLE as error:
            raise ProtocolError(f"an answer that cannot be read: {error!r}") from error
        return number, items, outcomes, began, ended, rows

    def credit(self, came: bytes, at: int, end: int, in_steps: bool) -> Executed:
        """Read that one of many items in work has ended, which its final part has said. Raises ProtocolError."""
        if end - at != frames.CREDIT_BODY.size:
            raise ProtocolError(f"a credit of {end - at} bytes")
        item, rows, began, ended = frames.CREDIT_BODY.unpack_from(came, at)
        return Executed([], [], began, began, ended, ended, rows, (item,), True, in_steps)

    def stepped(self, came: bytes, at: int, end: int) -> Stepped:
        """Read what one step counted. Raises ProtocolError."""
        if end - at != frames.STEP_BODY.size:
            raise ProtocolError(f"a step of {end - at} bytes")
        return Stepped(*frames.STEP_BODY.unpack_from(came, at))  # its fields are in this order

    def part(self, came: bytes, at: int, end: int) -> tuple[ItemId, Outcome, bool, Mapping[str, Scalar]]:
        """Item, what it says, whether it is final, its parameters. Raises ProtocolError."""
        try:
            item, what, outcome, parameters, _ = self._answer(came, at, end)
        except UNREADABLE as error:
            raise ProtocolError(f"a part that cannot be read: {error!r}") from error
        return item, outcome, bool(what & frames.FINAL), parameters

    def _answer(
        self, came: bytes, at: int, end: int
    ) -> tuple[ItemId, int, Outcome, Mapping[str, Scalar], int]:
        item, what, text_size, size = _ANSWER(came, at)
        at += _ANSWER_SIZE
        about = came[at : at + text_size]
        at += text_size
        after = at + size
        if after > end:
            raise ValueError("an answer is longer than its frame")
        alike = self._raws.get(about)
        if alike is not None and alike[0] == size and what & 3 == frames.PAYLOAD:
            _, content_type, raw = alike
            again = Raw((RawPart(came[at:after], content_type),), raw.properties, (), raw.status, raw.reason)
            return item, what, again, {}, after
        told = self._texts.read(about) if about else {}
        kind = what & 3
        if kind == frames.PAYLOAD:
            outcome: Outcome = self._payload(about, told, memoryview(came)[at:after])
        elif kind == frames.FAILURE:
            outcome = failure(told)
        else:
            outcome = None
        return item, what, outcome, _parameters(told) if "parameters" in told else {}, after

    def _payload(self, about: bytes, told: Mapping[str, object], data: memoryview) -> Payload:
        payload = read_payload(told, data)
        if isinstance(payload, Raw) and "parameters" not in told and len(about) <= frames.LONGEST_KNOWN:
            self._keep_raw(about, payload)
        if isinstance(payload, Tensors) and len(payload.items) == 1 and "parameters" not in told:
            tensor = payload.items[0]
            if tensor.datatype not in (_BYTES, _BOOL) and len(about) <= frames.LONGEST_KNOWN:
                if len(self._known) >= frames.MOST_KNOWN:
                    self._known.clear()
                self._known[about] = tensor.name, tensor.datatype, tensor.shape, len(data)
        return payload

    def _keep_raw(self, about: bytes, raw: Raw) -> None:
        """Remember what a text says of a body of one part without a name, but for its bytes."""
        if len(raw.parts) != 1 or raw.query or raw.path or raw.parts[0].name or raw.parts[0].filename:
            return
        if len(self._raws) >= frames.MOST_KNOWN:
            self._raws.clear()
        (part,) = raw.parts
        self._raws[about] = len(part.data), part.content_type, msgspec.structs.replace(raw, parts=())


def read_payload(told: Mapping[str, object], data: memoryview) -> Payload:
    """The payload that a text describes, viewing `data`. Raises one of UNREADABLE where it does not."""
    payload = frames.read_payload(dict(told), data)
    if isinstance(payload, values.Generated):
        return read_parts(payload)
    if isinstance(payload, values.Generate):
        raise ProtocolError("a request to generate, which no worker makes")
    return _taken(payload)


def _taken(payload: values.Whole) -> Whole:
    if isinstance(payload, values.Listed):
        return Listed(tuple(map(_taken, payload.payloads)))
    if isinstance(payload, list):
        try:
            return Tensors(
                tuple(
                    binary.decode_trusted(str(t.name), BY_NAME[t.datatype], t.shape, memoryview(t.data))
                    for t in payload
                )
            )
        except ServeError as error:
            raise ValueError(error.message) from error
    parts = tuple(
        RawPart(bytes(p.data), str(p.content_type), str(p.name), str(p.filename)) for p in payload.parts
    )
    properties = {key: str(value) for key, value in payload.properties.items()}
    query = tuple((str(key), str(value)) for key, value in payload.query)
    return Raw(parts, properties, query, int(payload.status), str(payload.reason))


def _parameters(told: Mapping[str, object]) -> Mapping[str, Scalar]:
    parameters = told["parameters"]
    if not isinstance(parameters, dict) or not all(
        isinstance(v, bool | int | float | str) for v in parameters.values()
    ):
        raise ValueError("parameters are no mapping of names to numbers, texts and truth values")
    return parameters


def failure(told: Mapping[str, object]) -> ServeError:
    """The error that a worker tells of."""
    status = told.get("status")
    if told["code"] == frames.AGAIN:
        return RunAgain(Code.MODEL_FAILED, str(told["message"]))
    return ServeError(
        _CODES.get(str(told["code"]), Code.MODEL_FAILED),
        str(told["message"]),
        status=status if isinstance(status, int) and 400 <= status <= 599 else None,
        info=_info(told),
    )


def _info(told: Mapping[str, object]) -> ErrorInfo | None:
    """Return the reason that a worker states, with its metadata as texts."""
    if not told.get("reason"):
        return None
    metadata = told.get("metadata")
    pairs = metadata.items() if isinstance(metadata, dict) else ()
    return ErrorInfo(str(told["reason"]), {str(key): str(value) for key, value in pairs})


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
        described, blobs = payload_text(payload)
        told.update(described)
    about = frames.text(told)
    size = sum(map(len, blobs))
    fixed = frames.ANSWER.pack(number, what | flags, len(about), size)
    return [frames.HEAD.pack(1 + len(fixed) + len(about) + size, frames.REPLY), fixed, about, *blobs]
