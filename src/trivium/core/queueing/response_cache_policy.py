"""Decides what a cache of so many bytes keeps (what was used last), and what makes two requests the same. Pure.

Two requests are the same to a model if they have the same inputs, by name, datatype, shape and every byte, and ask
for the same outputs in the same form. Sheet "triton", section 7.11; there the outputs are not looked at, so that a
client may get those of another.
"""

import struct
from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Generic, TypeVar

from cachetools import LRUCache

from trivium.codecs import binary
from trivium.types.operations import Infer
from trivium.types.payload import PER_ELEMENT, PackedTensor, Tensor, Tensors

Value = TypeVar("Value")
DIGEST_BYTES = 32
PER_ENTRY = 512
"""Bytes that an entry is taken to cost beside its arrays."""
_LENGTH = struct.Struct("<Q").pack


class _Entries(LRUCache[Hashable, tuple[Value, int]]):
    """Values with their sizes; counts those that had to go."""

    evictions = 0

    def popitem(self) -> tuple[Hashable, tuple[Value, int]]:
        self.evictions += 1
        return super().popitem()


class LastUsed(Generic[Value]):
    """Entries of `limit` bytes together at most; the one that was not used for longest goes first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: _Entries[Value] = _Entries(limit, lambda entry: entry[1])

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def used(self) -> int:
        """Bytes of all entries."""
        return int(self._entries.currsize)

    @property
    def evictions(self) -> int:
        """Entries that had to go for others."""
        return self._entries.evictions

    def get(self, key: Hashable) -> Value | None:
        """The value of a key, used by this; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: Hashable, value: Value, size: int) -> bool:
        """Keep it, in place of what the key had and of as many others as it takes. False for one beyond the limit."""
        self._entries.pop(key, None)
        if size > self.limit:
            return False
        self._entries[key] = value, size
        return True

    def drop(self, is_unwanted: Callable[[Hashable], bool]) -> None:
        """Forget every entry whose key is so."""
        for key in [key for key in self._entries if is_unwanted(key)]:
            del self._entries[key]


def digest(model: str, version: str, infer: Infer) -> bytes:
    """Return a key that is the same for requests that are the same; for no others, as far as a strong hash can tell.
    Each piece is hashed with its length, so that none runs into the next.
    """
    assert isinstance(infer.payload, Tensors)
    hashed = blake2b(digest_size=DIGEST_BYTES)

    def add(piece: bytes | memoryview) -> None:
        view = memoryview(piece)
        hashed.update(_LENGTH(view.nbytes))
        hashed.update(view)

    asked = sorted({(output.name, output.classification) for output in infer.outputs})
    add(repr((model, version, infer.wants, asked)).encode())
    for tensor in sorted(infer.payload.items, key=lambda tensor: tensor.name):
        add(repr((tensor.name, tensor.datatype.wire, tensor.shape)).encode())
        add(binary.encode(tensor))
    return hashed.digest()


def size_of(payload: Tensors) -> int:
    """Bytes that keeping it costs."""
    return PER_ENTRY + sum(map(_tensor_size, payload.items))


def _tensor_size(tensor: Tensor) -> int:
    if type(tensor) is PackedTensor:
        return PER_ENTRY + tensor.size
    array = tensor.array
    if array.dtype.hasobject:
        return PER_ENTRY + sum(PER_ELEMENT + len(element) for element in array.ravel().tolist())
    return PER_ENTRY + array.nbytes
