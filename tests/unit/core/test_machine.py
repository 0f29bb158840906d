"""Processors and memory from the kernel's files, GPUs from a driver's library that the test plays."""

import ctypes

import pytest

from trivium.core.gpus import Gpus
from trivium.core.machine import Machine, memory_of, ticks_of
from trivium.types.metrics import GpuUse, MachineUse, Measures

STAT = "cpu  {user} 0 10 {idle} 5 0 0 0 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1 2\n"
MEMORY = (
    "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\nHugePages_Total:       0\n"
)
NO_GPU = Measures(gpu=False, interval=2.0)


def write(folder, user, idle, memory=MEMORY):
    (folder / "stat").write_text(STAT.format(user=user, idle=idle))
    (folder / "meminfo").write_text(memory)


def test_ticks_are_busy_ones_and_all():
    assert ticks_of(STAT.format(user=100, idle=50)) == (110, 165)


def test_memory_is_what_programs_could_have():
    assert memory_of(MEMORY) == (1000 * 1024, 400 * 1024)


def test_the_share_is_of_the_time_between_two_readings(tmp_path):
    now = [0.0]
    machine = Machine(NO_GPU, lambda: now[0], tmp_path)
    write(tmp_path, user=100, idle=100)
    assert machine.read() == (MachineUse(0.0, 1000 * 1024, 600 * 1024), ())
    write(tmp_path, user=130, idle=110)
    now[0] = 1.0
    assert machine.read()[0].cpu == 0.0  # too soon to look again
    now[0] = 2.0
    assert machine.read()[0].cpu == pytest.approx(0.75)


def test_without_such_files_nothing_is_told(tmp_path):
    assert Machine(NO_GPU, lambda: 0.0, tmp_path).read() == (None, ())


def test_what_was_not_asked_for_is_not_read(tmp_path):
    write(tmp_path, user=1, idle=1)
    assert Machine(Measures(cpu=False, gpu=False), lambda: 0.0, tmp_path).read() == (None, ())


class Driver:
    """NVML with two GPUs, of which the second tells only its name."""

    def __init__(self, status=0):
        self.status, self.energy = status, 5000

    def nvmlInit_v2(self):
        return self.status

    def nvmlDeviceGetCount_v2(self, count):
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, device):
        device._obj.value = index.value + 1
        return 0

    def nvmlDeviceGetUUID(self, device, text, size):
        text.value = f"GPU-{device.value}".encode()
        return 0

    def nvmlDeviceGetUtilizationRates(self, device, rates):
        rates._obj.gpu = 40
        return int(device.value != 1)

    def nvmlDeviceGetMemoryInfo(self, device, memory):
        memory._obj.total, memory._obj.used = 1000, 300
        return int(device.value != 1)

    def nvmlDeviceGetPowerUsage(self, device, watts):
        watts._obj.value = 75_500
        return int(device.value != 1)

    def nvmlDeviceGetEnforcedPowerLimit(self, device, watts):
        watts._obj.value = 300_000
        return int(device.value != 1)

    def nvmlDeviceGetTotalEnergyConsumption(self, device, energy):
        energy._obj.value = self.energy
        return int(device.value != 1)


def test_gpus_tell_what_they_can():
    driver = Driver()
    gpus = Gpus(lambda name: driver)
    first = GpuUse(0, "GPU-1", 0.4, 1000, 300, 75.5, 300.0, 0.0)
    assert gpus.read() == (first, GpuUse(1, "GPU-2"))
    driver.energy = 7500
    assert gpus.read()[0].energy == 2.5


def test_a_driver_that_does_not_start_has_none():
    assert Gpus(lambda name: Driver(status=9)).read() == ()


def test_no_library_no_gpus():
    def fails(name):
        raise OSError(name)

    assert Gpus(fails).read() == ()


def test_the_structures_have_the_drivers_layout():
    from trivium.core.gpus import _Memory, _Rates

    assert (ctypes.sizeof(_Rates), ctypes.sizeof(_Memory)) == (8, 24)
