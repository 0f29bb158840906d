"""Keeps each stop of the garbage collector short, however much a server holds.

Decides when a full collection comes, and what it looks at: a collection looks at every object that is not frozen, which
takes a fifth of a second for a million (connections, kept answers, requests that wait). What survived a long one is
alive, and is frozen: the next one looks at what is newer. Once few are left of what was frozen, all is looked at again.
"""

import gc
import time
from collections.abc import Callable
from typing import Any, Protocol

THRESHOLDS = 10_000, 2, 2
"""A request leaves no cycles behind; looking for them every 700 allocations costs 2 % (measured). A full collection
comes when some 90,000 objects are new, which it goes through in 30 ms.
"""

LONG_SECONDS = 0.02
"""Of the processor; behind a full collection that took longer, what is left is frozen."""

FEW_OBJECTS = 100_000
"""So few frozen ones, what was loaded among them, can be looked at again together with what is new."""


class GarbageCollector(Protocol):
    """The module `gc`."""

    callbacks: list[Any]

    def set_threshold(self, threshold0: int, threshold1: int = ..., threshold2: int = ..., /) -> None:
        """See `gc.set_threshold`."""
        ...

    def freeze(self) -> None:
        """See `gc.freeze`."""
        ...

    def unfreeze(self) -> None:
        """See `gc.unfreeze`."""
        ...

    def get_freeze_count(self) -> int:
        """See `gc.get_freeze_count`."""
        ...


class ShortCollections:
    """Rules the collector of this process from `start` on. `clock` gives seconds of the calling thread's processor."""

    def __init__(
        self, collector: GarbageCollector = gc, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._collector = collector
        self._clock = clock
        self._began = 0.0
        self._has_frozen = False  # more than what was loaded
        self._rules = False

    def start(self) -> None:
        """Set the thresholds, and listen to each collection."""
        self._rules = True
        self._collector.set_threshold(*THRESHOLDS)
        self._collector.callbacks.append(self._hear)

    def settle(self) -> None:
        """Keep the collector from what has been loaded, since that stays. Called once everything is loaded; without
        effect in a program that has not given its collector away.
        """
        if self._rules:
            self._collector.freeze()

    def _hear(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            if self._has_frozen and self._collector.get_freeze_count() < FEW_OBJECTS:
                self._collector.unfreeze()
                self._has_frozen = False
            self._began = self._clock()
        elif self._clock() - self._began > LONG_SECONDS:
            self._collector.freeze()
            self._has_frozen = True


COLLECTIONS = ShortCollections()
"""This process has one collector."""
