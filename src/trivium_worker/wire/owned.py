"""Judges whether a folder of files that will be trusted is this user's own."""

import errno
import os
import stat

COMPILE_CACHE = "TRIVIUM_COMPILE_CACHE"
"""The variable by which a server names the folder in which its workers keep what `torch.compile` makes."""


def judge_owner(folder: "str | os.PathLike[str]") -> None:
    """Raise OSError for a folder in which somebody else than this user and the machine's owner may have put things."""
    found = os.lstat(folder)
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid())
    if not is_ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(errno.EPERM, "it is no folder of this user that nobody else can write to", str(folder))
