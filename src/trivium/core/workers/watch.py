"""Watches over one worker process: looks at it twice a second and carries out the policy's verdict.

All watches look at the same moments, so that the loop wakes twice a second however many workers there are.
"""

import asyncio
import logging
import mmap
from pathlib import Path
from time import monotonic

from trivium.core.workers.process import ProcessInstance
from trivium.core.workers.watch_policy import Verdict, WorkerView, judge
from trivium.types.interfaces import Port
from trivium.types.running import Worn
from trivium.types.spec import Limits
from trivium_child import frames

SECONDS = 0.5


def until_next(now: float) -> float:
    """Seconds from `now` to the first moment at which all look that is not nearer than half of `SECONDS`."""
    return 1.5 * SECONDS - (now + SECONDS / 2) % SECONDS


class Watch:
    """Begins with the worker being ready, and ends with it."""

    def __init__(self, worker: ProcessInstance, limits: Limits, port: Port, log: logging.Logger) -> None:
        self._worker = worker
        self._limits = limits
        self._port = port
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._statm = Path(f"/proc/{worker.pid}/statm")
        self._memory_when_new = 0
        self._is_worn = False
        self._arm()
        worker.gone.add_done_callback(lambda gone: self._timer.cancel())

    def _look(self) -> None:
        worker = self._worker
        memory = self._resident() if self._limits.recycle_bytes is not None else 0
        if worker.ended_items and not self._memory_when_new:
            self._memory_when_new = memory  # once it has served: first requests load what import did not
        view = WorkerView(
            worker.computing_since,
            worker.heard_at,
            worker.ended_items,
            memory,
            self._memory_when_new,
        )
        verdict, why = judge(view, self._limits, monotonic())
        if verdict is Verdict.KILL:
            worker.kill(why)
        elif verdict is Verdict.PING:
            worker.write([frames.frame(frames.PING)])
        elif verdict is Verdict.REPLACE and not self._is_worn:
            self._is_worn = True
            self._log.info("worker %d is replaced: %s", worker.pid, why)
            self._port.deliver([Worn(why)])
        self._arm()

    def _arm(self) -> None:
        self._timer = self._loop.call_later(until_next(self._loop.time()), self._look)

    def _resident(self) -> int:
        try:
            return int(self._statm.read_text().split()[1]) * mmap.PAGESIZE
        except (OSError, ValueError, IndexError):
            return 0
