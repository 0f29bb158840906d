"""Stores the keys and values of past tokens: the form of every storage, and the one on a processor.

On a processor each slot has addresses for its whole context, and slots lie side by side, so that the running ones are
read without a copy. Addresses cost nothing: the system gives a page when it is first written, and takes it back when
its slot is released. What was never written, or was released, reads as zeros, which are numbers.
"""

import mmap
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

_SPREAD = (
    2  # times as many rows as there are tokens may be computed, where that spares a copy of keys and values
)
_CLEARS = sys.platform == "linux"
"""Whether memory that is given back reads as zeros: elsewhere it may keep what it held."""
_UNRESERVED = 0x4000 if sys.platform == "linux" else 0
"""MAP_NORESERVE, which Python 3.11 does not name: the system does not count what is not written."""


@dataclass(frozen=True, slots=True)
class RowSegment:
    """Tokens of one sequence, as they lie in the row: `size` of them, behind `start` that its slot has."""

    slot: int
    start: int
    size: int


Seen = tuple[torch.Tensor, torch.Tensor]
"""Keys and values as they are read: [rows, heads, tokens, width of a head]."""


class RowPlaces(Protocol):
    """The tokens of a step that are alone of their sequence: where they lie, for all layers."""

    count: int
    width: int
    last: torch.Tensor
    """The last token that each computed row sees; there may be rows of nobody among them."""

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """Put a key and a value for each row: [rows, heads, width of a head]."""
        ...

    def read(self, layer: int) -> Seen:
        """Return the first `width` keys and values of each computed row."""
        ...

    def spread(self, query: torch.Tensor) -> torch.Tensor:
        """Return what the rows ask, with a row for each computed one."""
        ...

    def gathered(self, out: torch.Tensor) -> torch.Tensor:
        """Return what was computed for the rows."""
        ...


class KeyValueStorage(Protocol):
    """Keeps keys and values of slots, layer by layer. A slot's memory grows as it is written, until it is released."""

    def open_layer(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """See to it that a layer has a place; keys and values show its heads, widths, data type and device."""
        ...

    def reserve(self, segments: Sequence[RowSegment]) -> None:
        """Say what is going to be written, before the first layer of a step. Raises OUT_OF_MEMORY where a pool of a
        fixed size has no room, which whoever keeps to its budget does not see.
        """
        ...

    def rows(self, segments: Sequence[RowSegment], device: torch.device) -> RowPlaces:
        """Return the places of tokens that are alone of their sequence."""
        ...

    def write(self, layer: int, piece: RowSegment, key: torch.Tensor, value: torch.Tensor) -> None:
        """Put the keys and values of one piece: [heads, tokens, width of a head]."""
        ...

    def read(self, layer: int, slot: int, size: int) -> Seen:
        """Return the first keys and values of a slot, as of one row."""
        ...

    def copy(self, source: int, target: int, size: int) -> None:
        """Give a slot the first keys and values of another one."""
        ...

    def move(self, source: int, target: int, size: int, begin: int) -> None:
        """Give a slot the first keys and values of another one, whose memory goes back. It has the first `begin` of
        them, and nothing else, already.
        """
        ...

    def release(self, slot: int) -> None:
        """Give a slot's memory back. No number of it is read again."""
        ...

    def release_all(self) -> None:
        """Give all memory back."""
        ...


class _MappedTensor:
    """One layer's keys, or values: [slots, heads, context, width of a head], whose heads each begin on a page."""

    def __init__(self, slots: int, context: int, like: torch.Tensor) -> None:
        heads, width, item = like.shape[1], like.shape[3], like.element_size()
        page = mmap.PAGESIZE
        self._stride = -(-context * width * item // page) * page
        self._heads = heads
        size = slots * heads * self._stride
        self._memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNRESERVED)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):  # a huge page would be taken whole for its first token
            self._memory.madvise(mmap.MADV_NOHUGEPAGE)
        per_head = self._stride // item
        flat = torch.frombuffer(self._memory, dtype=like.dtype)
        self.tensor = flat.as_strided((slots, heads, context, width), (heads * per_head, per_head, width, 1))

    def release(self, slot: int, used: int) -> None:
        """Give the pages of a slot back that has so many tokens."""
        if not _CLEARS:
            with torch.inference_mode():
                self.tensor[slot, :, :used] = 0
            return
        size = self._heads * self._stride
        self._memory.madvise(mmap.MADV_DONTNEED, slot * size, size)


def can_map(size: int) -> bool:
    """Return whether the system gives so many bytes of addresses, written or not: where it bounds them it may not."""
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNRESERVED).close()
    except (OSError, OverflowError, ValueError):
        return False
    return True


