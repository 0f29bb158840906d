"""Puts instances whose runs are brief on the processor of the loop, and takes them off again.

The policy decides; this module looks ten times a second while there are brief runs, and not at all otherwise.
Threads and processes inherit the place of whoever starts them: nothing is shared while an instance is opened, and what
is found on the shared processor without having been put there is let go within a second.
"""

import logging
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

from trivium.core.workers.affinity_policy import BRIEF, LONGEST_PAUSE, Idleness, View, decide
from trivium.core.workers.processors import Place, Processors
from trivium.types.interfaces import Clock, Timer

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
SECOND = 1.0
"""Over which it is measured what sharing does: the kernel counts idleness in hundredths."""


class Sharer(Protocol):
    """Something with instances that may share."""

    def threads(self) -> Set[int]:
        """Native ids of those that run items."""
        ...


class Affinity:
    """One per server, used on its loop only. Does nothing until it may `share`."""

    def __init__(self) -> None:
        self._clock: Clock | None = None
        self._processors = Processors()
        self._loop_thread = 0
        self._home = Place(frozenset(), 0)  # the loop's own place, while it shares
        self._shared = -1
        self._placed: dict[int, Place] = {}  # the places of the threads that share, before they did
        self._timer: Timer | None = None
        self._brief: set[Sharer] = set()
        self._runs = self._openings = 0
        self._looked_at = self._measured_at = 0.0
        self._ticks: dict[int, tuple[int, int]] = {}
        self._until = self._pause = 0.0

    def share(self, clock: Clock, processors: Processors) -> None:
        """From now on; the thread that calls is the loop's."""
        self._clock = clock
        self._processors = processors
        self._loop_thread = threading.get_native_id()

    def ran(self, who: Sharer, mean_run: float) -> None:
        """Runs of these instances have ended, of so many seconds in the mean."""
        if self._clock is None or mean_run >= BRIEF:
            return
        self._brief.add(who)
        self._runs += 1
        if self._timer is None:
            self._looked_at = self._clock.now()
            self._arm(self._clock)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Nothing is shared meanwhile."""
        self._openings += 1
        self._part()
        try:
            yield
        finally:
            self._openings -= 1

    def close(self) -> None:
        """Everything is as it was; for good."""
        self._part()
        self._clock = None
        self._brief.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, clock: Clock) -> None:
        self._timer = clock.call_at(clock.now() + LOOK_SECONDS, partial(self._look, clock))

    def _look(self, clock: Clock) -> None:
        now = clock.now()
        self._timer = None
        runs, self._runs = self._runs, 0
        rate = runs / max(now - self._looked_at, LOOK_SECONDS)
        self._looked_at = now
        sharers, self._brief = self._brief, set()
        try:
            view = View(rate, self._openings > 0, self._measure(now), self._until, self._pause)
            decision = decide(view, now)
            self._until, self._pause = decision.until, decision.pause
            threads = {thread for one in sharers for thread in one.threads()}
            if decision.is_shared and threads:
                self._gather(threads, now)
            else:
                self._part()
        except OSError as error:  # it may not, or not there
            log.info("instances cannot share the loop's processor: %s", error)
            self._part()
            self._until = now + LONGEST_PAUSE
        if runs or self._placed:
            self._arm(clock)

    def _measure(self, now: float) -> Idleness | None:
        """How idle processors were in the last second of sharing; None before it is over."""
        if not self._placed or now - self._measured_at < SECOND:
            return None
        self._let_go()
        before, self._ticks, self._measured_at = self._ticks, self._processors.ticks(), now
        idle = {}
        for number in self._home.processors & self._ticks.keys() & before.keys():
            busy, every = (a - b for a, b in zip(self._ticks[number], before[number], strict=True))
            idle[number] = 1 - busy / every if every > 0 else 0.0
        return Idleness(idle.pop(self._shared, 0.0), max(idle.values(), default=0.0))

    def _gather(self, threads: Set[int], now: float) -> None:
        """These share the loop's processor, and no others."""
        processors = self._processors
        if not self._placed:
            home = processors.place(self._loop_thread)
            if home is None or len(home.processors) < 2:
                return
            self._home, self._shared = home, processors.here()
            self._ticks, self._measured_at = processors.ticks(), now
            self._move(self._loop_thread, home, Place({self._shared}, home.policy))
        for thread in self._placed.keys() - threads - {self._loop_thread}:
            self._put_back(thread, self._placed.pop(thread))
        for thread in threads - self._placed.keys():
            place = processors.place(thread)
            if place is not None and place.processors == self._home.processors:  # else somebody has placed it
                self._move(thread, place, place.behind(self._shared))

    def _move(self, thread: int, before: Place, place: Place) -> None:
        self._placed[thread] = before
        self._processors.put(thread, place)

    def _part(self) -> None:
        if self._placed:
            self._let_go()
        while self._placed:
            self._put_back(*self._placed.popitem())

    def _put_back(self, thread: int, place: Place) -> None:
        now = self._processors.place(thread)
        if now is None:
            return
        if now.processors != {self._shared}:  # somebody has moved it meanwhile
            place = Place(now.processors, place.policy)
        try:
            self._processors.put(thread, place)
        except OSError:  # what this process may use has changed since: let it use all of that
            with suppress(OSError):  # it was never moved, since nobody may move it
                self._processors.put(thread, place.anywhere())

    def _let_go(self) -> None:
        """Threads and processes that those who share have started get the loop's own place."""
        threads, children = self._processors.threads, self._processors.children
        own = set(threads(self._loop_thread))
        found = own.union(*map(threads, self._placed))
        started = [child for thread in self._placed.keys() - own for child in children(thread)]
        for thread in found.union(*map(threads, started)) - self._placed.keys():
            place = self._processors.place(thread)
            if place is not None and place.processors == {self._shared}:
                self._put_back(thread, self._home)
