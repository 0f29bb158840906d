"""Makes folders that are removed again, also those of a process that died: each is locked while its owner lives.

Cleaners of temporary folders leave a locked folder alone. Must not know what lies in them.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "trivium-scratch-"
_UNFINISHED = "trivium-new-"
_UNFINISHED_SECONDS = 3600.0
"""After which a folder that nobody has locked was left by a server that died before it could."""


def make_scratch(parent: Path) -> tuple[Path, int]:
    """Make a scratch folder and lock it; it, and the descriptor that holds the lock. It has its name only once it is
    locked, so that nobody who sweeps meanwhile takes it for one that was left.
    """
    made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=parent))
    try:
        descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # no descriptor is free
        made.rmdir()
        raise
    with contextlib.suppress(OSError):  # a file system without locks: then nobody else can lock it either
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    named = parent / (PREFIX + made.name.removeprefix(_UNFINISHED))
    made.rename(named)
    return named, descriptor


def sweep(parent: Path) -> list[Path]:
    """Remove the scratch folders in `parent` that are this user's and of servers that are no more. Returns them."""
    return [folder for folder in _left(parent) if _remove(folder)]


def _left(parent: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith((PREFIX, _UNFINISHED)) or not entry.is_dir(follow_symlinks=False):
                continue
            about = entry.stat(follow_symlinks=False)
            is_young = time.time() - about.st_mtime < _UNFINISHED_SECONDS
            if about.st_uid == os.geteuid() and not (entry.name.startswith(_UNFINISHED) and is_young):
                yield Path(entry.path)


def _remove(folder: Path) -> bool:
    """Remove it, unless somebody holds its lock."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