class MappedSlots:
    """Storage on a processor: see `KeyValueStorage`."""

    def __init__(self, slots: int, context: int) -> None:
        self._slots = slots
        self._context = context
        self._layers: dict[int, tuple[_MappedTensor, _MappedTensor]] = {}
        self.tensors: dict[int, Seen] = {}
        self._used: dict[int, int] = {}

    def open_layer(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """See `KeyValueStorage`."""
        if layer not in self._layers:
            keys = _MappedTensor(self._slots, self._context, key)
            values = _MappedTensor(self._slots, self._context, value)
            self._layers[layer] = keys, values
            self.tensors[layer] = keys.tensor, values.tensor

    def reserve(self, segments: Sequence[RowSegment]) -> None:
        """See `KeyValueStorage`: pages are given as they are written."""
        for segment in segments:
            end = segment.start + segment.size
            self._used[segment.slot] = max(self._used.get(segment.slot, 0), end)

    def rows(self, segments: Sequence[RowSegment], device: torch.device) -> RowPlaces:
        """See `KeyValueStorage`."""
        return _MappedRows(self.tensors, segments, device)

    def write(self, layer: int, piece: RowSegment, key: torch.Tensor, value: torch.Tensor) -> None:
        """See `KeyValueStorage`."""
        end = piece.start + piece.size
        for store, new in zip(self.tensors[layer], (key, value), strict=True):
            store[piece.slot, :, piece.start : end] = new

    def read(self, layer: int, slot: int, size: int) -> Seen:
        """See `KeyValueStorage`."""
        keys, values = self.tensors[layer]
        return keys[slot, None, :, :size], values[slot, None, :, :size]

    def copy(self, source: int, target: int, size: int) -> None:
        """See `KeyValueStorage`."""
        self._used[target] = max(self._used.get(target, 0), size)
        for store in self._stores():
            store.tensor[target, :, :size] = store.tensor[source, :, :size]

    def move(self, source: int, target: int, size: int, begin: int) -> None:
        """See `KeyValueStorage`: layer by layer, so that hardly more memory is taken in between."""
        used = self._used.pop(source, 0)
        self._used[target] = max(self._used.get(target, 0), size)
        for store in self._stores():
            with torch.inference_mode():
                store.tensor[target, :, begin:size] = store.tensor[source, :, begin:size]
            store.release(source, used)

    def release(self, slot: int) -> None:
        """See `KeyValueStorage`."""
        if used := self._used.pop(slot, 0):
            for store in self._stores():
                store.release(slot, used)

    def release_all(self) -> None:
        """See `KeyValueStorage`."""
        for slot in list(self._used):
            self.release(slot)

    def _stores(self) -> Iterator[_MappedTensor]:
        for pair in self._layers.values():
            yield from pair


class _MappedRows:
    """See `RowPlaces`: slots that lie together are read in place, and rows of nobody between them are computed."""

    def __init__(
        self, tensors: dict[int, Seen], segments: Sequence[RowSegment], device: torch.device
    ) -> None:
        self._tensors = tensors
        slots = [segment.slot for segment in segments]
        starts = [segment.start for segment in segments]
        self.count = len(slots)
        self.width = max(starts) + 1
        self._slots = torch.tensor(slots, device=device)
        self._starts = torch.tensor(starts, device=device)
        self._low, self._high = min(slots), max(slots) + 1
        self._is_view = self._high - self._low <= _SPREAD * self.count
        self._is_dense = slots == list(range(self._low, self._high))
        places = self._slots - self._low if self._is_view else torch.arange(self.count, device=device)
        self._places = places
        self.last = torch.full((self._high - self._low if self._is_view else self.count,), 0, device=device)
        self.last[places] = self._starts

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """See `RowPlaces`."""
        for store, new in zip(self._tensors[layer], (key, value), strict=True):
            store[self._slots, :, self._starts] = new

    def read(self, layer: int) -> Seen:
        """See `RowPlaces`."""
        keys, values = self._tensors[layer]
        if self._is_view:
            span = slice(self._low, self._high)
            return keys[span, :, : self.width], values[span, :, : self.width]
        return keys[self._slots, :, : self.width], values[self._slots, :, : self.width]

    def spread(self, query: torch.Tensor) -> torch.Tensor:
        """See `RowPlaces`."""
        if not self._is_view or self._is_dense:
            return query
        spread = query.new_zeros(self._high - self._low, *query.shape[1:])
        spread[self._places] = query
        return spread

    def gathered(self, out: torch.Tensor) -> torch.Tensor:
        """See `RowPlaces`."""
        return out[self._places] if self._is_view and not self._is_dense else out
