"""Watches over one worker process: looks at it twice a second and carries out the policy's verdict.

All watches look at the same moments, so that the loop wakes twice a second however many workers there are.
"""

import asyncio
import logging
from time import monotonic

import psutil

from trivium.core.workers.process import ProcessInstance
from trivium.core.workers.watch_policy import Verdict, WorkerView, judge
from trivium.types.interfaces import Port
from trivium.types.observing import DeathCause
from trivium.types.running import RecycleRequested
from trivium.types.spec import Limits
from trivium_worker.wire import frames

SECONDS = 0.5
_CAUSES = {Verdict.KILL_SILENT: DeathCause.SILENCE, Verdict.KILL_LARGE: DeathCause.MEMORY_LIMIT}


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
        self._process = (
            _process(worker.pid) if (limits.recycle_bytes or limits.most_bytes) is not None else None
        )
        self._memory_when_new = 0
        self._is_worn = False
        self._arm()
        worker.gone.add_done_callback(lambda gone: self._timer.cancel())

    def _look(self) -> None:
        worker = self._worker
        memory = 0 if self._process is None else _resident(self._process)
        if worker.ended_items and not self._memory_when_new:
            self._memory_when_new = memory  # once it has served: first requests load what import did not
        view = WorkerView(
            worker.running_since,
            worker.connection.heard_at,
            worker.ended_items,
            memory,
            self._memory_when_new,
        )
        verdict, why = judge(view, self._limits, monotonic())
        if verdict in _CAUSES:
            worker.kill(why, _CAUSES[verdict])
        elif verdict is Verdict.PING:
            worker.write([frames.frame(frames.PING)])
        elif verdict is Verdict.REPLACE and not self._is_worn:
            self._is_worn = True
            self._log.info("worker %d is replaced: %s", worker.pid, why)
            self._port.deliver([RecycleRequested(why)])
        self._arm()

    def _arm(self) -> None:
        self._timer = self._loop.call_later(until_next(self._loop.time()), self._look)


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:  # it has ended already
        return None


def _resident(process: psutil.Process) -> int:
    """Bytes of memory that it has; 0 where it is gone."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
