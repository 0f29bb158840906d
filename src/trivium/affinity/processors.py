"""Places threads on processors, and measures how busy those are: the edge to the scheduler of Linux.

Sources: sched(7), sched_setaffinity(2), sched_setscheduler(2), proc(5).
"""

import os
from collections.abc import Set
from typing import NamedTuple

from trivium_worker.wire import system

_PROCESSOR = 36
"""Of the columns of a thread's stat behind its name: the processor that it runs on, number 39 in proc(5)."""

_IDLE = (3, 4)
"""Of the columns behind "cpu" in /proc/stat: idle, and waiting for input and output (proc(5))."""


class ThreadPlace(NamedTuple):
    """The processors that a thread may use, and its scheduling policy."""

    processors: Set[int]
    policy: int

    def behind(self, processor: int) -> "ThreadPlace":
        """Return the place of this processor alone: ordinary threads become SCHED_BATCH, woken without an
        interruption.
        """
        return ThreadPlace(frozenset({processor}), system.background(self.policy))

    def anywhere(self) -> "ThreadPlace":
        """Return the place of all processors that the process may use."""
        return ThreadPlace(frozenset(range(os.cpu_count() or 1)), self.policy)


class Processors:
    """The machine's."""

    def here(self) -> int:
        """The one that the calling thread runs on."""
        return int(_read("/proc/thread-self/stat").rpartition(b")")[2].split()[_PROCESSOR])

    def place(self, thread: int) -> ThreadPlace | None:
        """Return the place of a thread by its native id; None where it is gone."""
        try:
            return ThreadPlace(system.processors(thread), system.scheduler(thread))
        except ProcessLookupError:
            return None

    def put(self, thread: int, place: ThreadPlace) -> None:
        """Nothing happens where it is gone. Raises OSError where the system does not let it."""
        try:
            system.stay_on(thread, set(place.processors))
            if place.policy != system.scheduler(thread):
                system.schedule(thread, place.policy)
        except ProcessLookupError:
            return

    def threads(self, thread: int) -> list[int]:
        """All of the process that a thread belongs to; none where it is gone."""
        try:
            return [int(name) for name in os.listdir(f"/proc/{thread}/task")]
        except OSError:
            return []

    def children(self, thread: int) -> list[int]:
        """Processes that the process of a thread has started; none where it is gone, or the system does not tell."""
        found: list[int] = []
        for other in self.threads(thread):
            try:
                found += map(int, _read(f"/proc/{thread}/task/{other}/children").split())
            except OSError:
                continue
        return found

    def ticks(self) -> dict[int, tuple[int, int]]:
        """Busy ones and all of each processor, since the machine came up."""
        return ticks_by_processor(_read("/proc/stat").decode())


def ticks_by_processor(stat: str) -> dict[int, tuple[int, int]]:
    """Busy ticks and all of each processor by its number, from the text of /proc/stat."""
    lines = [line.split() for line in stat.splitlines() if line.startswith("cpu") and line[3].isdigit()]
    found = {}
    for name, *columns in lines:
        ticks = [int(column) for column in columns[:8]]
        found[int(name[3:])] = sum(ticks) - sum(ticks[column] for column in _IDLE), sum(ticks)
    return found


def _read(path: str) -> bytes:
    """Read between two requests, when nothing is in the caches: a `Path` and text cost five times as much."""
    with open(path, "rb", buffering=0) as file:
        return file.read()
