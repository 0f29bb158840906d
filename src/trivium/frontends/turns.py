"""Gives connections whose input takes long their turns, so that no input keeps the loop from all other connections.

Decides for how long input is read within one turn of the loop. The time is measured, since no count of bytes or frames
says what they cost: the rest of a connection's input waits, unread, behind that of the others that have too much.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Offload(Protocol):
    """Has work that takes long done elsewhere than on the loop."""

    def __call__(self, work: Callable[[], Result], done: Callable[[Result | Exception], None]) -> None:
        """Run `work` in a thread, then call `done` on the loop with what it returned or raised, just once."""
        ...


SECONDS = 0.01
"""For large input, of all connections together, within one turn of the loop."""

SLICE = 16 * 1024
"""Bytes of input that are taken at once, whatever they are; less than a turn in any case."""


def _on_running_loop(work: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_soon(work)


class TurnQueue:
    """Used on the loop only. `call_soon` is the loop's; `clock` gives seconds, and does not stand still."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object] = _on_running_loop,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._waiting: deque[Callable[[], bool]] = deque()
        self._end: float | None = None  # of the present turn, if it has begun

    def is_spent(self) -> bool:
        """Return True if the rest of a large input has to wait for a later turn."""
        end = self._end
        if end is None:
            self._end = self._clock() + SECONDS
            self._call_soon(self._turn)
            return False
        return self._clock() >= end

    def add(self, work: Callable[[], bool]) -> None:
        """Have `work` called in its turn, and again as long as it returns True: then it has more to do."""
        self._waiting.append(work)
        if self._end is None:
            self._end = self._clock()
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """Let who waits go on; called once per turn of the loop while somebody does."""
        waiting = self._waiting
        end = self._end = self._clock() + SECONDS
        while waiting:
            work = waiting.popleft()
            if work():
                waiting.append(work)
            if self._clock() >= end:
                break
        if waiting:
            self._call_soon(self._turn)
        else:
            self._end = None
