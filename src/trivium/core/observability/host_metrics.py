"""Measures what the machine itself is doing: processors and memory as `psutil` tells, its GPUs as `gpu_metrics` tells.

Asks the system and a driver, so it runs in a thread.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

from trivium.core.observability.gpu_metrics import Gpus
from trivium.types.metrics import GpuUse, MachineUse, Measurements
from trivium.types.spec import Device


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
        return MachineUse(min(max(share, 0.0), 1.0), memory.total, memory.total - memory.available)


def _processor_seconds() -> tuple[float, float]:
    """Busy ones and all of them since the machine came up, over all processors. Waiting for a disk is no work, and the
    time of guests is part of the user's.
    """
    times = psutil.cpu_times()._asdict()
    every = sum(times.values()) - times.get("guest", 0.0) - times.get("guest_nice", 0.0)
    return every - times["idle"] - times.get("iowait", 0.0), every


def resident_bytes(process: int) -> int | None:
    """Return the resident memory of a process, by its number; None where it is gone."""
    try:
        return int(psutil.Process(process).memory_info().rss)
    except psutil.Error:
        return None


class FreeMemory:
    """Tells how much memory is free: on the machine, within the bounds of the control groups that this process is in,
    and on each GPU. Used by one thread at a time.
    """

    def __init__(
        self, gpus: Gpus | None = None, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
    ) -> None:
        self._gpus = gpus or Gpus()
        self._proc = proc
        self._groups = groups

    def read(self, with_gpus: bool) -> dict[tuple[Device, int], int]:
        """Return the free bytes by place; those of a place that nobody can tell are left out. Blocking."""
        bounds = list(self._bounds())
        free = {(Device.CPU, 0): max(min(bounds), 0)} if bounds else {}
        for gpu in self._gpus.read() if with_gpus else ():
            if gpu.memory_total is not None and gpu.memory_used is not None:
                free[Device.GPU, gpu.index] = gpu.memory_total - gpu.memory_used
        return free

    def _bounds(self) -> Iterator[int]:
        available = _table(self._proc / "meminfo").get("MemAvailable")
        if available is not None:
            yield available * 1024
        for folder in self._own_groups():
            most, used = _number(folder / "memory.max"), _number(folder / "memory.current")
            if most is not None and used is not None:
                yield most - used + _table(folder / "memory.stat").get("inactive_file", 0)

    def _own_groups(self) -> Iterator[Path]:
        """Yield the folders of this process's control group (version 2) and of those around it."""
        path = ""
        try:
            for line in (self._proc / "self/cgroup").read_text().splitlines():
                path = line.removeprefix("0::") if line.startswith("0::") else path
        except OSError:
            pass
        folder = self._groups / path.strip("/")
        while folder != self._groups and self._groups in folder.parents:
            yield folder
            folder = folder.parent
        yield self._groups


def _table(path: Path) -> Mapping[str, int]:
    """Return the numbers of a file of lines like `name: number unit`."""
    found: dict[str, int] = {}
    try:
        for line in path.read_text().splitlines():
            name, *rest = line.split()
            if rest and rest[0].isascii() and rest[0].isdigit():
                found[name.rstrip(":")] = int(rest[0])
    except (OSError, ValueError):
        return {}
    return found


def _number(path: Path) -> int | None:
    """Return the number in a file; None for any other word, such as `max`."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None
