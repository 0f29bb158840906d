"""Processors and memory as psutil tells them, GPUs from a binding that the test plays."""

from collections import namedtuple
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from trivium.machine.gpus import Gpus
from trivium.machine.use import Machine
from trivium.types.metrics import DiskUse, GpuUse, MachineUse, Measurements

NO_GPU = Measurements(gpu=False, interval=2.0)
Times = namedtuple("Times", "user nice system idle iowait guest")


def no_disk(path):
    raise PermissionError(path)


@pytest.fixture
def system(monkeypatch):
    """What psutil tells, to be changed."""
    told = SimpleNamespace(
        times=Times(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        memory=SimpleNamespace(total=1000, available=400),
        disk_usage=no_disk,
    )
    monkeypatch.setattr(psutil, "cpu_times", lambda: told.times)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: told.memory)
    monkeypatch.setattr(psutil, "disk_usage", told.disk_usage)
    return told


def test_the_share_is_of_the_time_between_two_readings(system):
    now = [0.0]
    machine = Machine(NO_GPU, lambda: now[0])
    system.times = Times(100.0, 0.0, 10.0, 100.0, 5.0, 7.0)
    assert machine.read() == (MachineUse(0.0, 1000, 600), ())
    system.times = Times(125.0, 2.0, 13.0, 108.0, 7.0, 20.0)
    now[0] = 1.0
    assert machine.read()[0].cpu == 0.0  # too soon to look again
    now[0] = 2.0
    assert machine.read()[0].cpu == pytest.approx(0.75), "waiting is idle, and a guest's time is counted once"


def test_a_system_that_tells_nothing(system, monkeypatch):
    def fails():
        raise FileNotFoundError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", fails)
    assert Machine(NO_GPU, lambda: 0.0).read() == (None, ())


def test_what_was_not_asked_for_is_not_read(system):
    assert Machine(Measurements(cpu=False, gpu=False), lambda: 0.0).read() == (None, ())


def test_the_machine_that_runs_this():
    use, gpus = Machine(NO_GPU, lambda: 0.0).read()
    assert 0 < use.memory_used < use.memory_total
    assert gpus == ()


class Driver:
    """`pynvml` with two GPUs, of which the second tells only its name."""

    NVMLError = pynvml.NVMLError

    def __init__(self, status=0):
        self.status, self.energy = status, 5000

    def nvmlInit(self):
        if self.status:
            raise pynvml.NVMLError(self.status)

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index + 1

    def nvmlDeviceGetUUID(self, device):
        return f"GPU-{device}"

    def _only_first(self, device, told):
        if device != 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return told

    def nvmlDeviceGetUtilizationRates(self, device):
        return self._only_first(device, SimpleNamespace(gpu=40))

    def nvmlDeviceGetMemoryInfo(self, device):
        return self._only_first(device, SimpleNamespace(total=1000, used=300))

    def nvmlDeviceGetPowerUsage(self, device):
        return self._only_first(device, 75_500)

    def nvmlDeviceGetEnforcedPowerLimit(self, device):
        return self._only_first(device, 300_000)

    def nvmlDeviceGetTotalEnergyConsumption(self, device):
        return self._only_first(device, self.energy)


def test_gpus_tell_what_they_can():
    driver = Driver()
    gpus = Gpus(lambda: driver)
    first = GpuUse(0, "GPU-1", 0.4, 1000, 300, 75.5, 300.0, 0.0)
    assert gpus.read() == (first, GpuUse(1, "GPU-2"))
    driver.energy = 7500
    assert gpus.read()[0].energy == 2.5


@pytest.mark.parametrize("status", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
def test_without_a_driver_there_are_none(status):
    assert Gpus(lambda: Driver(status)).read() == ()


def test_the_binding_has_every_function_that_is_asked_for():
    names = [name for name in vars(Driver) if name.startswith("nvml")]
    assert len(names) == 9
    assert all(callable(getattr(pynvml, name)) for name in names)


def test_the_disk_is_that_of_the_root(system, monkeypatch):
    monkeypatch.setattr(psutil, "disk_usage", lambda path: SimpleNamespace(used=7, free=len(path)))
    use, _ = Machine(NO_GPU, lambda: 0.0).read()
    assert use.disk == DiskUse(7, 1)
