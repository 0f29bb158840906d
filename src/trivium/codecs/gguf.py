"""Reads the head of a GGUF file: its metadata, and where its tensors lie. Trusts no count, length or size of it.

Source of the layout: the GGUF specification, versions 2 and 3, little-endian. What is not asked for is passed over, so
that the words of a tokenizer cost nothing where nobody wants them. This is pure: bytes in, values out.
"""

import math
import struct
import sys
from array import array
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

Buffer = bytes | memoryview

MAGIC = b"GGUF"
VERSIONS = (2, 3)
TOKENS, MERGES = "tokenizer.ggml.tokens", "tokenizer.ggml.merges"
SCORES, TOKEN_TYPES = "tokenizer.ggml.scores", "tokenizer.ggml.token_type"

_FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The number of a type -> its form for `struct`."""
_NUMBERS = {kind: struct.Struct(f"<{form}") for kind, form in _FORMS.items()}
_ARRAYS = {kind: "B" if form == "?" else form for kind, form in _FORMS.items()}
_SHORT, _LONG = struct.Struct("<I"), struct.Struct("<Q")
_TEXT, _LIST = 8, 9
_MOST_KEYS, _MOST_TENSORS, _MOST_WORDS = 2**16, 2**20, 2**21
_LONGEST_KEY, _LONGEST_NAME, _LONGEST_TEXT = 2**16 - 1, 2**10, 2**24
_MOST_DIMS, _MOST_NUMBERS = 4, 2**48
_ALIGNMENT, _ALIGNED = 32, "general.alignment"
_MOST_ALIGNMENT = 2**20


class GgufFault(ValueError):
    """Raised for bytes that are no head of such a file; says what is there."""


class GgufCut(GgufFault):
    """Raised where the bytes end within the head."""


class ListLength(int):
    """The value of a key whose list was not asked for: how long it is."""


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor: its shape with the outermost size first, the number of its type, and where its bytes lie."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    size: int

    @property
    def numbers(self) -> int:
        """Return how many numbers it has."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class GgufHead:
    """All that stands in front of the data. Of a list that was not asked for the value is a `ListLength`."""

    metadata: Mapping[str, object]
    tensors: tuple[GgufTensor, ...]

    @property
    def architecture(self) -> str:
        """Return what the file calls its architecture; empty where it names none."""
        name = self.metadata.get("general.architecture")
        return name if isinstance(name, str) else ""

    @property
    def numbers(self) -> int:
        """Return how many numbers all tensors have."""
        return sum(tensor.numbers for tensor in self.tensors)

    def number(self, key: str) -> int | None:
        """Return a whole number of the architecture's own, like `context_length`; None where there is none."""
        value = self.metadata.get(f"{self.architecture}.{key}")
        return value if type(value) is int else None


