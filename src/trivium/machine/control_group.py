"""Reads what the control groups of this process allow: processors and memory, of either version of them.

The one place that reads their files. What follows from it is decided by `allowance_policy`, and by whoever opens
something. Each file is read when it is asked for: an operator may change a group while the server runs.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trivium.machine.allowance_policy import GroupAllowance, default_threads, whole_processors
from trivium_worker.wire import system

OPENMP = "OMP_NUM_THREADS"
"""The variable that PyTorch, and all other libraries that compute by OpenMP, take their number of threads from."""
_UNBOUNDED = 2**62
"""Bytes from which on version 1 means none: it writes the largest number of pages that it can count."""
_UNIFIED, _CPU_1, _MEMORY_1 = "", "cpu", "memory"
"""Controllers whose files lie in folders of their own in version 1; in version 2 they share one."""

_FOLDERS = {_CPU_1: ("cpu", "cpu,cpuacct")}
"""Folders of a controller that is mounted with another one, perhaps without a link of its own name."""


class ControlGroups:
    """Reads the groups that a process is in, and those around them, which bound it as well. `proc` is where the system
    tells of the process, `root` where the files of groups are.
    """

    def __init__(self, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc = proc
        self._root = root

    def allowance(self) -> GroupAllowance:
        """Return the least that any of the groups allows. Blocking, for less than a millisecond."""
        return GroupAllowance(
            min(self._processors(), default=None),
            min((most for most, _, _ in self._memory() if most is not None), default=None),
        )

    def free_memory(self) -> Iterator[int]:
        """Yield for each group that bounds memory the bytes that are left in it; what it can drop counts as free."""
        for most, used, reclaimable in self._memory():
            if most is not None and used is not None:
                yield most - used + reclaimable

    def out_of_memory_kills(self) -> int | None:
        """Count the processes of this group that the kernel has killed for want of memory; None where unknown."""
        for folder in self._groups(_UNIFIED):
            count = read_table(folder / "memory.events").get("oom_kill")
            if count is not None:
                return count
        for folder in self._groups(_MEMORY_1):
            count = read_table(folder / "memory.oom_control").get("oom_kill")
            if count is not None:
                return count
        return None

    def _processors(self) -> Iterator[float]:
        for folder in self._groups(_UNIFIED):
            most, _, period = _text(folder / "cpu.max").partition(" ")
            yield from _share(most, period)
        for folder in self._groups(_CPU_1):
            yield from _share(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))

    def _memory(self) -> Iterator[tuple[int | None, int | None, int]]:
        """Yield the most that each group may have, what it has, and how much of that the kernel can drop."""
        for folder in self._groups(_UNIFIED):
            reclaimable = read_table(folder / "memory.stat").get("inactive_file", 0)
            yield _number(folder / "memory.max"), _number(folder / "memory.current"), reclaimable
        for folder in self._groups(_MEMORY_1):
            reclaimable = read_table(folder / "memory.stat").get("total_inactive_file", 0)
            most = _number(folder / "memory.limit_in_bytes")
            bound = None if most is None or most >= _UNBOUNDED else most
            yield bound, _number(folder / "memory.usage_in_bytes"), reclaimable

    def _groups(self, controller: str) -> Iterator[Path]:
        """Yield the folder of this process's group and of those around it: of version 2 without a controller, of
        version 1 with one. In a container the path may be the host's, of which only the last folder is there.
        """
        path = ""
        for line in _text(self._proc / "self/cgroup").splitlines():
            _, controllers, rest = (*line.split(":", 2), "", "")[:3]
            path = rest if controller in controllers.split(",") else path
        for top in map(self._root.joinpath, _FOLDERS.get(controller, (controller,))):
            folder = top / path.strip("/")
            while folder != top and top in folder.parents:
                yield folder
                folder = folder.parent
            yield top


def allowance() -> GroupAllowance:
    """Return what the control groups of this process allow."""
    return ControlGroups().allowance()


def usable_processors() -> int:
    """Return how many processors this process can keep busy: those that it may run on, as far as its control groups
    give it their time; a part of one counts as one.
    """
    return whole_processors(len(system.processors()), allowance())


def threads() -> int | None:
    """Return how many threads an engine takes where its model does not say; None: as many as the engine likes."""
    return default_threads(len(system.processors()), allowance())


def within_group(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of a program whose libraries would count the machine's processors, with what tells them
    of the control group's; what somebody has set stays as it is.
    """
    count = threads()
    return environment if count is None else {OPENMP: str(count), **environment}


def bound_threads(torch: Any) -> None:
    """Have PyTorch compute by no more threads in this process than its control groups give it time for. An operator's
    own variable was read by PyTorch itself, and stays; the count of a model is set later.
    """
    count = threads()
    if count is not None and OPENMP not in os.environ and torch.get_num_threads() > count:
        torch.set_num_threads(count)


def read_table(path: Path) -> Mapping[str, int]:
    """Return the numbers of a file of lines like `name: number unit`; empty where there is none."""
    found: dict[str, int] = {}
    for line in _text(path).splitlines():
        name, *rest = line.split() or ("",)
        if rest and rest[0].isascii() and rest[0].isdigit():
            found[name.rstrip(":")] = int(rest[0])
    return found


def _share(quota: str, period: str) -> Iterator[float]:
    """Yield the processors that a quota of microseconds in each period comes to; nothing for none, as `max` or -1."""
    if quota.isascii() and quota.isdigit() and period.isascii() and period.isdigit() and int(period):
        yield int(quota) / int(period)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    """Return the number in a file; None for any other word, such as `max`."""
    text = _text(path)
    return int(text) if text.isascii() and text.isdigit() else None
