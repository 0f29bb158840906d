"""Tells how much memory is free: on the machine and on its GPUs. Reads files of the system, and asks a driver."""

from collections.abc import Iterator
from pathlib import Path

from trivium.machine.control_group import ControlGroups, read_table
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
        self._groups = ControlGroups(proc, groups)

    def read(self, with_gpus: bool) -> dict[tuple[Device, int], int]:
        """Return the free bytes by place; those of a place that nobody can tell are left out. Blocking."""
        bounds = list(self._bounds())
        free = {(Device.CPU, 0): max(min(bounds), 0)} if bounds else {}
        for gpu in self._gpus.read() if with_gpus else ():
            if gpu.memory_total is not None and gpu.memory_used is not None:
                free[Device.GPU, gpu.index] = gpu.memory_total - gpu.memory_used
        return free

    def _bounds(self) -> Iterator[int]:
        available = read_table(self._proc / "meminfo").get("MemAvailable")
        if available is not None:
            yield available * 1024
        yield from self._groups.free_memory()
