"""The end of a serving process: signals, one deadline over everything, and the way out.

Decides when the process ends although something hangs. Must not know what a server does to stop: that is for whoever
waits for `StopSignals.asked`.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import NoReturn

from trivium.log_writer import flush_logs, reopen_logs

log = logging.getLogger(__name__)

EXTRA = 4.0
"""Seconds after the deadline at which a process that has not ended by itself is ended: what was cut off gets some to
be closed.
"""
SECOND_THOUGHTS = 1.0
"""Seconds after a signal to stop within which another is the same, sent twice; a later one asks for haste."""
CUT_OFF = 1
"""Exit status of a process that did not answer or close everything."""


class StopSignals:
    """Takes the process's signals from now on. SIGTERM and SIGINT set `asked` and begin the time of grace, in seconds;
    `EXTRA` after it the process ends, by a thread that waits for nothing else. SIGHUP has log files opened anew.

    Made in the main thread, once. `hurries`: a second signal to stop ends the process at once.
    """

    def __init__(
        self, grace: float, received: Callable[[int], None] | None = None, *, hurries: bool = True
    ) -> None:
        self._grace = grace
        self._tell = received
        self._hurries = hurries
        self._began: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.asked = asyncio.Event()
        self._due: SimpleQueue[float] = SimpleQueue()  # may be written to in a signal handler
        threading.Thread(target=self._enforce, name="trivium-stop", daemon=True).start()
        keep_hangups()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._received)

    async def wait(self) -> None:
        """Return once a signal to stop has come. Only one loop may wait for it."""
        self._loop = asyncio.get_running_loop()
        if self._began is not None:
            self.asked.set()
        await self.asked.wait()

    @property
    def left(self) -> float:
        """Seconds that are left of the time of grace: all of it before a signal, never less than none."""
        return self._grace if self._began is None else max(self._began + self._grace - monotonic(), 0.0)

    def _received(self, number: int, frame: FrameType | None) -> None:
        # The interpreter calls this between two instructions of the main thread, whatever that is doing: it takes no
        # lock, and starts no thread.
        if self._tell is not None:
            self._tell(number)
        now = monotonic()
        due = end_after(now, self._began, self._grace, hurries=self._hurries)
        if due is not None:
            self._due.put(due)
        if self._began is None:
            self._began = now
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.asked.set)

    def _enforce(self) -> None:
        due = self._due.get()
        while (left := due - monotonic()) > 0:
            try:
                due = min(due, self._due.get(timeout=left))
            except Empty:
                break
        assert self._began is not None, "something is due because of a signal"
        taken = monotonic() - self._began
        log.error(
            "Not everything could be closed in %.1f s after the signal to stop: the process ends now.", taken
        )
        leave(CUT_OFF)


def end_after(now: float, began: float | None, grace: float, *, hurries: bool) -> float | None:
    """Return when a process has to have ended that gets a signal to stop now, where the first one `began` its end; None
    if nothing is new.
    """
    if began is None:
        return now + grace + EXTRA
    return now if hurries and now - began > SECOND_THOUGHTS else None


def keep_hangups() -> None:
    """Have SIGHUP open log files anew, and end nothing."""
    signal.signal(signal.SIGHUP, lambda number, frame: reopen_logs())


def leave(status: int) -> NoReturn:
    """End the process with this exit status, once its logs are written; a thread that hangs does not hold it up, and
    neither does a reader of the logs that does not read.
    """
    flushing = threading.Thread(target=_flush, daemon=True)
    flushing.start()
    flushing.join(1.0)
    os._exit(status)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    flush_logs(0.5)
