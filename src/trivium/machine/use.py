"""Measures what the machine itself is doing: processors and memory as `psutil` tells, its GPUs as `gpus` tells.

Asks the system and a driver, so it runs in a thread.
"""

from collections.abc import Callable

import psutil

from trivium.machine.gpus import Gpus
from trivium.types.metrics import DiskUse, GpuUse, MachineUse, Measurements


class Machine:
    """Used by one thread at a time. A reading is good for `measures.interval` seconds, so that the share of the
    processors is one of a time worth speaking of, however many ask.
    """

    def __init__(self, measures: Measurements, now: Callable[[], float]) -> None:
        self._measures = measures
        self._now = now
        self._gpus = Gpus() if measures.gpu else None
        self._until = float("-inf")
        self._before: tuple[float, float] | None = None
        self._last: tuple[MachineUse | None, tuple[GpuUse, ...]] = (None, ())

    def read(self) -> tuple[MachineUse | None, tuple[GpuUse, ...]]:
        """The machine, and its GPUs. Blocking, for milliseconds."""
        if self._now() >= self._until:
            use = self._use() if self._measures.cpu else None
            self._last = (use, self._gpus.read() if self._gpus is not None else ())
            self._until = self._now() + self._measures.interval
        return self._last

    def _use(self) -> MachineUse | None:
        try:
            memory, (busy, every) = psutil.virtual_memory(), _processor_seconds()
        except (OSError, psutil.Error):
            return None
        before_busy, before_every = self._before or (busy, every)
        share = (busy - before_busy) / (every - before_every) if every > before_every else 0.0
        self._before = (busy, every)
        used = memory.total - memory.available
        return MachineUse(min(max(share, 0.0), 1.0), memory.total, used, _disk())


def _disk() -> DiskUse | None:
    try:
        disk = psutil.disk_usage("/")
    except OSError:
        return None
    return DiskUse(disk.used, disk.free)


def _processor_seconds() -> tuple[float, float]:
    """Busy ones and all of them since the machine came up, over all processors. Waiting for a disk is no work, and the
    time of guests is part of the user's.
    """
    times = psutil.cpu_times()._asdict()
    every = sum(times.values()) - times.get("guest", 0.0) - times.get("guest_nice", 0.0)
    return every - times["idle"] - times.get("iowait", 0.0), every


def machine_bytes() -> int:
    """Return the memory that this machine has, whatever bounds this process."""
    return int(psutil.virtual_memory().total)


def resident_bytes(process: int) -> int | None:
    """Return the resident memory of a process, by its number; None where it is gone."""
    try:
        return int(psutil.Process(process).memory_info().rss)
    except psutil.Error:
        return None
