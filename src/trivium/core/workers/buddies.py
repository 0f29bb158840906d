"""Where blocks lie in a region of memory: buddies, halved and joined again. Pure; touches no memory.

Blocks are powers of two, so that whatever sizes come and go, what is free joins up again. What comes back rests for a
while as it is, since the next one is mostly wanted in the same size: halving and joining costs more than all else here.
"""

from collections.abc import Iterator

RESTING = 4
"""Blocks of one size that rest at most, so that joining them all up at once takes no time that anybody would notice."""


class BuddyAllocator:
    """Offsets of blocks of `smallest` to `capacity` bytes, both powers of two."""

    def __init__(self, capacity: int, smallest: int) -> None:
        assert capacity & (capacity - 1) == 0
        assert smallest & (smallest - 1) == 0
        self._capacity = capacity
        self._smallest = smallest
        self._free: dict[int, set[int]] = {size: set() for size in self._sizes()}
        self._free[capacity].add(0)
        self._taken: dict[int, int] = {}
        self._resting: dict[int, list[int]] = {size: [] for size in self._sizes()}

    @property
    def taken(self) -> int:
        """Bytes of the blocks that are taken."""
        return sum(self._taken.values())

    def size(self, offset: int) -> int:
        """Bytes of the block that was taken at `offset`."""
        return self._taken[offset]

    def take(self, size: int) -> int | None:
        """The offset of a block of at least `size` bytes; None where none is free."""
        wanted = max(self._smallest, 1 << (size - 1).bit_length() if size else 0)
        if wanted > self._capacity:
            return None
        if resting := self._resting[wanted]:
            offset = resting.pop()
            self._taken[offset] = wanted
            return offset
        taken = self._halve(wanted)
        if taken is None:
            self._join_all()
            taken = self._halve(wanted)
        return taken

    def give_back(self, offset: int) -> None:
        """The block at `offset` is free. KeyError for one that was not taken."""
        block = self._taken.pop(offset)
        resting = self._resting[block]
        if len(resting) < RESTING:
            resting.append(offset)
        else:
            self._join(offset, block)

    def _halve(self, wanted: int) -> int | None:
        block = next((at for at in self._sizes() if at >= wanted and self._free[at]), None)
        if block is None:
            return None
        offset = self._free[block].pop()
        while block > wanted:
            block //= 2
            self._free[block].add(offset + block)
        self._taken[offset] = block
        return offset

    def _join_all(self) -> None:
        for block, offsets in self._resting.items():
            while offsets:
                self._join(offsets.pop(), block)

    def _join(self, offset: int, block: int) -> None:
        while block < self._capacity:
            buddy = offset ^ block
            if buddy not in self._free[block]:
                break
            self._free[block].remove(buddy)
            offset = min(offset, buddy)
            block *= 2
        self._free[block].add(offset)

    def _sizes(self) -> Iterator[int]:
        size = self._smallest
        while size <= self._capacity:
            yield size
            size *= 2
