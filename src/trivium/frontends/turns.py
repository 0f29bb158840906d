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


SECONDS = 0.005
"""For large input, of all connections together, within one turn of the loop."""

REST = 2.0
"""How often as much time others get behind such a turn, if they have a use for it."""

_IDLE = 0.1
"""Share of the time between two turns that nobody uses but for the loop itself."""

SLICE = 16 * 1024
"""Bytes of input that are taken at once, whatever they are; less than a turn in any case."""


def _on_running_loop(work: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_soon(work)


def _later_on_running_loop(seconds: float, work: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, work)


class TurnQueue:
    """Used on the loop only. `call_soon` and `call_later` are the loop's; `clock` gives seconds and does not stand
    still, `computed` the processor seconds of the loop's thread.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object] = _on_running_loop,
        call_later: Callable[[float, Callable[[], None]], object] = _later_on_running_loop,
        clock: Callable[[], float] = time.perf_counter,
        computed: Callable[[], float] = time.thread_time,
    ) -> None:
        self._call_soon = call_soon
        self._call_later = call_later
        self._clock = clock
        self._computed = computed
        self._waiting: deque[Callable[[], bool]] = deque()
        self._end: float | None = None  # of the present turn, if it has begun
        self._left = (0.0, 0.0)  # when others got their time, on both clocks

    def is_spent(self) -> bool:
        """Return True if the rest of a large input has to wait for a later turn."""
        if self._waiting:
            return True
        end = self._end
        if end is None:
            self._left = self._clock(), self._computed()
            self._end = self._left[0] + SECONDS
            self._call_soon(self._turn)
            return False
        return self._clock() >= end

    def add(self, work: Callable[[], bool]) -> None:
        """Have `work` called in its turn, and again as long as it returns True: then it has more to do."""
        self._waiting.append(work)
        if self._end is None:
            self._left = self._clock(), self._computed()
            self._end = self._left[0]
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """Let who waits go on, while somebody does. Others have had a turn between two calls."""
        waiting = self._waiting
        began = self._clock()
        are_others_busy = self._computed() - self._left[1] > _IDLE * (SECONDS + began - self._left[0])
        now, self._end = began, began + SECONDS
        while waiting:
            work = waiting.popleft()
            if work():
                waiting.append(work)
            now = self._clock()
            if now >= self._end:
                break
        self._left = now, self._computed()
        if not waiting:
            self._end = None
        elif are_others_busy:
            self._call_later(REST * (now - began), self._turn)
        else:
            self._call_soon(self._turn)
