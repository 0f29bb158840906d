"""The live clock: `time.monotonic` and the running event loop. Simulation has its own, with the same face."""

import asyncio
import logging
import sys
import threading
import time
import traceback
from bisect import bisect_left
from collections.abc import Callable

from trivium.core.stall_policy import (
    STALL_SECONDS,
    LoopCounters,
    LoopDelay,
    StallCause,
    is_said,
    is_stall,
    likely_cause,
)
from trivium.machine.loop_counters import ThreadWaits, thread_waits
from trivium.types.interfaces import Clock, Timer
from trivium.types.metrics import LoopUse

_log = logging.getLogger(__name__)

CallLast = Callable[[Callable[[], None]], object]
"""Has something called behind what runs now; `LoopClock.call_last`, or a loop's `call_soon`."""


DELAY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds in seconds of the histogram of how late a loop was; one more bucket takes the rest."""


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


class LoopWatch:
    """Watches whether an event loop keeps its time, from here until `close`: what holds it up for longer than
    `STALL_SECONDS` is counted, and said in a line with its likely cause, once a minute at most and not while models
    load; at debug level with the stacks of all threads while it did. One of a process at a time.

    A thread takes the stacks as soon as it gets the interpreter's lock: at the latest when the call that keeps that is
    over, and then its caller's frame is still there. (C code that reads the frames of threads while they run, as
    `faulthandler.dump_traceback_later` does, ended whole servers by a segmentation fault.) A machine that has much else
    to do holds the loop up, too: only where this process was computing is it a stall.
    """

    PERIOD = 0.1

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        has_thread: bool = True,
        is_loading: Callable[[], bool] = lambda: False,
        waits: Callable[[], ThreadWaits] = thread_waits,
    ) -> None:
        """Begin; without a thread somebody else calls `look`."""
        self._loop = loop
        self._is_loading, self._waits = is_loading, waits
        self._stalls = self._unsaid = 0
        self._said_at = float("-inf")
        self._longest = self._longest_turn = self._delayed = 0.0
        self._delays = [0] * (len(DELAY_BUCKETS) + 1)
        self.stacks = ""
        """Where all threads were when the loop was late; empty while it is not, and where nobody reads them."""
        self._arm()
        self._ended = threading.Event()
        self._timer = loop.call_later(self.PERIOD, self._beat)
        if has_thread:
            threading.Thread(target=self._run, name="trivium-loop-watch", daemon=True).start()

    def use(self) -> LoopUse:
        """Return what was counted so far."""
        delays = tuple(zip((*DELAY_BUCKETS, float("inf")), self._delays, strict=True))
        return LoopUse(self._stalls, self._longest, self._longest_turn, delays, self._delayed)

    def close(self) -> None:
        """Watch no longer."""
        self._timer.cancel()
        self._ended.set()

    def look(self) -> None:
        """Take the stacks of all threads, if somebody reads them, the loop is late and they were not taken yet."""
        is_late = time.monotonic() >= self._due + STALL_SECONDS
        if is_late and not self.stacks and _log.isEnabledFor(logging.DEBUG):
            self.stacks = thread_stacks()

    def _run(self) -> None:
        while not self._ended.wait(max(self._due + STALL_SECONDS - time.monotonic(), self.PERIOD)):
            self.look()

    def _arm(self) -> None:
        self._due = time.monotonic() + self.PERIOD
        self._before, self._own = self._counters(), time.thread_time()
        self._was_loading = self._is_loading()
        self.stacks = ""

    def _counters(self) -> LoopCounters:
        waits = self._waits()
        return LoopCounters(time.process_time(), waits.waited, waits.pages)

    def _beat(self) -> None:
        late = time.monotonic() - self._due
        self._delays[bisect_left(DELAY_BUCKETS, late)] += 1
        self._delayed += max(late, 0.0)
        self._longest_turn = max(self._longest_turn, min(late, time.thread_time() - self._own))
        if late > STALL_SECONDS:
            counted = self._counters().since(self._before)
            self._note(LoopDelay(late, counted, self._was_loading or self._is_loading()))
        self._arm()
        self._timer = self._loop.call_later(self.PERIOD, self._beat)

    def _note(self, delay: LoopDelay) -> None:
        self._longest = max(self._longest, min(delay.late, delay.counted.computed))
        self._stalls += is_stall(delay)
        cause, now = likely_cause(delay), time.monotonic()
        if is_said(cause, now, self._said_at):
            more = f" ({self._unsaid} times more since the last such line)" if self._unsaid else ""
            level = logging.WARNING if is_stall(delay) or cause is StallCause.SWAPPING else logging.INFO
            _log.log(level, "no request was answered for %.2f s%s: %s", delay.late, more, cause.value)
            self._said_at, self._unsaid = now, 0
        elif cause is not StallCause.LOADING:
            self._unsaid += 1
        _log.debug(
            "the event loop was held up for %.2f s, in which this process computed %.2f s; its threads were at:\n%s",
            delay.late,
            delay.counted.computed,
            self.stacks or "(they were not looked at)",
        )


def thread_stacks() -> str:
    """Return where every thread of this process is now, the innermost call first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = []
    for number, frame in sys._current_frames().items():
        lines.append(f"Thread {names.get(number, number)}:")
        lines += [
            f'  File "{each.f_code.co_filename}", line {line} in {each.f_code.co_name}'
            for each, line in traceback.walk_stack(frame)
        ]
    return "\n".join(lines)
