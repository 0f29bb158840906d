"""Parts of an answer as the bytes of a file, and back. Sans-IO; the files are the server's own."""

from collections.abc import Sequence
from struct import Struct

import msgspec

from trivium.core.workers.wire import payload_text, read_payload
from trivium.types.generation import Generated
from trivium.types.payload import Payload
from trivium.types.running import ItemId, Part
from trivium_worker.wire import frames

_LENGTH = Struct("<Q")
_write_generated = msgspec.json.Encoder().encode
_read_generated = msgspec.json.Decoder(Generated).decode


def write_parts(parts: Sequence[Part]) -> list[bytes | memoryview]:
    """Return the pieces of a file that holds these parts of one item. None of them may hold an error."""
    rows: list[list[object]] = []
    blobs: list[bytes | memoryview] = []
    for part in parts:
        assert part.error is None, "an error stays in memory"
        told, pieces = _described(part.payload)
        rows.append([told, sum(map(len, pieces)), part.final, dict(part.parameters)])
        blobs += pieces
    head = frames.text({"parts": rows})
    return [_LENGTH.pack(len(head)), head, *blobs]


def _described(payload: Payload | None) -> tuple[dict[str, object], list[bytes | memoryview]]:
    if payload is None:
        return {}, []
    if isinstance(payload, Generated):
        return {"generated": True}, [_write_generated(payload)]
    return payload_text(payload)


def read_parts(data: bytes, item: ItemId) -> list[Part]:
    """Return the parts that `write_parts` wrote, which view `data`. Raises ValueError for a file that is not whole."""
    if len(data) < _LENGTH.size:
        raise ValueError("a file of kept parts is cut short")
    (size,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + size
    rows = frames.read(data[_LENGTH.size : at])["parts"]
    view = memoryview(data)
    parts = []
    for told, length, is_final, parameters in rows:
        blob = view[at : at + length]
        if len(blob) != length:
            raise ValueError("a file of kept parts is cut short")
        at += length
        parts.append(Part(item, _payload(told, blob), None, is_final, parameters))
    return parts


def _payload(told: dict[str, object], blob: memoryview) -> Payload | None:
    if not told:
        return None
    return _read_generated(blob) if "generated" in told else read_payload(told, blob)
