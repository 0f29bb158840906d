"""Says where the cache of the user who runs this lies, in which what can be made again is kept."""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path


def user_cache(variables: Mapping[str, str], name: str) -> Path:
    """Return a folder of ours in the user's cache: below XDG_CACHE_HOME, else below the home. Without a home nobody can
    make it.
    """
    base = variables.get("XDG_CACHE_HOME", "")
    home = Path(base) if base.startswith("/") else Path(variables.get("HOME") or os.devnull) / ".cache"
    return home / "trivium" / name


def judge_owner(folder: Path) -> None:
    """Raise OSError for a folder in which somebody else than this user and the machine's owner may have put things."""
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid())
    if not is_ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(errno.EPERM, "it is no folder of this user that nobody else can write to", str(folder))
