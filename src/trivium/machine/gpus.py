"""Measures what NVIDIA's GPUs are doing, by their driver's library (NVML); nothing where there is no such library.

Blocking. The binding is imported when somebody asks first: it takes a tenth of a second and 6 MB.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from trivium.types.metrics import GpuUse


def _binding() -> Any:
    return import_module("pynvml")


class Gpus:
    """Used by one thread at a time. `load` gives the binding (`pynvml`), the first time that anything is read."""

    def __init__(self, load: Callable[[], Any] = _binding) -> None:
        self._load = load
        self._nvml: Any = None
        self._is_open = False
        self._energy_before: dict[str, int] = {}

    def read(self) -> tuple[GpuUse, ...]:
        """Every GPU, by its index."""
        if not self._is_open:
            self._is_open = True
            self._nvml = self._opened()
        if self._nvml is None:
            return ()
        try:
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError:
            return ()
        uses = (self._use(index) for index in range(count))
        return tuple(use for use in uses if use is not None)

    def _opened(self) -> Any:
        nvml = self._load()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError:
            return None
        return nvml

    def _use(self, index: int) -> GpuUse | None:
        try:
            device = self._nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = str(self._nvml.nvmlDeviceGetUUID(device))
        except self._nvml.NVMLError:
            return None
        rates = self._told("nvmlDeviceGetUtilizationRates", device)
        memory = self._told("nvmlDeviceGetMemoryInfo", device)
        energy = self._told("nvmlDeviceGetTotalEnergyConsumption", device)
        return GpuUse(
            index,
            uuid,
            None if rates is None else rates.gpu / 100,
            None if memory is None else memory.total,
            None if memory is None else memory.used,
            self._watts("nvmlDeviceGetPowerUsage", device),
            self._watts("nvmlDeviceGetEnforcedPowerLimit", device),
            None if energy is None else self._joules(uuid, energy),
        )

    def _joules(self, uuid: str, millijoules: int) -> float:
        """Since the first reading: the driver counts from when it was loaded."""
        return (millijoules - self._energy_before.setdefault(uuid, millijoules)) / 1000

    def _told(self, function: str, device: Any) -> Any:
        """Return what the driver says; None where this device, or this driver, does not know."""
        try:
            return getattr(self._nvml, function)(device)
        except self._nvml.NVMLError:
            return None

    def _watts(self, function: str, device: Any) -> float | None:
        milliwatts = self._told(function, device)
        return None if milliwatts is None else milliwatts / 1000
