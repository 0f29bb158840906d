"""Lends pooled buffers, which large request bodies land in.

The kernel gives a fresh buffer its pages as bytes land in them, so a body that is declared and not sent costs nothing.
A fresh buffer costs page faults for every page of every request; a kept one costs them once.
"""

import mmap
from collections import OrderedDict

from trivium.types.buffers import Lease

SMALLEST = 1 << 17


class BufferPool:
    """Buffers of 128 KiB and more, in whole pages. Used on the loop only."""

    def __init__(self, kept_bytes: int) -> None:
        """`kept_bytes` at most are kept idle; what has waited longest is freed beyond that."""
        self._idle: OrderedDict[int, list[mmap.mmap]] = OrderedDict()
        self._kept_bytes = kept_bytes
        self.idle_bytes = 0
        """Bytes of the buffers that are kept and lent to nobody."""
        self.lent = 0

    def lend(self, size: int) -> Lease:
        """A lease on a writable view of exactly `size` bytes, with whatever they held before."""
        capacity = max(SMALLEST, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        idle = self._idle.get(capacity)
        if idle:
            buffer = idle.pop()
            self.idle_bytes -= capacity
        else:
            buffer = mmap.mmap(-1, capacity, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.lent += 1
        return Lease(memoryview(buffer)[:size], self._take_back)

    def _take_back(self, lease: Lease) -> None:
        self.lent -= 1
        buffer = lease.view.obj
        assert isinstance(buffer, mmap.mmap)
        size = len(buffer)
        if size > self._kept_bytes:
            return
        self._idle.setdefault(size, []).append(buffer)
        self._idle.move_to_end(size)
        self.idle_bytes += size
        while self.idle_bytes > self._kept_bytes:
            self._free_oldest()

    def _free_oldest(self) -> None:
        """Drop a buffer of the size that nobody has given back for longest; its pages go with its last view."""
        size = next(iter(self._idle))
        kept = self._idle[size]
        if kept:
            kept.pop()
            self.idle_bytes -= size
        if not kept:
            del self._idle[size]
