"""Reads what bounds this process: descriptors, processors, shared memory, the folder for temporary
files. Nothing is changed.
"""

import os
import resource
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trivium_worker.wire import system

SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bytes of a file system, all and free."""

    total: int
    free: int


def descriptors() -> tuple[int, int]:
    """Return how many files and connections may be open, now and once the soft limit is raised; -1 for any number."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def space(folder: Path) -> DiskSpace | None:
    """Return the space of the file system that a folder is in; None where there is no such folder."""
    try:
        use = shutil.disk_usage(folder)
    except OSError:
        return None
    return DiskSpace(use.total, use.free)


def temporary_space() -> tuple[str, DiskSpace | None]:
    """Return the folder for temporary files and its space; None where it cannot be written. ("", None) without one."""
    try:
        folder = tempfile.gettempdir()
        with tempfile.TemporaryFile(dir=folder):
            return folder, space(Path(folder))
    except OSError:
        return os.environ.get("TMPDIR", ""), None


def processors() -> int:
    """Count the processors that this process may use."""
    return len(system.processors())
