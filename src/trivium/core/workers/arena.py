"""Memory that a model's workers share with the server: large request bodies are received into it in place.

Anonymous, so nothing is left behind whatever dies. User code gets its tensors in place, to write into and to keep: a
block belongs to one request, and to nobody else until its worker has done with it. Lending never blocks: where there is
no room, the caller takes other memory, and the bytes go through the socket.

Blocks are buddies, powers of two that are halved and joined again, so that whatever sizes come and go, what is free
joins up. A block that comes back rests for a while as it is, since the next one is mostly wanted in the same size.
The kernel gives pages to what has been used only, and takes back those of blocks that rest no more.
"""

import mmap
import os
from collections.abc import Callable, Iterator

import numpy as np

from trivium.types.buffers import Lease
from trivium.types.payload import Tensors
from trivium_worker.wire import system

RESTING = 4
"""Blocks of one size that rest at most, so that joining them all up at once takes no time that anybody would notice."""

RESTING_BYTES = 2**25
"""... and bytes of all that rest: they keep their pages."""


def _keep(offset: int, size: int) -> None:
    """Nothing is to be done about a block that is free."""


class BuddyAllocator:
    """Offsets of blocks of `smallest` to `capacity` bytes, both powers of two."""

    def __init__(self, capacity: int, smallest: int, on_free: Callable[[int, int], None] = _keep) -> None:
        """`on_free` is called with where a block begins, and its bytes, that rests no more."""
        assert capacity & (capacity - 1) == 0
        assert smallest & (smallest - 1) == 0
        self._capacity = capacity
        self._smallest = smallest
        self._free: dict[int, set[int]] = {size: set() for size in self._sizes()}
        self._free[capacity].add(0)
        self._taken: dict[int, int] = {}
        self._resting: dict[int, list[int]] = {size: [] for size in self._sizes()}
        self._resting_bytes = 0
        self._on_free = on_free

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
            self._resting_bytes -= wanted
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
        if len(resting) < RESTING and self._resting_bytes + block <= RESTING_BYTES:
            resting.append(offset)
            self._resting_bytes += block
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
        self._resting_bytes = 0
        for block, offsets in self._resting.items():
            while offsets:
                self._join(offsets.pop(), block)

    def _join(self, offset: int, block: int) -> None:
        self._on_free(offset, block)
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


CAPACITY = 2**28
"""Bytes per model version; the kernel gives pages only to what has been used."""

SMALLEST = 2**13
"""Bytes from which shared memory is cheaper than the socket (`spec/hotpath.md`: between 2 and 8 KiB)."""


_LEAST_FREED = 2**20
"""Bytes of a block whose pages are worth a call of the kernel."""

ALIGNED = 64
"""Bytes: a line of the cache, and the most that instructions for vectors like to have."""


class ArenaLease(Lease):
    """A lease of the arena's memory, `offset` bytes from its beginning. It may be lent again, as it is."""

    __slots__ = ("arena", "block", "lead", "offset", "size")

    def __init__(self, arena: "Arena", block: int, offset: int, size: int, lead: int) -> None:
        super().__init__(arena.memory[offset : offset + size], arena.take_back)
        self.arena = arena
        self.block = block
        self.offset = offset
        self.size = size
        self.lead = lead

    def again(self) -> "ArenaLease":
        """Held once, as a new one is."""
        assert self._holders == 0, "a lease was lent while somebody held it"
        self._holders = 1
        return self


class Arena:
    """Used on the loop only. `descriptor` is for workers to inherit."""

    def __init__(self, name: str, capacity: int = CAPACITY) -> None:
        self.descriptor = system.anonymous_memory(f"trivium-{name}", capacity)
        self._mapped = mmap.mmap(self.descriptor, capacity)
        self.memory = memoryview(self._mapped)
        self._begin = address(self.memory)
        self._buddies = BuddyAllocator(capacity, SMALLEST, self._free_pages)
        self._spare: ArenaLease | None = None  # the last that came back: the next one is mostly of that size

    @property
    def lent(self) -> int:
        """Bytes of the blocks that are lent."""
        return self._buddies.taken - (0 if self._spare is None else self._buddies.size(self._spare.block))

    def lend(self, size: int, lead: int = 0) -> ArenaLease | None:
        """Lend `size` bytes; what follows the first `lead` of them is aligned; None where there is no room."""
        spare = self._spare
        if spare is not None and spare.size == size and spare.lead == lead:
            self._spare = None
            return spare.again()
        if not self.memory:
            return None
        before = -lead % ALIGNED
        block = self._buddies.take(size + before)
        if block is None and spare is not None:
            self._forget_spare()
            block = self._buddies.take(size + before)
        return None if block is None else ArenaLease(self, block, block + before, size, lead)

    def take_back(self, lease: Lease) -> None:
        """The last holder of one of its leases has released it."""
        assert isinstance(lease, ArenaLease)
        if self._spare is None and self.memory:
            self._spare = lease
        else:
            self._buddies.give_back(lease.block)

    def _free_pages(self, offset: int, size: int) -> None:
        """Nobody has this block any more: its pages are the kernel's again, here and in the workers."""
        if size >= _LEAST_FREED and self.memory:
            system.free_pages(self._mapped, offset, size)

    def _forget_spare(self) -> None:
        if self._spare is not None:
            self._buddies.give_back(self._spare.block)
            self._spare = None

    def offset_of(self, data: bytes | memoryview) -> int:
        """Return how far from the arena's beginning `data`, which lies in it, begins."""
        return address(data) - self._begin

    def place_of(self, payload: Tensors) -> int | None:
        """Return how far from the beginning the only tensor begins, if it lies, in one piece, in its payload's
        lease.
        """
        lease = payload.lease
        if type(lease) is not ArenaLease or lease.arena is not self:
            return None
        if payload.at is not None:
            return lease.offset + payload.at
        array = payload.items[0].array
        if not array.flags.c_contiguous:
            return None
        begin: int = array.__array_interface__["data"][0] - self._begin
        end = lease.offset + len(lease.view)
        return begin if lease.offset <= begin and begin + array.nbytes <= end else None

    def close(self) -> None:
        """No worker can inherit it any more; the memory goes with the last lease of it."""
        os.close(self.descriptor)
        self.memory = memoryview(b"")
        del self._mapped
        self._forget_spare()


def address(data: bytes | memoryview) -> int:
    """Return where a buffer begins, in this process."""
    begin: int = np.frombuffer(data, np.uint8, 1).__array_interface__["data"][0]
    return begin
