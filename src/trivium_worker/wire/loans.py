"""Blocks of the arena that requests lie in: user code sees them in place, and may keep them.

Once a request is answered, its block is the server's to lend anew. Where user code still has something of it then - the
request, a tensor, an array or a slice of one -, the server is told so before the answer, and told again when the last
of that is gone. Every view of a block holds its root, a slice of the arena, so that one weak reference tells.
"""

import itertools
import struct
from collections import deque
from collections.abc import Iterable
from pickle import PickleBuffer
from typing import Any
from weakref import ref

from trivium_worker.wire import frames

Kept = list[tuple[int, Any]]
"""Blocks by the worker's own numbers, with their roots."""


class RetainedBlocks:
    """Blocks that one worker keeps. `out` are weak references to the roots of blocks, by item; `freed` numbers of
    blocks that were kept and are not any more. Any thread may use it; a root can go in any thread and at any moment.
    """

    def __init__(self, arena: memoryview) -> None:
        self._arena = arena
        self._numbers = itertools.count(1)
        self._watched: dict[int, Any] = {}
        self._pinned: list[Any] = []
        self.out: dict[int, Any] = {}
        self.freed: deque[int] = deque()

    def view(self, item: int, at: int, size: int) -> memoryview:
        """An item's data, writable: nobody else reads it before it is given back."""
        root = self._arena[at : at + size]
        self.out[item] = ref(root)
        # A plain view of the root would hold the arena, and not the root. Nothing is pickled here.
        return memoryview(PickleBuffer(root))

    def ended(self, items: Iterable[int], pieces: list[Any], at: int, kept: Kept) -> int:
        """Items are about to be answered: insert at `at` what the server has to know before, and add to `kept` what
        goes to `written` behind the write. The bytes that were inserted.
        """
        size = 0
        for item in items:
            watch = self.out.pop(item, None)
            root = watch() if watch is not None else None
            if root is not None:
                number = next(self._numbers)
                pieces.insert(at, frames.frame(frames.KEPT, frames.KEPT_BODY.pack(item, number)))
                size += len(pieces[at])
                kept.append((number, root))
        return size

    def written(self, kept: Kept) -> None:
        """Note that the server knows of a block: from now on it may learn as well that the block is not kept any
        more.
        """
        while kept:
            number, root = kept.pop()

            def gone(watch: Any, number: int = number) -> None:
                del self._watched[number]
                self.freed.append(number)  # whoever drops the last of it may be writing just now

            self._watched[number] = ref(root, gone)
            del root

    def pin(self) -> None:
        """This process is about to be forked by user code: what a child has nobody can know, so that blocks in use now
        are kept until the worker ends.
        """
        roots = [watch() for watch in [*self.out.values(), *self._watched.values()]]
        self._pinned += [root for root in roots if root is not None]

    def take_freed(self) -> bytes:
        """The frame that tells what is not kept any more."""
        numbers = [self.freed.popleft() for _ in range(len(self.freed))]
        return frames.frame(frames.FREED, struct.pack(f"<{len(numbers)}Q", *numbers))
