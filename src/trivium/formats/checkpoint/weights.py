"""Files of weights as an index or a header names them: which pieces there are, and whether a file is whole.

Source: the index that `save_pretrained` writes, and the format safetensors. Never raises for what somebody wrote. Pure.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

from trivium.formats.checkpoint.documents import read_fields
from trivium.types.findings import Finding, Severity

MAX_INDEX = 2**25
LENGTH = 8
"""Bytes in front of a safetensors header, which say how long it is."""

MAX_HEADER = 10**8


class _Index(msgspec.Struct):
    """An index, as far as it matters."""

    weight_map: dict[str, str] = {}


_AGAIN = "Copy the model's files anew; all pieces belong into one folder."


def read_index(file: str, data: bytes) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Return the pieces that an index of safetensors names, and what is wrong with it."""
    told, read = read_fields(file, data, MAX_INDEX, _Index, _AGAIN)
    if told is None:
        return (), read.findings
    if not told.weight_map:
        expected = 'an object from tensors to files: {"lm_head.weight": "model-00001-of-00002.safetensors"}'
        return (), (read.fault("weight_map", None, expected, _AGAIN),)
    pieces = dict.fromkeys(told.weight_map.values())
    faults = tuple(
        read.finding(
            "weight_map",
            f"the file {piece[:80]!r}, which is not named within the folder",
            "names of .safetensors files in the folder",
            "Put all pieces into the folder, and name them without a path.",
        )
        for piece in pieces
        if not _is_inside(piece)
    )
    return ((), faults[:10]) if faults else (tuple(pieces), ())


def header_fault(file: str, head: bytes, size: int) -> Finding | None:
    """Return what is wrong with the beginning of a safetensors file of `size` bytes; None for nothing."""
    length = int.from_bytes(head[:LENGTH], "little")
    if len(head) < LENGTH or size < LENGTH + length or length > MAX_HEADER or length < 2:
        found = f"{size} bytes, and a header that would be of {length}"
        if len(head) < LENGTH:
            found = f"{size} bytes, fewer than the length of a header takes"
    elif head[LENGTH : LENGTH + 1] != b"{":
        found = "a header that is no JSON object"
    else:
        return None
    hint = "It is cut off, or no such file: copy it anew."
    return Finding(Severity.ERROR, file, None, "", found, "a whole file in the format safetensors", hint)


def lacking(index: str, pieces: Mapping[str, bool]) -> tuple[Finding, ...]:
    """Return a fault for those pieces of an index that are not there."""
    gone = [name for name, is_there in pieces.items() if not is_there]
    if not gone:
        return ()
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    found = f"{', '.join(gone[:3])}{more}, which the folder does not have"
    return (Finding(Severity.ERROR, index, None, "weight_map", found, f"{len(pieces)} files", _AGAIN),)


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    is_plain = len(path.parts) == 1 and name.isprintable() and "\\" not in name and len(name) < 256
    return is_plain and name.endswith(".safetensors") and name not in (".", "..")
