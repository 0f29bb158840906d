"""What control groups of both versions allow, by made-up files, and what follows from it for threads and workers."""

from pathlib import Path

import pytest

from trivium.machine.allowance_policy import GroupAllowance, default_threads, in_words, whole_processors
from trivium.machine.control_group import ControlGroups

GB = 10**9


def groups(root: Path, own: str, files: dict[str, str]) -> ControlGroups:
    """The groups of a process whose /proc/self/cgroup says this, by the files of /sys/fs/cgroup."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    for name, text in files.items():
        path = root / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ControlGroups(root / "proc", root / "groups")


ONE = "9:name=systemd:/\n4:memory:/kube/pod\n1:cpu,cpuacct:/kube/pod\n0::/\n"
"""Version 1, as a container sees it that has no namespace of groups: the paths are the host's."""


@pytest.mark.parametrize(
    ("own", "files", "allowed"),
    [
        ("0::/\n", {}, (None, None)),
        ("", {}, (None, None)),
        ("0::/\n", {"cpu.max": "150000 100000\n", "memory.max": "2000000000\n"}, (1.5, 2 * GB)),
        ("0::/\n", {"cpu.max": "max 100000\n", "memory.max": "max\n"}, (None, None)),
        ("0::/\n", {"cpu.max": "50000 0\n", "memory.max": ""}, (None, None)),
        ("0::/\n", {"cpu.max": "50000\n", "memory.max": "much\n"}, (None, None)),
        ("0::/a/b\n", {"a/cpu.max": "100000 100000", "a/b/cpu.max": "max 100000"}, (1, None)),
        ("0::/a/b\n", {"a/memory.max": "7", "a/b/memory.max": "9", "memory.max": "8"}, (None, 7)),
        ("0::/../..\n", {"cpu.max": "400000 100000"}, (4, None)),
        (
            ONE,
            {
                "cpu/cpu.cfs_quota_us": "150000",
                "cpu/cpu.cfs_period_us": "100000",
                "memory/memory.limit_in_bytes": "2000000000",
            },
            (1.5, 2 * GB),
        ),
        (
            ONE,
            {
                "cpu/cpu.cfs_quota_us": "-1",
                "cpu/cpu.cfs_period_us": "100000",
                "memory/memory.limit_in_bytes": "9223372036854771712",
            },
            (None, None),
        ),
        (ONE, {"memory/kube/pod/memory.limit_in_bytes": "5", "memory/memory.limit_in_bytes": "9"}, (None, 5)),
        # Both versions at once, as systemd's hybrid has them: the least of both holds.
        (ONE, {"memory/memory.limit_in_bytes": "9", "memory.max": "5"}, (None, 5)),
    ],
)
def test_what_groups_allow(tmp_path: Path, own: str, files: dict[str, str], allowed) -> None:
    assert groups(tmp_path, own, files).allowance() == GroupAllowance(*allowed)


@pytest.mark.parametrize(
    ("own", "files", "free"),
    [
        ("0::/\n", {"memory.max": "900", "memory.current": "300"}, [600]),
        ("0::/\n", {"memory.max": "900", "memory.current": "300", "memory.stat": "inactive_file 50"}, [650]),
        ("0::/\n", {"memory.max": "max", "memory.current": "300"}, []),
        (
            ONE,
            {
                "memory/memory.limit_in_bytes": "900",
                "memory/memory.usage_in_bytes": "300",
                "memory/memory.stat": "inactive_file 7\ntotal_inactive_file 20\n",
            },
            [620],
        ),
    ],
)
def test_what_is_left_of_the_memory_of_groups(tmp_path: Path, own: str, files: dict[str, str], free) -> None:
    assert list(groups(tmp_path, own, files).free_memory()) == free


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("low 0\noom 4\noom_kill 3\noom_group_kill 1\n", 3),
        ("low 0\n", None),
        ("", None),
        ("oom_kill many\n", None),
        ("oom_kill\n", None),
    ],
)
@pytest.mark.parametrize("file", ["memory.events", "memory/memory.oom_control"])
def test_the_kernels_count_of_kills(tmp_path: Path, file: str, text: str, count: int | None) -> None:
    assert groups(tmp_path, "0::/\n", {file: text}).out_of_memory_kills() == count


def test_where_the_kernel_does_not_count(tmp_path: Path) -> None:
    assert groups(tmp_path, "0::/\n", {}).out_of_memory_kills() is None


@pytest.mark.parametrize(
    ("shown", "processors", "count", "threads"),
    [
        (8, None, 8, None),
        (8, 1.5, 2, 2),
        (8, 0.1, 1, 1),
        (8, 2.0, 2, 2),
        (8, 8.0, 8, None),
        (8, 64.0, 8, None),  # more than the machine has
        (1, 0.5, 1, None),  # no library takes less than one
    ],
)
def test_threads_follow_the_group(shown, processors, count, threads) -> None:
    allowed = GroupAllowance(processors)
    assert (whole_processors(shown, allowed), default_threads(shown, allowed)) == (count, threads)


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        (GroupAllowance(), ""),
        (GroupAllowance(8.0, 64 * GB), ""),
        (
            GroupAllowance(1.5, 2 * GB),
            "2 GB of memory and 1.5 of 8 processors by the control group; threads and workers are counted for 2",
        ),
        (GroupAllowance(None, 512 * 10**6), "512 MB of memory by the control group"),
        (
            GroupAllowance(0.25),
            "0.25 of 8 processors by the control group; threads and workers are counted for 1",
        ),
        (GroupAllowance(7.5), "7.5 of 8 processors by the control group"),
    ],
)
def test_what_is_said(allowed: GroupAllowance, words: str) -> None:
    assert in_words(allowed, 64 * GB, 8) == words
