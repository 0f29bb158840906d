"""Reads the head of a GGUF file: how many numbers its tensors have, and whether the file is whole.

The library that reads such files trusts what they say of lengths; this does not, and skips what it does not need.
Source of the layout: the GGUF specification, versions 2 and 3.
"""

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _LIST = 8, 9
_MOST_ENTRIES, _MOST_DEPTH, _MOST_DIMS = 2**20, 4, 8


def count_numbers(path: Path, blocks: Mapping[int, tuple[int, int]]) -> int:
    """Return how many numbers the tensors of a file have. `blocks` are, for each type of tensor, the numbers and the
    bytes of a block. Raises ValueError with the reason for a file that is not whole, and OSError.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = _Head(file, size)
        if head.take(4) != MAGIC:
            raise ValueError("it does not begin with GGUF")
        version = head.number("<I")
        if version not in _VERSIONS:
            raise ValueError(f"it has version {version}, and versions 2 and 3 can be read")
        tensors, entries = head.number("<Q"), head.number("<Q")
        if max(tensors, entries) > _MOST_ENTRIES:
            raise ValueError(f"it would have {tensors} tensors and {entries} entries")
        for _ in range(entries):
            head.skip(head.number("<Q"))
            head.skip_value(head.number("<I"))
        found, last = 0, 0
        for _ in range(tensors):
            count, end = _tensor(head, blocks)
            found, last = found + count, max(last, end)
        if head.at + last > size:
            raise ValueError(
                f"it has {size} bytes, and its tensors end behind {head.at + last}: it is truncated"
            )
    return found


def _tensor(head: "_Head", blocks: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the numbers of the next tensor, and where it ends in the data."""
    head.skip(head.number("<Q"))
    dims = head.number("<I")
    if dims > _MOST_DIMS:
        raise ValueError(f"a tensor would have {dims} dimensions")
    count = math.prod(head.number("<Q") for _ in range(dims))
    kind = head.number("<I")
    if kind not in blocks:
        raise ValueError(f"a tensor has the type {kind}, which nobody knows")
    numbers, size = blocks[kind]
    return count, head.number("<Q") + count // numbers * size


class _Head:
    """A file from its beginning; nothing is read beyond its end."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self.at = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        self._move(count)
        return self._file.read(count)

    def skip(self, count: int) -> None:
        """Pass over bytes."""
        self._move(count)
        self._file.seek(count, 1)

    def number(self, form: str) -> int:
        """Return the next whole number."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def skip_value(self, kind: int, depth: int = 0) -> None:
        """Pass over a value of a type: a number, a text, or a list."""
        if kind in _SIZES:
            self.skip(_SIZES[kind])
        elif kind == _TEXT:
            self.skip(self.number("<Q"))
        elif kind == _LIST and depth < _MOST_DEPTH:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in _SIZES:
                self.skip(_SIZES[inner] * count)
                return
            if count > self._size:
                raise ValueError(f"a list would have {count} values")
            for _ in range(count):
                self.skip_value(inner, depth + 1)
        else:
            raise ValueError(f"a value has the type {kind}, which nobody knows")

    def _move(self, count: int) -> None:
        if count > self._size - self.at:
            raise ValueError(f"it ends at {self._size} bytes, within its head: it is truncated")
        self.at += count
