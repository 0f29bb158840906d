"""Runs an adapter that works in steps: between two of them it looks at the socket once, without waiting.

A request joins before a step and gives its credit back with its final part. All parts of a step leave in one write,
with what the step counted; what a receiver has no room for is kept, and leaves joined with what follows.
"""

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

from trivium_worker.runtime.adapter import Adapter, Step
from trivium_worker.runtime.faults import ENDS_PROCESS, failure_of
from trivium_worker.runtime.parts import CANCELLED, Parts
from trivium_worker.wire import frames
from trivium_worker.wire.intake import FrameReader
from trivium_worker.wire.values import Failure, Item
from trivium_worker.wire.writer import Writer

LAG = 0.25
"""Seconds that the counts of a step may wait, where no part of an answer leaves: each write wakes the server."""

MOST_FAULTS = 3
"""Steps that may raise one after the other; then the worker ends."""


class Steps:
    """One per worker. `todo` and `items` are what has come and not been taken up, and what has not ended; `begun` notes
    the number of a batch before user code gets it, and `ended` is called behind each step.
    """

    def __init__(  # noqa: PLR0913 - what a runtime consists of
        self,
        adapter: Adapter,
        todo: "deque[Any]",
        items: dict[int, Item],
        parts: Parts,
        writer: Writer,
        intake: FrameReader,
        begun: Callable[[int], None],
        ended: Callable[[], None],
    ) -> None:
        self._adapter = adapter
        self._todo = todo
        self._items = items
        self._parts = parts
        self._writer = writer
        self._intake = intake
        self._note_begun = begun
        self._ended = ended
        intake.wake_by_pipe()
        self._active: dict[int, float] = {}
        parts.begun = self._active
        self._cancels: deque[int] = deque()
        self._told: list[bytes] = []
        self._written_at = 0.0
        self._wasted = 0
        self._faults = 0
        self._is_stopping = False

    def run(self) -> None:
        """Serve until the server has said stop and all has ended. What ends the process passes."""
        while True:
            self._intake.look()
            self._writer.gather()
            self._take_up()
            self._leave()
            can_compute = bool(self._active) and self._step()
            self._parts.release()
            if self._wasted and not self._active:
                self._tell(Step(0), monotonic())
            self._write(can_compute)
            self._ended()
            if self._is_stopping and not self._active:
                return
            if not can_compute:
                self._intake.wait()

    def cancel(self, number: int) -> None:
        """Nobody waits for the item any more; from the thread that reads."""
        self._cancels.append(number)
        self._intake.interrupt()

    def _write(self, goes_on: bool) -> None:
        """Write what this turn made. Where that is nothing but counts they may wait for those of further steps."""
        now = monotonic()
        if self._told and (self._writer.has_gathered or not goes_on or now - self._written_at > LAG):
            self._writer.send(*self._told)
            self._told.clear()
            self._written_at = now
        self._writer.flush()

    def _take_up(self) -> None:
        while self._todo:
            batch = self._todo.popleft()
            if batch is None:
                self._is_stopping = True
                return
            number, items = batch
            for item in items:
                if item.is_cancelled:
                    self._parts.send(item, CANCELLED, True, None)
                    continue
                self._note_begun(number)
                self._active[item.number] = monotonic()
                try:
                    self._adapter.add(item)
                except ENDS_PROCESS:
                    raise
                except BaseException as error:
                    self._parts.send(item, failure_of(error), True, None)

    def _leave(self) -> None:
        """Let those go that nobody waits for any more."""
        while self._cancels:
            number = self._cancels.popleft()
            item = self._items.get(number)
            if item is not None and number in self._active:
                self._wasted += self._adapter.abort(item)
                self._parts.send(item, CANCELLED, True, None)

    def _step(self) -> bool:
        """Compute a step; returns whether there was anything to compute."""
        self._intake.begin()
        began = monotonic()
        try:
            step = self._adapter.step()
        except ENDS_PROCESS:
            raise
        except BaseException as error:
            self._faults += 1
            if self._faults == MOST_FAULTS:
                raise
            self._failed(failure_of(error))
        else:
            if step is None:
                return False
            self._faults = 0
            self._tell(step, began)
        finally:
            self._intake.turn += 1
        return True

    def _failed(self, failure: Failure) -> None:
        for item in [self._items.get(number) for number in self._active.copy()]:
            if item is not None:  # else another thread has just ended it
                self._parts.send(item, failure, True, None)
        self._adapter.reset()
        self._tell(Step(0), monotonic())  # nothing is taken any more

    def _tell(self, step: Step, began: float) -> None:
        wasted, self._wasted = self._wasted + step.wasted_tokens, 0
        body = frames.STEP_BODY.pack(
            *(
                step.rows,
                step.prompt_tokens,
                step.new_tokens,
                wasted,
                step.share,
                began,
                monotonic(),
                step.room,
            ),
            *(step.queried_tokens, step.cached_tokens),
        )
        self._told.append(frames.frame(frames.STEP, body))
