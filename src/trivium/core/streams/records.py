"""Parts of an answer as the bytes of a file, and back. Sans-IO; the files are the server's own.

Disks fail, and others may write to a folder for scratch: a file says by a sum over its name and all its bytes that it
is what was written under that name.
"""

from collections.abc import Sequence
from functools import reduce
from struct import Struct
from zlib import crc32

import msgspec

from trivium.core.workers.wire import UNREADABLE, payload_text, read_payload
from trivium.types.errors import named
from trivium.types.generation import Generated
from trivium.types.payload import Payload
from trivium.types.running import ItemId, Part
from trivium_worker.wire import frames

_HEAD = Struct("<LQ")
"""The sum, and the bytes of the text behind it."""

_MOST_TOLD = 200
_write_generated = msgspec.json.Encoder().encode
_read_generated = msgspec.json.Decoder(Generated).decode


def write_parts(parts: Sequence[Part], name: str) -> list[bytes | memoryview]:
    """Return the pieces of a file of this name that holds these parts of one item. None of them may hold an error."""
    rows: list[list[object]] = []
    blobs: list[bytes | memoryview] = []
    for part in parts:
        assert part.error is None, "an error stays in memory"
        told, pieces = _described(part.payload)
        rows.append([told, sum(map(len, pieces)), part.final, dict(part.parameters)])
        blobs += pieces
    text = frames.text({"parts": rows})
    return [_HEAD.pack(_sum([text, *blobs], len(text), name), len(text)), text, *blobs]


def _sum(pieces: Sequence[bytes | memoryview], size: int, name: str) -> int:
    return reduce(lambda so_far, piece: crc32(piece, so_far), pieces, crc32(f"{size} {name}".encode()))


def _described(payload: Payload | None) -> tuple[dict[str, object], list[bytes | memoryview]]:
    if payload is None:
        return {}, []
    if isinstance(payload, Generated):
        return {"generated": True}, [_write_generated(payload)]
    return payload_text(payload)


def read_parts(data: bytes, name: str, item: ItemId) -> list[Part]:
    """Return the parts that `write_parts` wrote under this name, which view `data`. Raises ValueError for any other."""
    if len(data) < _HEAD.size:
        raise ValueError("a file of kept parts is cut short")
    told, size = _HEAD.unpack_from(data)
    view = memoryview(data)
    if told != _sum([view[_HEAD.size :]], size, name):
        raise ValueError("a file of kept parts is not what was written")
    try:
        return _parts(view, _HEAD.size + size, item)
    except (*UNREADABLE, msgspec.MsgspecError) as error:
        raise ValueError(f"a file of kept parts cannot be read: {named(error)[:_MOST_TOLD]}") from error


def _parts(view: memoryview, at: int, item: ItemId) -> list[Part]:
    parts = []
    for told, length, is_final, parameters in frames.read(view[_HEAD.size : at])["parts"]:
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
