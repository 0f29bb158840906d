"""Files of parts that wait for their receivers: whatever became of one on the disk,
it is read or is one kind of error."""

import random
import struct
import zlib

import numpy as np
from tests.fuzz import mutations
from tests.fuzz.target import Change, Target

from trivium.core.streams.records import read_parts, write_parts
from trivium.types.generation import Finish, Generated, GeneratedChoice, GenerationUsage, TokenText
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.running import Part

ITEM, NAME = 7, "unread-7"


def _file(*parts: Part) -> bytes:
    return b"".join(write_parts(parts, NAME))


def _part(
    payload: Tensors | Raw | Generated | None, final: bool = False, **parameters: str | int | bool
) -> Part:
    return Part(ITEM, payload, None, final, parameters)


TEXT = GeneratedChoice(0, "text", (1, 2), (TokenText(1, "te"), TokenText(2, "xt")), Finish.STOP)
GENERATED = Generated((TEXT,), GenerationUsage(3, 4))
RAW = Raw((RawPart(b"one", "text/plain", "f", "f.txt"), RawPart(b"")), {"P": "1"}, (("q", "2"),), 201, "Made")
TENSORS = Tensors.of({"x": np.arange(9, dtype="<f4"), "y": np.array([b"a", b""], object)})
CORPUS = (
    _file(_part(TENSORS, last=False), _part(None, True, reason="stop", count=2)),
    _file(_part(RAW)),
    _file(_part(GENERATED), _part(GENERATED)),
    _file(_part(TENSORS), _part(RAW), _part(GENERATED), _part(None)),
    _file(),
)
ANOTHER = b"".join(write_parts([Part(ITEM, RAW, None, False)], "unread-8"))
HEAD = struct.Struct("<LQ")
TOKENS = (
    b'"parts"',
    b'"tensors"',
    b'"generated"',
    b'"raw"',
    b'"listed"',
    b"[[",
    b"1e400",
    b"-1",
    b"null",
    b"\xff" * 8,
    bytes(8),
)


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """A file whose head is changed as JSON, or whose data are; its lengths and its sum are right."""
    (_, size) = HEAD.unpack_from(entry)
    head, data = entry[HEAD.size : HEAD.size + size], entry[HEAD.size + size :]
    match chance.randrange(4):
        case 0:
            data = change(data)
        case 1:
            head = change(head)
        case _:
            head = mutations.json_changed(head, chance)
    size = chance.choice((len(head),) * 8 + (0, len(head) + 1, 2**63))
    return HEAD.pack(zlib.crc32(head + data, zlib.crc32(f"{size} {NAME}".encode())), size) + head + data


def read(data: bytes, chance: random.Random) -> None:
    """It is what was written, or refused."""
    if chance.random() < 0.01:
        data = ANOTHER
    parts = read_parts(data, NAME, ITEM)
    assert data != ANOTHER, "the parts of another answer"
    for part in parts:
        assert part.item == ITEM
        assert part.error is None


def read_damaged(data: bytes, chance: random.Random) -> None:
    """A file with any byte that is another one is no file of ours."""
    read_parts(data, NAME, ITEM)
    assert data in CORPUS, "it is damaged, and was read"


TARGETS = (
    Target("kept_parts", CORPUS, read, (ValueError,), TOKENS, rebuild=rebuilt),
    Target("kept_parts_damaged", CORPUS, read_damaged, (ValueError,), TOKENS),
)
