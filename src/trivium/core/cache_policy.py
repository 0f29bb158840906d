"""What a cache of so many bytes keeps: what was used last. And what makes two requests the same. Pure.

Two requests are the same to a model if they have the same inputs, by name, datatype, shape and every byte, and ask
for the same outputs in the same form. Sheet "triton", section 7.11; there the outputs are not looked at, so that a
client may get those of another.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Generic, TypeVar

from trivium.codecs import binary
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors

Value = TypeVar("Value")
DIGEST_BYTES = 32
PER_ENTRY = 512
"""Bytes that an entry is taken to cost beside its arrays."""
PER_ELEMENT = 64
"""Likewise each element of a BYTES tensor, which is an object of its own."""

_LENGTH = struct.Struct("<Q").pack


class LastUsed(Generic[Value]):
    """Entries of `limit` bytes together at most; the one that was not used for longest goes first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.evictions = 0
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """The value of a key, used by this; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: Value, size: int) -> bool:
        """Keep it, in place of what the key had and of as many others as it takes. False for one beyond the limit."""
        before = self._entries.pop(key, None)
        if before is not None:
            self.used -= before[1]
        if size > self.limit:
            return False
        while self.used + size > self.limit:
            _, (_, freed) = self._entries.popitem(last=False)
            self.used -= freed
            self.evictions += 1
        self._entries[key] = value, size
        self.used += size
        return True

    def drop(self, is_unwanted: Callable[[Hashable], bool]) -> None:
        """Forget every entry whose key is so."""
        for key in [key for key in self._entries if is_unwanted(key)]:
            self.used -= self._entries.pop(key)[1]


def digest(model: str, version: str, infer: Infer) -> bytes:
    """The same for requests that are the same; for no others, as far as a strong hash can tell. Each piece is hashed
    with its length, so that none runs into the next.
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


def own_copy(payload: Tensors) -> Tensors:
    """The same in memory of its own, which nobody can write to: the original may view a request or a batch."""
    return Tensors(tuple(map(_copied, payload.items)))


def size_of(payload: Tensors) -> int:
    """Bytes that keeping it costs."""
    return PER_ENTRY + sum(map(_tensor_size, payload.items))


def _copied(tensor: Tensor) -> Tensor:
    array = tensor.array.copy()
    array.flags.writeable = False
    return Tensor(tensor.name, tensor.datatype, tensor.shape, array)


def _tensor_size(tensor: Tensor) -> int:
    array = tensor.array
    if array.dtype.hasobject:
        return PER_ENTRY + sum(PER_ELEMENT + len(element) for element in array.ravel().tolist())
    return PER_ENTRY + array.nbytes
