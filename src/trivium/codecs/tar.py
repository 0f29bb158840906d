"""The members of a tar, one after another: POSIX ustar with pax records, GNU long names, the old V7 form.

Decides nothing about names and kinds, which others accept or refuse. Reads forward only and never more than a piece
of a member's data; headers are bounded, and a damaged one is a fault. (Python's `tarfile` reads headers of any size
into memory, and takes a damaged one behind the first for the end.)
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from trivium.types.errors import Code, ServeError

PIECE = 2**18
MAX_HEADER_BYTES = 2**16
MAX_HEADERS = 16
"""Headers that say something of the next member, in front of one: one or two are usual."""
MAX_PADDING = 2**20
"""Bytes behind the end mark: ten kilobytes are usual."""

_BLOCK = 512
_EXTENDING = (b"x", b"g", b"L", b"K")
_WITHOUT_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")
_RECORD = re.compile(rb"(\d{1,8}) ([^=\n]+)=")
_CHECKSUM = re.compile(rb"[ \0]*([0-7]{1,7})[ \0]*")

Read = Callable[[int], bytes]
"""Up to so many bytes; none at the end only. What it raises passes through."""


class TarKind(Enum):
    """The kind of a member; the value is for people."""

    FILE = "a file"
    FOLDER = "a folder"
    HARD_LINK = "a hard link"
    SYMBOLIC_LINK = "a symbolic link"
    DEVICE = "a device"
    PIPE = "a pipe"
    SPARSE = "a sparse file"
    UNKNOWN = "a member of a kind of its own"


_KINDS = {
    b"\0": TarKind.FILE,
    b"0": TarKind.FILE,
    b"7": TarKind.FILE,
    b"1": TarKind.HARD_LINK,
    b"2": TarKind.SYMBOLIC_LINK,
    b"3": TarKind.DEVICE,
    b"4": TarKind.DEVICE,
    b"5": TarKind.FOLDER,
    b"6": TarKind.PIPE,
    b"S": TarKind.SPARSE,
}


@dataclass(frozen=True, slots=True)
class TarMember:
    """`data` is to be read before the next member is asked for; what is left of it is skipped. Bytes of a name
    that are no UTF-8 come as lone surrogates.
    """

    name: str
    kind: TarKind
    data: Iterator[bytes]


def is_tar(start: bytes) -> bool:
    """Do these first 512 bytes begin a tar?"""
    return len(start) == _BLOCK and _has_checksum(start)


def members(read: Read) -> Iterator[TarMember]:
    """Every member up to the end mark. INVALID where the bytes are no tar, end too early or go on behind it."""
    told: dict[str, bytes] = {}
    headers = 0
    while any(block := _blocks(read, _BLOCK)):
        if not _has_checksum(block):
            raise _damaged("a header has not the checksum that it names")
        size, kind = _number(block[124:136]), block[156:157]
        if kind in _EXTENDING:
            headers += 1
            if size > MAX_HEADER_BYTES or headers > MAX_HEADERS:
                raise _damaged("the headers in front of a member are too long or too many")
            told |= _told(kind, _blocks(read, size))
            continue
        if kind in _WITHOUT_DATA:
            size = 0
        elif "size" in told:
            size = _digits(told["size"], 10)
        data = _pieces(read, size)
        yield TarMember(*_name_and_kind(block, told), data)
        for _ in (*data, *_pieces(read, -size % _BLOCK)):
            pass
        told, headers = {}, 0
    behind = 0
    while padding := read(PIECE):  # to the end, where a gzip has its checksum
        behind += len(padding)
        if behind > MAX_PADDING:
            raise _damaged("there is data behind its end")


def _pieces(read: Read, size: int) -> Iterator[bytes]:
    while size:
        piece = read(min(size, PIECE))
        if not piece:
            raise _damaged("it ends too early")
        size -= len(piece)
        yield piece


def _blocks(read: Read, size: int) -> bytes:
    """Return whole blocks whose first `size` bytes are the member's."""
    return b"".join(_pieces(read, size + -size % _BLOCK))[:size]


def _has_checksum(block: bytes) -> bool:
    """Sums of unsigned bytes are usual, those of signed ones old."""
    counted = block[:148] + b" " * 8 + block[156:]
    total = sum(counted)
    named = _CHECKSUM.fullmatch(block[148:156])
    return named is not None and int(named[1], 8) in (total, total - 256 * sum(b > 127 for b in counted))


def _number(field: bytes) -> int:
    if field[0] == 0x80:  # GNU: a large number in binary
        return int.from_bytes(field[1:], "big")
    return _digits(field.strip(b" \0") or b"0", 8)


def _digits(text: bytes, base: int) -> int:
    try:
        if len(text) < 20 and text.isdigit():
            return int(text, base)
    except ValueError:
        pass
    raise _damaged(f"a header names the size {text[:20]!r}")


def _told(kind: bytes, data: bytes) -> dict[str, bytes]:
    """Return the fields that an extended header gives for the next member."""
    if kind == b"L":
        return {"path": data.partition(b"\0")[0]}
    if kind == b"K":
        return {}  # where a link leads does not matter: none is followed
    found = dict(_records(data))
    if kind == b"x":
        return found
    if found.keys() & {"path", "size"}:
        raise _damaged("a header gives all members the same name or size")
    return {}


def _records(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(data):
        record = _RECORD.match(data, at)
        end = at + int(record[1]) if record else 0
        if record is None or not record.end() < end <= len(data) or data[end - 1 : end] != b"\n":
            raise _damaged("a pax header cannot be read")
        key = record[2].decode("latin-1")
        yield "sparse" if key.startswith("GNU.sparse") else key, data[record.end() : end - 1]
        at = end


def _name_and_kind(block: bytes, told: dict[str, bytes]) -> tuple[str, TarKind]:
    raw, prefix = (field.partition(b"\0")[0] for field in (block[:100], block[345:500]))
    if "path" in told:
        raw = told["path"]
    elif prefix and block[257:263] == b"ustar\0":
        raw = prefix + b"/" + raw
    kind = TarKind.SPARSE if "sparse" in told else _KINDS.get(block[156:157], TarKind.UNKNOWN)
    if kind is TarKind.FILE and raw.endswith(b"/"):  # V7 has no kind for folders
        kind = TarKind.FOLDER
    return raw.decode("utf-8", "surrogateescape"), kind


def _damaged(found: str) -> ServeError:
    return ServeError(Code.INVALID, f"The tar archive is damaged: {found}. Pack it anew, or copy it anew.")
