"""Puts instances on the processor of the loop while they and it take turns, and takes them off again.

They do where runs are brief, and where a longer run is all that there is to do: those of one model, for one client at a
time. Whatever comes beside such a run ends that at once. For the rest the policy decides; this module looks up to ten
times a second while there are such runs, and not at all while there are none.
Threads and processes inherit the place of whoever starts them: nothing is shared while an instance is opened, and what
is found on the shared processor without having been put there is let go within a second.
"""

import logging
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

from trivium.core.workers.affinity_policy import (
    BRIEF,
    LONGEST,
    LONGEST_PAUSE,
    QUIET_SECONDS,
    Idleness,
    View,
    decide,
)
from trivium.core.workers.processors import Place, Processors
from trivium.types.interfaces import Clock, Timer

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
ALONE_LOOK_SECONDS = 0.5
"""Between two runs of one that shares alone: a look then finds nothing in the caches, and costs ten times as much."""

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
        self._alone: Sharer | None = None  # with longer runs, each of which was all that there was to do
        self._was_alone: Sharer | None = None  # likewise, between the two looks before
        self._beside_at = -QUIET_SECONDS  # when there was last something else than such runs
        self._run_seconds = 0.0  # of its runs since the last look
        self._best_run = 0.0  # the shortest mean of those since before it shared; 0 where it does not
        self._runs = self._openings = 0
        self._looked_at = self._measured_at = 0.0
        self._ticks: dict[int, tuple[int, int]] = {}
        self._until = self._pause = 0.0

    def share(self, clock: Clock, processors: Processors) -> None:
        """From now on; the thread that calls is the loop's."""
        self._clock = clock
        self._processors = processors
        self._loop_thread = threading.get_native_id()

    def ran(self, who: Sharer, mean_run: float, is_last: bool) -> None:
        """Runs of these instances have ended, of so many seconds in the mean; `is_last`: they have no more to do."""
        if self._clock is None:
            return
        if mean_run < BRIEF:
            self._brief.add(who)
            if self._best_run:
                self.beside()
        elif is_last and mean_run < LONGEST and (self._alone is None or self._alone is who):
            self._alone = who
            self._run_seconds += mean_run
        else:
            if self._alone is not None or self._best_run:  # else nobody needs to know
                self.beside()
            return
        self._runs += 1
        if self._timer is None:
            self._looked_at = self._clock.now()
            self._arm(self._clock, LOOK_SECONDS)

    def beside(self) -> None:
        """There is something else to do than runs that are alone."""
        if self._clock is not None:
            self._beside_at = self._clock.now()
            if self._best_run:
                self._part()

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
        self._alone = self._was_alone = None
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, clock: Clock, seconds: float) -> None:
        self._timer = clock.call_at(clock.now() + seconds, partial(self._look, clock))

    def _look(self, clock: Clock) -> None:
        now = clock.now()
        self._timer = None
        runs, self._runs = self._runs, 0
        rate = runs / max(now - self._looked_at, LOOK_SECONDS)
        self._looked_at = now
        sharers, is_alone = self._sharers(now)
        seconds, self._run_seconds = self._run_seconds, 0.0
        mean_run = seconds / max(runs, 1)
        try:
            idleness, slowdown = self._measure(now, mean_run)
            view = View(rate, self._openings > 0, idleness, slowdown, self._until, self._pause)
            decision = decide(view, now)
            self._until, self._pause = decision.until, decision.pause
            threads = {thread for one in sharers for thread in one.threads()}
            if decision.is_shared and threads:
                self._gather(threads, now)
                self._best_run = (
                    min(self._best_run or mean_run, mean_run) if is_alone and self._placed else 0.0
                )
            else:
                self._part()
        except OSError as error:  # it may not, or not there
            log.info("instances cannot share the loop's processor: %s", error)
            self._part()
            self._until = now + LONGEST_PAUSE
        if runs or self._placed:
            self._arm(clock, ALONE_LOOK_SECONDS if self._best_run else LOOK_SECONDS)

    def _sharers(self, now: float) -> tuple[Set[Sharer], bool]:
        """Who could share since the last look, and whether it is one whose longer runs were alone."""
        brief, self._brief = self._brief, set()
        before, alone = self._was_alone, self._alone
        self._was_alone, self._alone = alone, None
        if brief or alone is None or alone is not before or now - self._beside_at < QUIET_SECONDS:
            return brief, False
        return {alone}, True

    def _measure(self, now: float, mean_run: float) -> tuple[Idleness | None, float | None]:
        """What sharing does, once a second while it lasts."""
        if not self._placed or now - self._measured_at < SECOND:
            return None, None
        self._let_go()
        if self._best_run:
            self._measured_at = now
            return None, mean_run / self._best_run
        return self._idleness(now), None

    def _idleness(self, now: float) -> Idleness:
        """How idle processors were since it was measured last."""
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
        self._best_run = 0.0
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
