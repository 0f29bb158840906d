"""Finds the control groups that this process is in, by which a container bounds it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

PROC, GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def own_groups(proc: Path = PROC, groups: Path = GROUPS) -> Iterator[Path]:
    """Yield the folders of this process's control group (version 2) and of those around it, the inmost first."""
    path = ""
    with contextlib.suppress(OSError):
        for line in (proc / "self/cgroup").read_text().splitlines():
            path = line.removeprefix("0::") if line.startswith("0::") else path
    yield from _upwards(groups, path)


def processor_quota(proc: Path = PROC, groups: Path = GROUPS) -> float | None:
    """Return how many processors' time the control groups of this process let it have, by version 2 (`cpu.max`) or 1
    (`cpu.cfs_quota_us`); None for no bound.
    """
    folders = [*own_groups(proc, groups), *_first_version(proc, groups)]
    found = [quota for folder in folders if (quota := _quota(folder)) is not None]
    return min(found, default=None)


def _first_version(proc: Path, groups: Path) -> Iterator[Path]:
    """Yield the folders of version 1 that bound processors. In a container the path may be that of outside."""
    path = ""
    with contextlib.suppress(OSError, ValueError):
        for line in (proc / "self/cgroup").read_text().splitlines():
            _, kinds, own = line.split(":", 2)
            path = own if "cpu" in kinds.split(",") else path
    for root in (groups / "cpu", groups / "cpu,cpuacct"):
        yield from _upwards(root, path)


def _upwards(root: Path, path: str) -> Iterator[Path]:
    folder = root / path.strip("/")
    while folder != root and root in folder.parents:
        yield folder
        folder = folder.parent
    yield root


def _quota(folder: Path) -> float | None:
    with contextlib.suppress(OSError, ValueError):
        most, period = (folder / "cpu.max").read_text().split()
        return None if most == "max" else int(most) / int(period)
    with contextlib.suppress(OSError, ValueError):
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        return quota / int((folder / "cpu.cfs_period_us").read_text()) if quota > 0 else None
    return None
