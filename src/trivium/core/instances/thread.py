"""An instance that runs in a thread of its own, for engines that release the interpreter's lock.

The thread sleeps only when it has nothing in hand, and is woken only when it sleeps: hand-overs are cheap,
wake-ups are not. It lets go of a batch before it sleeps, since the batch holds the buffers of its requests.
"""

import logging
import threading
from collections import deque
from collections.abc import Collection
from time import monotonic

from trivium.core.clock import CallLast
from trivium.core.execution import execute, without
from trivium.types.interfaces import Check, Port, Runner, SupportsInterrupt
from trivium.types.running import Batch, Credit, Dead, Event, ItemId

log = logging.getLogger(__name__)


COALESCE = 0.0001
"""Seconds that an outcome may wait for those of the next batches in hand before it is pushed."""


CREDIT = Credit(1)


class ThreadInstance:
    """Owns a runner and its thread. `start`, `cancel` and `close` are called on the loop."""

    check: Check | None = None

    def __init__(self, runner: Runner, port: Port, name: str, call_last: CallLast) -> None:
        self._runner = runner
        self._port = port
        self._call_last = call_last
        self._todo: deque[Batch | None] = deque()
        self._cancelled: set[ItemId] = set()
        self._run: tuple[float, list[ItemId]] | None = None  # that the thread has in hand, and since when
        self._is_abandoned = False
        self.sleeps = False
        """Does the thread wait for work?"""
        self._gate = threading.Lock()
        self._gate.acquire()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        self.threads = (self._thread.native_id or 0,)
        self.in_flight = 0

    def attach(self, port: Port) -> None:
        """See `Instance`."""
        self._port = port

    def start(self, batch: Batch) -> None:
        """Hand it over. A sleeping thread is woken once the loop has handed over all that it has now: sooner,
        the two would only compete for the interpreter.
        """
        self._todo.append(batch)
        if self.sleeps:
            self.sleeps = False
            self._call_last(self._wake)

    def cancel(self, item: ItemId) -> None:
        """It is dropped if its batch has not begun; a running execution is not interrupted."""
        self._cancelled.add(item)

    def hold(self, item: ItemId) -> None:
        """A runner answers each item once: there is nothing to hold back."""

    def resume(self, item: ItemId) -> None:
        """It was not held."""

    @property
    def running_since(self) -> float | None:
        """See `Instance`."""
        run = self._run
        return None if run is None else run[0]

    def interrupt(self, why: str) -> Collection[ItemId]:
        """Ask the runner, where it can be asked. A thread cannot be made to end, so the caller ends the items."""
        run = self._run
        if run is None:
            return ()
        if isinstance(self._runner, SupportsInterrupt):
            self._runner.interrupt()
        return run[1]

    def abandon(self, why: str) -> None:
        """See `Instance`. The thread goes on to the end of its run, if that comes, and then frees the model."""
        self._is_abandoned = True
        self._port.deliver((Dead(why),))
        self.close()  # it may have ended at this very moment, and sleep

    def close(self) -> None:
        """End after what was handed over."""
        self._todo.append(None)
        self._wake()

    def _wake(self) -> None:
        # The gate may be open already: the thread then has not slept since the last wake-up, and will not
        # before it has looked at the deque again.
        if self._gate.locked():
            self._gate.release()

    def _work(self) -> None:
        events: list[Event] = []
        done = 0  # batches whose credits wait
        first = last = 0.0
        while True:
            if not self._todo:
                self._sleep()
                continue
            batch = self._todo.popleft()
            if batch is None:
                break
            if self._cancelled:
                batch, ends = without(batch, self._cancelled)
                self._cancelled.difference_update(end.item for end in ends)
                events += ends
            if batch.items:
                self._run = monotonic(), batch.items
                run = execute(self._runner, batch)
                first = first or run.began
                last = run.ended
                events.append(run)
                del run
                self._run = None
            if self._is_abandoned:
                break
            done += 1
            del batch
            if not self._todo or last - first > COALESCE:
                events.append(CREDIT if done == 1 else Credit(done))
                self._port.push(events)
                events = []
                done = 0
                first = last = 0.0
        if done and not self._is_abandoned:  # the end came while they waited for those of the next batches
            events.append(Credit(done))
            self._port.push(events)
        self._close_runner()

    def _sleep(self) -> None:
        self.sleeps = True
        if not self._todo:
            # Nothing is in hand, so what is still listed had ended before it was cancelled. To lose
            # one that comes at this very moment only means that it is computed for nobody.
            self._cancelled.clear()
            self._gate.acquire()
        self.sleeps = False

    def _close_runner(self) -> None:
        try:
            self._runner.close()
        except Exception:
            log.exception("closing a model failed in thread %s", self._thread.name)
