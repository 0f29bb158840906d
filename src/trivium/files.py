"""Opens files that somebody else has put there, without waiting for what never comes."""

import errno
import mmap
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for anything else: a named pipe would be waited for until
    somebody writes to it, a device may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"{_kind(mode)}, not a file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def mapped_file(path: Path) -> memoryview:
    """Return the bytes of a regular file, which the system reads as they are looked at, and lets go when nobody has
    them any more. Raises OSError as `open_file`.
    """
    with open_file(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def oddity(path: Path) -> str:
    """Say what lies at the path where that is neither file nor folder, like "a named pipe"; empty where it is, or where
    nothing can be said.
    """
    try:
        return _kind(path.stat().st_mode)
    except (OSError, ValueError):
        return ""


def lies_within(path: Path, folder: str | Path) -> bool:
    """Tell whether a path lies in a folder once all links are followed, those of the folder's own name included."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _kind(mode: int) -> str:
    return next((kind for holds, kind in _KINDS if holds(mode)), "")
