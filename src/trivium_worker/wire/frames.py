"""The wire between the server and a worker: one definition, used by both sides. Standard library only.

A frame is its size (of what follows, in 4 bytes), its kind (one byte) and a body; all numbers little-endian.
A request or an answer inside a body is fixed fields, a JSON text that says what it is (alike for alike
requests, so that both sides know most of them by heart), and data: behind it, or in the shared arena.
"""

import json
import struct
from collections.abc import Iterable
from typing import Any, cast

from trivium_worker.wire.values import (
    END,
    Buffer,
    Failure,
    Generate,
    Generated,
    Listed,
    Part,
    Raw,
    Tensor,
    Whole,
)

SIZE = struct.Struct("<I")
HEAD = struct.Struct("<IB")
_unpack_head = HEAD.unpack_from
MOST = 2**31
"""Bytes of a frame; what claims more is no frame."""

# From the server:
SETUP, RUN, CANCEL, PING, REPLY, STOP, TAKEN, CHECK = range(1, 9)
# From the worker:
(
    READY,
    REFUSED,
    DONE,
    PART,
    PONG,
    CALL,
    ASK,
    LOG,
    MEASURE,
    HANG_UP,
    HEARD,
    KEPT,
    FREED,
    CHECKED,
    CREDIT,
    STEP,
) = range(16, 32)

RUN_HEAD = struct.Struct("<QI")
"""Number of the batch, of its items."""
ITEM = struct.Struct("<QIIIBQQ")
"""Number, rows, bytes of the id, bytes of the text; where its data is, from where on, and bytes of it."""
DONE_HEAD = struct.Struct("<QIddI")
"""Number of the batch, of the answers that follow; when user code got it and gave it back (monotonic seconds); the rows
that it got, where some of them are answered otherwise (else 0).
"""
ANSWER = struct.Struct("<QBIQ")
"""Number, what it is, bytes of the text, bytes of the data behind it."""
NUMBER = struct.Struct("<Q")
TAKEN_BODY = struct.Struct("<QI")
"""Number of an item (TAKEN) or a call (HEARD), parts of it that have been passed on."""
KEPT_BODY = struct.Struct("<QQ")
"""Number of an item whose block of the arena outlives its answer, and the worker's own number for that block, of which
FREED lists those that it does not need any more.
"""

CREDIT_BODY = struct.Struct("<QIdd")
"""Number of an item that was one of many in work and has ended, its rows; when user code got it, and gave it back.
"""

STEP_BODY = struct.Struct("<IIIIdddQII")
"""Of a step: rows that got a token, tokens of prompts, tokens that came, tokens that nobody gets; the share of the room
that is taken; when it began and ended; the bytes of that room; tokens of prompts that were looked for among what is
kept, and that were there.
"""

WINDOW = 16
"""Parts of one answer that may be on their way; a further one waits until its receiver has taken one."""

AGAIN = "again"
"""In place of a failure's code: the item has not failed, and shall be run again."""

INLINE, ARENA = 0, 1
PAYLOAD, FAILURE, NOTHING = 0, 1, 2  # what an answer is
FINAL = 4  # added to it in a frame of one part

