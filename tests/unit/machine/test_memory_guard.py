"""Which loads may begin: claims against a made-up /proc, made-up control groups and a stand-in for the GPUs' driver."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

from trivium.machine.gpus import Gpus
from trivium.machine.memory import FreeMemory
from trivium.machine.memory_guard import MemoryGuard
from trivium.machine.memory_policy import (
    MemoryClaim,
    PendingMemory,
    memory_claims,
    shortage,
)
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Device, InstanceGroup, Limits, MemoryNeed, Origin

MB = 2**20
CPU = (Device.CPU, 0)


def claim(required: int, reserved: int = 0, place: tuple[Device, int] = CPU) -> MemoryClaim:
    return MemoryClaim(place, required, reserved, "limits.memory[0]")


@pytest.mark.parametrize(
    ("required", "reserved", "free", "pending", "is_admitted"),
    [
        (0, 0, 0, [], True),
        (100, 0, 100, [], True),
        (101, 0, 100, [], False),
        (50, 50, 100, [], True),
        (50, 51, 100, [], False),
        (0, 101, 100, [], False),
        (60, 0, 100, [(60, 100)], False),  # both fit alone, and not together
        (40, 0, 100, [(60, 100)], True),
        (60, 0, 40, [(60, 100)], False),
        (40, 0, 40, [(60, 100)], True),  # what the other asked for it has taken by now
        (30, 0, 70, [(60, 100)], True),  # half of it: 30 are still to come
        (50, 0, 70, [(60, 100)], False),
        (10, 0, 100, [(60, 100), (30, 100)], True),
        (11, 0, 100, [(60, 100), (30, 100)], False),
        (60, 0, 150, [(60, 100)], True),  # somebody else has gone
        (10**9, 10**9, None, [], True),  # nobody can tell
    ],
)
def test_claims(required, reserved, free, pending, is_admitted) -> None:
    waiting = {CPU: [PendingMemory(*one) for one in pending]}
    found = shortage([claim(required, reserved)], {} if free is None else {CPU: free}, waiting)
    assert (found is None) == is_admitted


def test_the_first_claim_that_is_not_met_is_named() -> None:
    gpu = (Device.GPU, 1)
    found = shortage([claim(1), claim(9, 0, gpu), claim(99)], {CPU: 5, gpu: 8}, {})
    assert found is not None
    assert (found.claim.place, found.free, found.pending) == (gpu, 8, 0)


def spec_of(*needs: MemoryNeed, groups: tuple[InstanceGroup, ...] = ()):
    return replace(make_spec(), limits=Limits(memory=needs), groups=groups)


def test_every_device_is_a_load_and_each_gpu_has_its_own_memory() -> None:
    groups = tuple(InstanceGroup(f"g{n}", device=Device.GPU, device_ids=(n,)) for n in (0, 2))
    made = memory_claims(spec_of(MemoryNeed(Device.CPU, 5, 1), MemoryNeed(Device.GPU, 7, 2), groups=groups))
    assert [(each.place, each.required, each.reserved) for each in made] == [
        (CPU, 10, 1),
        ((Device.GPU, 0), 7, 2),
        ((Device.GPU, 2), 7, 2),
    ]
    assert memory_claims(spec_of(MemoryNeed(Device.GPU, 7), groups=(InstanceGroup("c"),))) == []


# -- what is free -----------------------------------------------------------------------------------------


class Driver:
    """A stand-in for pynvml with these (total, used) bytes."""

    class NVMLError(Exception):
        pass

    def __init__(self, *memory: tuple[int, int]) -> None:
        self._memory = memory

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return len(self._memory)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, index: int) -> str:
        return f"GPU-{index}"

    def nvmlDeviceGetMemoryInfo(self, index: int):
        total, used = self._memory[index]
        return type("Memory", (), {"total": total, "used": used})

    def __getattr__(self, name: str):
        def unknown(device: object) -> None:
            raise self.NVMLError(name)

        return unknown


def machine(
    root: Path, available: int | None = None, own: str = "0::/", **groups: tuple[object, int, int]
) -> FreeMemory:
    """A machine with so many MB available, and control groups: name (`_` for the top) -> most, used, reclaimable."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(f"1:name=systemd:/x\n{own}\n")
    if available is not None:
        (root / "proc/meminfo").write_text(
            f"MemTotal: 9 kB\nMemAvailable:   {available * 1024} kB\nHugePages: 0\n"
        )
    for name, (most, used, reclaimable) in groups.items():
        folder = root / "cgroup" / ("" if name == "top" else name.replace("_", "/"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{most * MB if isinstance(most, int) else most}\n")
        (folder / "memory.current").write_text(f"{used * MB}\n")
        (folder / "memory.stat").write_text(f"anon 1\ninactive_file {reclaimable * MB}\n")
    return FreeMemory(
        Gpus(lambda: Driver((8 * MB, 3 * MB), (4 * MB, 4 * MB))), root / "proc", root / "cgroup"
    )


@pytest.mark.parametrize(
    ("available", "own", "groups", "free"),
    [
        (700, "0::/", {}, 700),
        (700, "0::/", {"top": (500, 100, 0)}, 400),
        (700, "0::/", {"top": (500, 100, 50)}, 450),
        (700, "0::/", {"top": ("max", 100, 0)}, 700),
        (300, "0::/", {"top": (500, 100, 0)}, 300),
        (700, "0::/a/b", {"a": (300, 100, 0), "a_b": (600, 100, 0)}, 200),
        (700, "0::/a/b", {"a": ("max", 1, 0), "a_b": (90, 100, 0)}, 0),
        (700, "0::/../..", {"top": (500, 100, 0)}, 400),
        (None, "0::/", {}, None),
    ],
)
def test_what_is_free_on_a_machine_and_in_its_groups(tmp_path, available, own, groups, free) -> None:
    found = machine(tmp_path, available, own, **groups).read(False)
    assert found == ({} if free is None else {CPU: free * MB})


def test_what_is_free_on_gpus(tmp_path: Path) -> None:
    found = machine(tmp_path, 1).read(True)
    assert (found[Device.GPU, 0], found[Device.GPU, 1]) == (5 * MB, 0)


def test_files_that_say_nothing_tell_nothing(tmp_path: Path) -> None:
    memory = machine(tmp_path, 1, top=(5, 1, 0))
    (tmp_path / "proc/meminfo").write_bytes(b"\xff\n\n")
    (tmp_path / "cgroup/memory.max").write_text("")
    assert memory.read(False) == {}


# -- the guard --------------------------------------------------------------------------------------------


def test_loads_in_work_count_together_and_give_back_what_they_asked_for(tmp_path: Path) -> None:
    async def play() -> None:
        memory = machine(tmp_path, 1000, top=(800, 100, 0))
        guard = MemoryGuard(memory)
        model = spec_of(MemoryNeed(Device.CPU, 300 * MB, 200 * MB))
        async with guard.loading(model):
            with pytest.raises(ServeError) as caught:
                async with guard.loading(model):
                    raise AssertionError("it was let in")
            assert (caught.value.code, caught.value.reason) == (Code.OUT_OF_MEMORY, reasons.NO_MEMORY)
            assert "there are 700 MB free, and 300 MB of them go to models" in caught.value.message
            async with guard.loading(spec_of(MemoryNeed(Device.CPU, 200 * MB, 200 * MB))):
                pass
            async with guard.loading(spec_of()):
                pass
        async with guard.loading(model):
            pass

    asyncio.run(play())


def test_of_several_at_once_as_many_are_let_in_as_fit(tmp_path: Path) -> None:
    async def play() -> list[object]:
        memory = machine(tmp_path, 1000)
        guard = MemoryGuard(memory)
        go = asyncio.Event()

        async def load() -> str:
            async with guard.loading(spec_of(MemoryNeed(Device.CPU, 300 * MB))):
                await go.wait()
                return "loaded"

        tasks = [asyncio.ensure_future(load()) for _ in range(5)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        while sum(task.done() for task in tasks) < 2:
            await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(play())
    assert results.count("loaded") == 3
    assert all(isinstance(each, ServeError) for each in results if each != "loaded")


def test_a_gpu_that_is_full_is_named_with_the_line(tmp_path: Path) -> None:
    async def play() -> None:
        memory = machine(tmp_path, 1000)
        guard = MemoryGuard(memory)
        group = InstanceGroup("g", device=Device.GPU, device_ids=(1,))
        model = replace(
            spec_of(MemoryNeed(Device.GPU, MB), groups=(group,)),
            origin={"limits.memory[0].required": Origin("f", "gpu.required_memory_mb", 3)},
        )
        with pytest.raises(ServeError, match=r"f:3 .*GPU 1 has 0 MB free"):
            async with guard.loading(model):
                raise AssertionError("it was let in")

    asyncio.run(play())
