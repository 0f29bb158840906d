"""The live clock: `time.monotonic` and the running event loop. Simulation has its own, with the same face."""

import asyncio
import time
from collections.abc import Callable

from trivium.types.interfaces import Clock, Timer

CallLast = Callable[[Callable[[], None]], object]
"""Has something called behind what runs now; `LoopClock.call_last`, or a loop's `call_soon`."""


class Alarm:
    """Calls one function, once, at the time that was set last. `when` is that time; None while none is set."""

    __slots__ = ("_call", "_clock", "_timer", "when")

    def __init__(self, clock: Clock, call: Callable[[], None]) -> None:
        self._clock = clock
        self._call = call
        self._timer: Timer | None = None
        self.when: float | None = None

    def set(self, when: float | None) -> None:
        """Call at `when` and not at the time that was set before; None calls not at all."""
        if self._timer is not None:
            self._timer.cancel()
        self.when = when
        self._timer = None if when is None else self._clock.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = self.when = None
        self._call()


class LoopClock:
    """A `Clock` over an asyncio loop. Timers of uvloop have a resolution of a millisecond."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_at_work = False
        self._last: list[Callable[[], None]] = []
        self.now: Callable[[], float] = time.monotonic

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call once, not before `when`."""
        return self._loop.call_later(max(0.0, when - self.now()), callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call once, after what runs now."""
        self._loop.call_soon(self._work, callback)

    def call_last(self, callback: Callable[[], None]) -> None:
        """Call once, at the end of what `call_soon` asked for, if that runs now: what has been handed over leaves
        without a further turn of the loop, which would look at all sockets before. Else after what runs now.
        """
        if self._is_at_work:
            self._last.append(callback)
        else:
            self._loop.call_soon(callback)

    def _work(self, callback: Callable[[], None]) -> None:
        self._is_at_work = True
        try:
            callback()
        finally:
            self._is_at_work = False
            last, self._last = self._last, []
            for flush in last:
                try:
                    flush()
                except Exception as error:  # as of a callback of its own: the others go on
                    self._loop.call_exception_handler({"message": "handing over failed", "exception": error})
