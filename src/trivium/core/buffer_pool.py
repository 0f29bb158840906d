"""Lends pooled buffers in a few sizes, which large request bodies land in.

A fresh buffer costs page faults for every page of every request; a kept one costs them once.
"""

from trivium.types.buffers import Lease

SMALLEST = 1 << 17
KEPT_BYTES = 1 << 28
"""Bytes that the pool keeps idle at most; beyond that a buffer is freed when it comes back."""


class BufferPool:
    """Buffers of 128 KiB and its doublings. Used on the loop only."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._idle: dict[int, list[bytearray]] = {}
        self._room = kept_bytes
        self.lent = 0

    @property
    def idle_bytes(self) -> int:
        """Bytes of the buffers that are kept and lent to nobody."""
        return sum(len(buffer) for kept in self._idle.values() for buffer in kept)

    def lend(self, size: int) -> Lease:
        """A lease on a writable view of exactly `size` bytes, with whatever they held before."""
        capacity = max(SMALLEST, 1 << (size - 1).bit_length()) if size else SMALLEST
        idle = self._idle.get(capacity)
        if idle:
            buffer = idle.pop()
            self._room += capacity
        else:
            buffer = bytearray(capacity)
        self.lent += 1
        return Lease(memoryview(buffer)[:size], self._take_back)

    def _take_back(self, lease: Lease) -> None:
        self.lent -= 1
        buffer = lease.view.obj
        assert isinstance(buffer, bytearray)
        if len(buffer) <= self._room:
            self._room -= len(buffer)
            self._idle.setdefault(len(buffer), []).append(buffer)