def read_head(data: Buffer, blocks: Mapping[int, tuple[int, int]], lists: Container[str] = ()) -> GgufHead:
    """Return the head of a whole file. `blocks` are, for each type of tensor, the numbers and the bytes of a block;
    `lists` are the keys whose lists are wanted. Raises GgufFault for a file that is not whole or contradicts itself.
    """
    reader = _Reader(data)
    metadata = dict(reader.pairs(lists))
    alignment = metadata.get(_ALIGNED, _ALIGNMENT)
    if type(alignment) is not int or not 1 <= alignment <= _MOST_ALIGNMENT or alignment & (alignment - 1):
        raise GgufFault(f"{_ALIGNED} is {str(alignment)[:40]}, and a power of two is expected")
    told = [reader.tensor(blocks) for _ in range(reader.tensors)]
    start = -(-reader.at // alignment) * alignment
    tensors = tuple(_placed(one, start, alignment, len(data)) for one in told)
    _judge_places(tensors)
    return GgufHead(metadata, tensors)


def metadata_of(data: Buffer) -> Iterator[tuple[str, object]]:
    """Give the metadata of the beginning of a file, one by one. Raises GgufCut where the bytes end, GgufFault for bytes
    that are none.
    """
    return _Reader(data).pairs(())


def _placed(tensor: GgufTensor, start: int, alignment: int, size: int) -> GgufTensor:
    """Return a tensor whose start counts from the begin of the file."""
    if tensor.start % alignment:
        raise GgufFault(
            f"the tensor '{tensor.name}' begins at {tensor.start}, and {alignment} do not divide that"
        )
    begin = start + tensor.start
    if begin + tensor.size > size:
        raise GgufCut(f"it has {size} bytes, and the tensor '{tensor.name}' ends at {begin + tensor.size}")
    return GgufTensor(tensor.name, tensor.shape, tensor.kind, begin, tensor.size)


def _judge_places(tensors: tuple[GgufTensor, ...]) -> None:
    if len({one.name for one in tensors}) < len(tensors):
        raise GgufFault("two of its tensors have the same name")
    ordered = sorted(tensors, key=lambda one: one.start)
    for one, other in pairwise(ordered):
        if one.start + one.size > other.start:
            raise GgufFault(f"the tensors '{one.name}' and '{other.name}' lie over one another")


class _Reader:
    """Bytes of a file from its begin; nothing is read beyond their end."""

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self._size = len(data)
        self._cut = f"{self._size} bytes that end within the metadata"
        self.at = 0
        if (begin := bytes(self._take(len(MAGIC)))) != MAGIC:
            raise GgufFault(f"a file that begins with {begin!r}")
        version = self._short()
        if version not in VERSIONS:
            raise GgufFault(f"version {version} of the format, and versions 2 and 3 can be read")
        self.tensors = self._count(_MOST_TENSORS, "tensors")
        self._keys = self._count(_MOST_KEYS, "keys")

    def pairs(self, lists: Container[str]) -> Iterator[tuple[str, object]]:
        """Give each key with its value."""
        seen: set[str] = set()
        for _ in range(self._keys):
            key = self._text(_LONGEST_KEY, "bytes of a key")
            if key in seen:
                raise GgufFault(f"the key '{key[:80]}' twice")
            seen.add(key)
            yield key, self._value(self._short(), key in lists)

    def tensor(self, blocks: Mapping[int, tuple[int, int]]) -> GgufTensor:
        """Return the next tensor, whose start counts from the begin of the data."""
        name = self._text(_LONGEST_NAME, "bytes of a tensor's name")
        dims = self._short()
        if not 1 <= dims <= _MOST_DIMS:
            raise GgufFault(f"a tensor of {dims} dimensions")
        shape = tuple(reversed([self._long() for _ in range(dims)]))
        kind, start = self._short(), self._long()
        if kind not in blocks:
            raise GgufFault(f"a tensor of type {kind}, which nobody knows")
        numbers, size = blocks[kind]
        count = math.prod(shape)
        if not 1 <= count <= _MOST_NUMBERS or shape[-1] % numbers:
            raise GgufFault(f"the tensor '{name[:80]}' of {shape} in blocks of {numbers}")
        return GgufTensor(name, shape, kind, start, count // numbers * size)

    def _value(self, kind: int, is_wanted: bool) -> object:
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            return form.unpack(self._take(form.size))[0]
        if kind == _TEXT:
            return self._text(_LONGEST_TEXT, "bytes of a text")
        if kind != _LIST:
            raise GgufFault(f"a value of type {kind}")
        inner, count = self._short(), self._long()
        if inner in _NUMBERS:
            taken = self._take(count * _NUMBERS[inner].size)
            return _numbers(_ARRAYS[inner], taken) if is_wanted else ListLength(count)
        if inner != _TEXT:
            raise GgufFault(f"a list of values of type {inner}")
        if count * _LONG.size > self._size - self.at:
            raise GgufCut(self._cut)
        return self._words(count) if is_wanted else self._passed(count)

    def _words(self, count: int) -> list[str]:
        if count > _MOST_WORDS:
            raise GgufFault(f"a list of {count} texts")
        return [self._text(_LONGEST_TEXT, "bytes of a text") for _ in range(count)]

    def _passed(self, count: int) -> "ListLength":
        """Pass over texts: there may be hundreds of thousands."""
        at, read, data = self.at, _LONG.unpack_from, self._data
        for _ in range(count):
            if at + _LONG.size > self._size:
                raise GgufCut(self._cut)
            at += _LONG.size + read(data, at)[0]
        if at > self._size:
            raise GgufCut(self._cut)
        self.at = at
        return ListLength(count)

    def _text(self, most: int, what: str) -> str:
        size = self._long()
        if size > most:
            raise GgufFault(f"{size} {what}")
        return str(self._take(size), "utf-8", "replace")

    def _count(self, most: int, what: str) -> int:
        count = self._long()
        if count > most:
            raise GgufFault(f"{count} {what}")
        return count

    def _short(self) -> int:
        return int(_SHORT.unpack(self._take(_SHORT.size))[0])

    def _long(self) -> int:
        return int(_LONG.unpack(self._take(_LONG.size))[0])

    def _take(self, size: int) -> Buffer:
        end = self.at + size
        if end > self._size:
            raise GgufCut(self._cut)
        taken, self.at = self._data[self.at : end], end
        return taken


def _numbers(form: str, data: Buffer) -> "array[float]":
    found: array[float] = array(form)
    found.frombytes(data)
    if sys.byteorder == "big":
        found.byteswap()
    return found
