"""The original's metrics of its machine, made of what is measured: their names, labels and units.

Source: spec sheet `torchserve`, section 6.1: percents, MB and GB. Pure.
"""

from collections.abc import Iterable, Iterator

from trivium.servers.torchserve.words.meter import HOST
from trivium.types.metrics import GpuUse, MachineUse

MB, GB = 2**20, 2**30
MachineMetric = tuple[str, tuple[str, ...], float]
"""A name, the values of its dimensions but for the host's, and its value."""


def machine_metrics(machine: MachineUse | None, gpus: Iterable[GpuUse]) -> Iterator[MachineMetric]:
    """Yield the metrics of the machine and of its GPUs, as far as they are known."""
    if machine is not None:
        available = machine.memory_total - machine.memory_used
        yield "CPUUtilization", (HOST,), round(machine.cpu * 100, 1)
        yield "MemoryAvailable", (HOST,), available / MB
        yield "MemoryUsed", (HOST,), machine.memory_used / MB
        yield "MemoryUtilization", (HOST,), _percent(machine.memory_used, machine.memory_total)
        if (disk := machine.disk) is not None:
            yield "DiskAvailable", (HOST,), disk.free / GB
            yield "DiskUsage", (HOST,), disk.used / GB
            yield "DiskUtilization", (HOST,), _percent(disk.used, disk.used + disk.free)
    for gpu in gpus:
        device = HOST, str(gpu.index)
        if gpu.memory_used is not None and gpu.memory_total:
            yield "GPUMemoryUtilization", device, _percent(gpu.memory_used, gpu.memory_total)
            yield "GPUMemoryUsed", device, gpu.memory_used // MB
        if gpu.utilization is not None:
            yield "GPUUtilization", device, gpu.utilization * 100


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
