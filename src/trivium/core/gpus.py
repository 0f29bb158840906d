"""What NVIDIA's GPUs are doing, as their driver's library (NVML) tells; nothing where there is no such library.

Called by its C names, without a package for it: a dozen functions that have not changed in ten years. Blocking.
"""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_uint, c_ulonglong, c_void_p, create_string_buffer
from typing import Any

from trivium.types.metrics import GpuUse

_LIBRARY = "libnvidia-ml.so.1"
_UUID_BYTES = 96


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class Gpus:
    """Used by one thread at a time. `load` opens the library, the first time that anything is read."""

    def __init__(self, load: Callable[[str], Any] = ctypes.CDLL) -> None:
        self._load = load
        self._library: Any = None
        self._is_open = False
        self._energy_before: dict[str, int] = {}

    def read(self) -> tuple[GpuUse, ...]:
        """Every GPU, by its index."""
        if not self._is_open:
            self._is_open = True
            self._library = self._opened()
        count = c_uint()
        if self._library is None or self._library.nvmlDeviceGetCount_v2(byref(count)):
            return ()
        uses = (self._use(index) for index in range(count.value))
        return tuple(use for use in uses if use is not None)

    def _opened(self) -> Any:
        try:
            library = self._load(_LIBRARY)
            return None if library.nvmlInit_v2() else library
        except (OSError, AttributeError):
            return None

    def _use(self, index: int) -> GpuUse | None:
        device = c_void_p()
        uuid = create_string_buffer(_UUID_BYTES)
        if self._library.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(device)):
            return None
        if self._library.nvmlDeviceGetUUID(device, uuid, c_uint(_UUID_BYTES)):
            return None
        rates, memory, energy = _Rates(), _Memory(), c_ulonglong()
        has_rates = self._tells("nvmlDeviceGetUtilizationRates", device, rates)
        has_memory = self._tells("nvmlDeviceGetMemoryInfo", device, memory)
        has_energy = self._tells("nvmlDeviceGetTotalEnergyConsumption", device, energy)
        return GpuUse(
            index,
            uuid.value.decode("ascii", "replace"),
            rates.gpu / 100 if has_rates else None,
            memory.total if has_memory else None,
            memory.used if has_memory else None,
            self._watts("nvmlDeviceGetPowerUsage", device),
            self._watts("nvmlDeviceGetEnforcedPowerLimit", device),
            self._joules(uuid.value.decode("ascii", "replace"), energy.value) if has_energy else None,
        )

    def _joules(self, uuid: str, millijoules: int) -> float:
        """Since the first reading: the driver counts from when it was loaded."""
        return (millijoules - self._energy_before.setdefault(uuid, millijoules)) / 1000

    def _tells(self, function: str, device: c_void_p, into: Any) -> bool:
        asked = getattr(self._library, function, None)
        return asked is not None and not asked(device, byref(into))

    def _watts(self, function: str, device: c_void_p) -> float | None:
        milliwatts = c_uint()
        return milliwatts.value / 1000 if self._tells(function, device, milliwatts) else None
