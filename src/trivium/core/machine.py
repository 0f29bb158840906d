"""What the machine itself is doing, as the kernel tells: processors and memory; its GPUs from `gpus`.

Reads files and asks a driver, so it runs in a thread. Elsewhere than on Linux it tells nothing.
"""

from collections.abc import Callable
from pathlib import Path

from trivium.core.gpus import Gpus
from trivium.types.metrics import GpuUse, MachineUse, Measures

_PROC = Path("/proc")
_IDLE = (3, 4)
"""Of the columns behind "cpu" in /proc/stat: idle, and waiting for input and output (proc(5))."""


class Machine:
    """Used by one thread at a time. A reading is good for `measures.interval` seconds, so that the share of the
    processors is one of a time worth speaking of, however many ask.
    """

    def __init__(self, measures: Measures, now: Callable[[], float], proc: Path = _PROC) -> None:
        self._measures = measures
        self._now = now
        self._proc = proc
        self._gpus = Gpus() if measures.gpu else None
        self._until = float("-inf")
        self._ticks = (0, 0)
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
            stat = (self._proc / "stat").read_text()
            memory = (self._proc / "meminfo").read_text()
        except OSError:
            return None
        total, free = memory_of(memory)
        busy, every = ticks_of(stat)
        before_busy, before_every = self._ticks
        share = (busy - before_busy) / (every - before_every) if every > before_every > 0 else 0.0
        self._ticks = (busy, every)
        return MachineUse(min(max(share, 0.0), 1.0), total, total - free)


def ticks_of(stat: str) -> tuple[int, int]:
    """Busy ones and all of them since the machine came up, over all processors, from /proc/stat."""
    return _ticks(stat.split("\n", 1)[0])


def _ticks(line: str) -> tuple[int, int]:
    columns = [int(column) for column in line.split()[1:9]]
    return sum(columns) - sum(columns[column] for column in _IDLE), sum(columns)


def memory_of(meminfo: str) -> tuple[int, int]:
    """Bytes in all, and those that programs could have, from /proc/meminfo."""
    rows = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    sizes = [int(rows[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable")]
    return sizes[0], sizes[1]
