"""Puts instances whose runs are brief on the processor of the loop, and takes them off again.

The policy decides; this module looks ten times a second while there are brief runs, and not at all otherwise.
Threads and processes inherit the place of whoever starts them: nothing is shared while an instance is opened, and what
is found on the shared processor without having been put there is let go within a second.
"""

import logging
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress

from trivium.affinity.policy import BRIEF, LONGEST_PAUSE, Idleness, View, decide
from trivium.affinity.processors import Processors, ThreadPlace
from trivium.types.interfaces import Clock, RunSource, Timer

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
SECOND = 1.0
"""Over which it is measured what sharing does: the kernel counts idleness in hundredths."""


class AffinityObserver:
    """Implements `RunObserver`. One per server, made by the thread that runs its loop."""

    def __init__(self, clock: Clock, processors: Processors) -> None:
        self._clock = clock
        self._processors = processors
        self._loop_thread = threading.get_native_id()
        self._home = ThreadPlace(frozenset(), 0)  # the loop's own place, while it shares
        self._shared = -1
        self._placed: dict[int, ThreadPlace] = {}  # the places of the threads that share, before they did
        self._timer: Timer | None = None
        self._brief: set[RunSource] = set()
        self._runs = self._openings = 0
        self._looked_at = self._measured_at = 0.0
        self._ticks: dict[int, tuple[int, int]] = {}
        self._until = self._pause = 0.0
        self._is_closed = False

    def ran(self, source: RunSource, mean_run: float) -> None:
        """Count them, if they are brief."""
        if mean_run >= BRIEF or self._is_closed:
            return
        self._brief.add(source)
        self._runs += 1
        if self._timer is None:
            self._looked_at = self._clock.now()
            self._arm()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Share nothing meanwhile: a thread or process is born with the place of whoever starts it."""
        self._openings += 1
        self._part()
        try:
            yield
        finally:
            self._openings -= 1

    def close(self) -> None:
        """Put everything back where it was, for good."""
        self._part()
        self._is_closed = True
        self._brief.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        self._timer = self._clock.call_at(self._clock.now() + LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now = self._clock.now()
        self._timer = None
        runs, self._runs = self._runs, 0
        rate = runs / max(now - self._looked_at, LOOK_SECONDS)
        self._looked_at = now
        sources, self._brief = self._brief, set()
        try:
            view = View(rate, self._openings > 0, self._measure(now), self._until, self._pause)
            decision = decide(view, now)
            self._until, self._pause = decision.until, decision.pause
            threads = {thread for source in sources for thread in source.threads()}
            if decision.is_shared and threads:
                self._gather(threads, now)
            else:
                self._part()
        except OSError as error:  # it may not, or not there
            log.info("instances cannot share the loop's processor: %s", error)
            self._part()
            self._until = now + LONGEST_PAUSE
        if runs or self._placed:
            self._arm()

    def _measure(self, now: float) -> Idleness | None:
        """Return how idle processors were in the last second of sharing; None before it is over."""
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
            self._move(self._loop_thread, home, ThreadPlace({self._shared}, home.policy))
        for thread in self._placed.keys() - threads - {self._loop_thread}:
            self._put_back(thread, self._placed.pop(thread))
        for thread in threads - self._placed.keys():
            place = processors.place(thread)
            if place is not None and place.processors == self._home.processors:  # else somebody has placed it
                self._move(thread, place, place.behind(self._shared))

    def _move(self, thread: int, before: ThreadPlace, place: ThreadPlace) -> None:
        self._placed[thread] = before
        self._processors.put(thread, place)

    def _part(self) -> None:
        if self._placed:
            self._let_go()
        while self._placed:
            self._put_back(*self._placed.popitem())

    def _put_back(self, thread: int, place: ThreadPlace) -> None:
        now = self._processors.place(thread)
        if now is None:
            return
        if now.processors != {self._shared}:  # somebody has moved it meanwhile
            place = ThreadPlace(now.processors, place.policy)
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
