"""What is found of a machine, judged, and the quota that control groups give."""

from pathlib import Path

import pytest

from trivium.machine.allowance_policy import GroupAllowance
from trivium.machine.control_group import ControlGroups
from trivium.machine.doctor_policy import (
    Diagnosis,
    Imported,
    Library,
    MachineVerdict,
    judge_clock,
    judge_descriptors,
    judge_gpus,
    judge_library,
    judge_memory,
    judge_port,
    judge_processors,
    judge_python,
    judge_scratch,
    judge_shared_memory,
)

GOOD, NOTE, BROKEN = MachineVerdict
_NEEDED, _EXTRA = Library("numpy", "everything", is_required=True), Library("torch", "TorchScript", "torch")
MIB, GIB = 2**20, 2**30

CASES: dict[str, tuple[Diagnosis, MachineVerdict, str]] = {
    "python": (judge_python((3, 12, 1), True), GOOD, "3.12.1"),
    "old python": (judge_python((3, 10, 9), True), BROKEN, "3.11 or newer"),
    "32 bits": (judge_python((3, 12, 1), False), BROKEN, "64 bits"),
    "library": (judge_library(_EXTRA, Imported("2.0"), "pip"), GOOD, "2.0"),
    "no library": (judge_library(_EXTRA, None, "pip install x"), GOOD, "not installed"),
    "no library that is needed": (judge_library(_NEEDED, None, "pip install x"), BROKEN, "pip install x"),
    "broken library": (judge_library(_EXTRA, Imported(fault="no libfoo"), "pip"), BROKEN, "no libfoo"),
    "illegal instruction": (judge_library(_EXTRA, Imported(signal="SIGILL"), "pip"), BROKEN, "SIGILL"),
    "hanging library": (judge_library(_EXTRA, Imported(is_late=True), "pip"), BROKEN, "did not end in time"),
    "descriptors": (judge_descriptors(1024, 1_048_576), GOOD, "1048576"),
    "any descriptors": (judge_descriptors(1024, -1), GOOD, "any number"),
    "few descriptors": (judge_descriptors(1024, 4096), NOTE, "--max-connections 2048"),
    "shm": (judge_shared_memory(GIB, GIB), GOOD, "1.0 GiB"),
    "docker's shm": (judge_shared_memory(64 * MIB, 64 * MIB), NOTE, "--shm-size"),
    "full shm": (judge_shared_memory(GIB, MIB), NOTE, "1 MiB free"),
    "no shm": (judge_shared_memory(None, 0), NOTE, "there is none"),
    "scratch": (judge_scratch("/tmp", 2 * GIB), GOOD, "/tmp"),
    "small scratch": (judge_scratch("/tmp", MIB), NOTE, "TMPDIR"),
    "no scratch": (judge_scratch("/tmp", None), BROKEN, "cannot be written"),
    "memory": (judge_memory(2 * GIB), GOOD, "2.0 GiB"),
    "little memory": (judge_memory(500 * MIB), NOTE, "500 MiB"),
    "unknown memory": (judge_memory(None), GOOD, "not known"),
    "processors": (judge_processors(8, GroupAllowance(), {}), GOOD, "8"),
    "quota": (judge_processors(64, GroupAllowance(2.5), {}), GOOD, "for 3"),
    "quota of half a one": (judge_processors(2, GroupAllowance(0.5), {}), GOOD, "for 1"),
    "quota that is heeded": (
        judge_processors(64, GroupAllowance(2.5), {"OMP_NUM_THREADS": "2"}),
        GOOD,
        "OMP_NUM_THREADS=2",
    ),
    "quota that is not": (judge_processors(64, GroupAllowance(2.5), {"OMP_NUM_THREADS": "8"}), NOTE, "halts"),
    "clock": (judge_clock(1e9, 1e9 + 3600), GOOD, ""),
    "clock of 1970": (judge_clock(1000, 1e9), BROKEN, "timedatectl"),
    "port": (judge_port("HTTP", 8080, ""), GOOD, "free"),
    "port in use": (judge_port("HTTP", 8080, "address already in use"), NOTE, "--http-port"),
    "no gpus": (judge_gpus(0, [], "no"), GOOD, "none"),
    "gpus": (judge_gpus(1, ["0: a GPU of 80.0 GiB"], "yes"), GOOD, "80.0 GiB"),
    "gpus without a driver": (judge_gpus(2, [], ""), NOTE, "--gpus all"),
    "gpus that torch does not see": (judge_gpus(1, ["0: a GPU"], "no"), NOTE, "CUDA_VISIBLE_DEVICES"),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str) -> None:
    found, verdict, words = CASES[name]
    assert found.verdict is verdict
    assert words in f"{found.found} {found.mend}"
    assert found.mend or verdict is GOOD


def write(root: Path, files: dict[str, str]) -> tuple[Path, Path]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root / "proc", root / "groups"


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "groups/a/b/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "groups/a/b/cpu.max": "150000 100000\n"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "groups/a/b/cpu.max": "400000 100000\n",
                "groups/a/cpu.max": "200000 100000",
            },
            2.0,
        ),
        ({"proc/self/cgroup": "0::/\n", "groups/cpu.max": "50000 100000\n"}, 0.5),
        (
            {
                "proc/self/cgroup": "4:memory:/m\n3:cpu,cpuacct:/d\n",
                "groups/cpu,cpuacct/d/cpu.cfs_quota_us": "300000\n",
                "groups/cpu,cpuacct/d/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            {
                "proc/self/cgroup": "1:cpu:/of/outside\n",
                "groups/cpu/cpu.cfs_quota_us": "100000",
                "groups/cpu/cpu.cfs_period_us": "100000",
            },
            1.0,
        ),
        ({"groups/cpu/cpu.cfs_quota_us": "-1\n", "groups/cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"groups/cpu.max": "rubbish"}, None),
    ],
)
def test_quotas(files: dict[str, str], wanted: float | None, tmp_path: Path) -> None:
    assert ControlGroups(*write(tmp_path, files)).allowance().processors == wanted
