"""Tells how much memory is free: on the machine and on its GPUs. Reads files of the system, and asks a driver."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from trivium.machine.control_groups import own_groups
from trivium.machine.gpus import Gpus
from trivium.types.spec import Device


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
        for folder in own_groups(self._proc, self._groups):
            most, used = _number(folder / "memory.max"), _number(folder / "memory.current")
            if most is not None and used is not None:
                yield most - used + _table(folder / "memory.stat").get("inactive_file", 0)


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