LONGEST_KNOWN = 2048
MOST_KNOWN = 512

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Texts:
    """JSON texts that come again and again, decoded once. What they decode to is shared: nobody changes it."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, Any]] = {}
        self.known = self._known.get
        """The object of a text that was read before, or None."""

    def read(self, text: bytes) -> dict[str, Any]:
        """The object of a text. ValueError if it is none."""
        told = self._known.get(text)
        if told is None:
            told = read(text)
            for row in told.get("tensors", ()):
                row[2] = tuple(row[2])  # a shape, for all the requests that are alike
            if len(text) <= LONGEST_KNOWN:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[text] = told
        return told


def text(told: dict[str, Any]) -> bytes:
    """The JSON text of an object."""
    return _encode(told).encode("utf-8", "backslashreplace")


def read(body: Buffer) -> dict[str, Any]:
    """The object of a frame that is nothing but text. ValueError if it is none."""
    try:
        told = json.loads(bytes(body))
    except RecursionError as error:
        raise ValueError("a frame's text is nested too deeply") from error
    if not isinstance(told, dict):
        raise ValueError("a frame's text is no JSON object")
    return told


def frame(kind: int, body: Buffer = b"") -> bytes:
    """A whole frame."""
    return HEAD.pack(len(body) + 1, kind) + body


def frames(buffer: bytes) -> tuple[list[tuple[int, int, int]], int]:
    """The whole frames in a buffer, each as its kind and where its body begins and ends; and where the first one
    begins that is not whole. ValueError for what is no frame.
    """
    found, at, end = [], 0, len(buffer)
    while end - at >= 5:
        size, kind = _unpack_head(buffer, at)
        if not 0 < size <= MOST:
            raise ValueError(f"a frame claims {size} bytes")
        after = at + 4 + size
        if after > end:
            break
        found.append((kind, at + 5, after))
        at = after
    return found, at


def wanted(buffer: Buffer, at: int) -> int:
    """Bytes of the frame that begins there, as far as its first bytes tell; 0 if they do not, or tell of no frame."""
    size: int = SIZE.unpack_from(buffer, at)[0] if len(buffer) - at >= 4 else 0
    return size + 4 if 0 < size <= MOST else 0


def tensors_text(tensors: Iterable[Tensor]) -> tuple[list[list[Any]], list[Buffer]]:
    """Return the description of tensors, and their data in that order."""
    rows, blobs = [], []
    for tensor in tensors:
        rows.append([tensor.name, tensor.datatype, list(tensor.shape), len(tensor.data)])
        blobs.append(tensor.data)
    return rows, blobs


def raw_text(raw: Raw) -> tuple[dict[str, Any], list[Buffer]]:
    """Return the description of a raw body, and the data of its parts."""
    told = {
        "parts": [[part.name, part.content_type, part.filename, len(part.data)] for part in raw.parts],
        "properties": raw.properties,
        "query": raw.query,
        "status": raw.status,
        "reason": raw.reason,
    }
    return told, [part.data for part in raw.parts]


def payload_text(payload: Whole | Generated) -> tuple[dict[str, Any], list[Buffer]]:
    """Return the description of a payload, and its data."""
    if isinstance(payload, list):
        rows, blobs = tensors_text(payload)
        return {"tensors": rows}, blobs
    if isinstance(payload, Raw):
        told, blobs = raw_text(payload)
        return {"raw": told}, blobs
    if isinstance(payload, Generated):
        return {"generated": 1}, [b"[", b",".join(payload.pieces), b"]"]
    described, blobs = [], []
    for one in payload.payloads:
        text_of_one, blobs_of_one = payload_text(one)
        described.append([text_of_one, sum(map(len, blobs_of_one))])
        blobs += blobs_of_one
    return {"listed": described}, blobs


def read_payload(told: dict[str, Any], data: memoryview) -> Whole | Generate | Generated:
    """The payload that a text describes; it views `data`. ValueError where that is too short."""
    listed = told.get("listed")
    if listed is not None:
        pieces = _cut([(None, None, None, size) for _, size in listed], data)
        return Listed(
            [cast(Whole, read_payload(one, piece)) for (one, _), piece in zip(listed, pieces, strict=False)]
        )
    rows = told.get("tensors")
    if rows is not None:
        if len(rows) == 1:
            name, datatype, shape, size = rows[0]
            if size != len(data):
                raise ValueError(f"a tensor of {size} bytes came with {len(data)} bytes of data")
            return [Tensor(name, datatype, shape, data)]
        return [
            Tensor(row[0], row[1], row[2], blob) for row, blob in zip(rows, _cut(rows, data), strict=False)
        ]
    if "generated" in told:
        return Generated([data])
    request = told.get("generate")
    if request is not None:
        size = request[0]
        return Generate(data[:size], data[size:], (request[1], request[2]) if len(request) > 1 else None)
    raw = told["raw"]
    parts = [
        Part(blob, content_type, name, filename)
        for (name, content_type, filename, _), blob in zip(
            raw["parts"], _cut(raw["parts"], data), strict=False
        )
    ]
    body = Raw(
        parts,
        dict(raw["properties"]),
        [(name, value) for name, value in raw["query"]],
        raw["status"],
        raw["reason"],
        raw.get("path", ""),
    )
    body.form = raw.get("form", "")
    return body


def _cut(rows: list[Any], data: memoryview) -> list[memoryview]:
    pieces, at = [], 0
    for row in rows:
        size = row[3]
        pieces.append(data[at : at + size])
        at += size
    if at != len(data):
        raise ValueError(f"a frame's text describes {at} bytes of data, and there are {len(data)}")
    return pieces


class AnswerTexts:
    """Texts of answers that are alike, written once. Used by one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[Any, bytes] = {}

    def write(
        self,
        pieces: list[Any],
        number: int,
        outcome: Any,
        flags: int = 0,
        parameters: dict[str, Any] | None = None,
    ) -> int:
        """Add the pieces of an answer: fixed fields, text and data; their bytes. `flags` is FINAL or 0."""
        if isinstance(outcome, list) and len(outcome) == 1 and not parameters:
            tensor = outcome[0]
            data = tensor.data
            size = len(data)
            key = (tensor.name, tensor.datatype, tensor.shape, size)
            about = self._known.get(key)
            if about is None:
                about = self._learn(key, text({"tensors": [[*key[:2], list(key[2]), size]]}))
            pieces.append(ANSWER.pack(number, flags, len(about), size))
            pieces.append(about)
            pieces.append(data)
            return ANSWER.size + len(about) + size
        if isinstance(outcome, Raw) and len(outcome.parts) == 1 and not (parameters or outcome.query):
            return self._write_body(pieces, number, outcome, flags)
        return self._write_any(pieces, number, outcome, flags, parameters)

    def _write_body(self, pieces: list[Any], number: int, raw: Raw, flags: int) -> int:
        part = raw.parts[0]
        data = part.data
        size = len(data)
        told = tuple(raw.properties.items()), raw.status, raw.reason
        key = (part.name, part.content_type, part.filename, size, told)
        try:
            about = self._known.get(key)
        except TypeError:  # a property is something that is no key, such as a list
            return self._write_any(pieces, number, raw, flags, None)
        if about is None:
            about = text({"raw": raw_text(raw)[0]})
            if len(about) <= LONGEST_KNOWN:
                self._learn(key, about)
        pieces.append(ANSWER.pack(number, PAYLOAD | flags, len(about), size))
        pieces.append(about)
        pieces.append(data)
        return ANSWER.size + len(about) + size

    def _write_any(
        self, pieces: list[Any], number: int, outcome: Any, flags: int, parameters: dict[str, Any] | None
    ) -> int:
        told: dict[str, Any] = {}
        blobs: list[Buffer] = []
        what = PAYLOAD
        if isinstance(outcome, (list, Raw, Listed, Generated)):
            told, blobs = payload_text(outcome)
        elif isinstance(outcome, Failure):
            what = FAILURE
            told = {"code": outcome.code, "message": outcome.message, "status": outcome.status}
            if outcome.reason:
                told["reason"], told["metadata"] = outcome.reason, outcome.metadata
        else:
            assert outcome is END, f"an adapter made something of an item that is no outcome: {outcome!r}"
            what = NOTHING
        if parameters and what != FAILURE:
            told["parameters"] = parameters
        about = text(told) if told else b""
        size = sum(map(len, blobs))
        pieces.append(ANSWER.pack(number, what | flags, len(about), size))
        pieces.append(about)
        pieces += blobs
        return ANSWER.size + len(about) + size

    def _learn(self, key: Any, about: bytes) -> bytes:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[key] = about
        return about
