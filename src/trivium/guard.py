"""Keeps what a server could leave behind when it dies: it has a guard process, and a scratch folder that is locked.

Decides how the guard is started, kept alive and spoken to, how processes are marked for it, and which folders nobody
owns any more. What the guard does is `trivium_child.guard`'s business. Must not know what the processes and files are
for.
"""

import contextlib
import fcntl
import itertools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from trivium_child import guard

PREFIX = "trivium-scratch-"
_UNFINISHED = "trivium-new-"
_UNFINISHED_SECONDS = 3600.0
"""After which a folder that nobody has locked was left by a server that died before it could."""
END_SECONDS = 2.0


class ServerGuard:
    """Owns a server's scratch folder and its guard process. All but `close` may be called in any thread.

    The folder is locked as long as the server lives: cleaners of temporary folders leave it alone, and so do other
    servers, which remove at their start what is not locked.
    """

    def __init__(self, parent: Path | None = None) -> None:
        """Make the folder, in that of temporary files if no other is given, and start the process. Removes what dead
        servers of this user have left there. OSError where there is no room.
        """
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        sweep(parent)
        self.scratch, self._folder = _make(parent)
        self._lock = threading.Lock()
        self._groups: dict[int, str] = {}
        self._is_closed = False
        self._server = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._process, self._pipe = _start(self.scratch, self._server)

    @property
    def pid(self) -> int:
        """Return the number of the guard process."""
        return self._process.pid

    def marked(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment for one new process, by which whatever that process starts can be found. The marks
        that are there stay: this server may itself run in a worker of another one.
        """
        marks = f"{environment.get(guard.MARKS, '')} {self._server}.{next(self._numbers)}"
        return {**environment, guard.MARKS: marks.lstrip()}

    def watch(self, group: int, environment: Mapping[str, str]) -> None:
        """Have a process group killed when the server dies; its leader was started in this `marked` environment."""
        with self._lock:
            self._groups[group] = environment[guard.MARKS].rpartition(" ")[2]
            self._tell(self._begins(group))

    def release(self, group: int) -> None:
        """Leave a process group alone from now on: it has ended. What has left it is killed, a little later."""
        with self._lock:
            self._groups.pop(group, None)
            self._tell(b"-%d\n" % group)

    def _begins(self, group: int) -> bytes:
        return f"+{group} {self._groups[group]}\n".encode()

    def close(self) -> None:
        """Remove the folder, and end the process. Blocking. Further calls have no effect."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            shutil.rmtree(self.scratch, ignore_errors=True)
            os.close(self._folder)
            self._end()

    def _tell(self, line: bytes) -> None:
        if self._is_closed:
            return
        try:
            os.write(self._pipe, line)
        except OSError:  # somebody has ended it, or stopped it: another one takes over
            self._process.kill()
            self._end()
            self._process, self._pipe = _start(self.scratch, self._server)
            os.write(self._pipe, b"".join(map(self._begins, self._groups)))

    def _end(self) -> None:
        os.close(self._pipe)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start(scratch: Path, server: str) -> tuple["subprocess.Popen[bytes]", int]:
    """Start the process; it, and the descriptor to speak to it by, which does not block."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(scratch), server],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return process, writing


def _make(parent: Path) -> tuple[Path, int]:
    """Make a scratch folder and lock it; it, and the descriptor that holds the lock. It has its name only once it is
    locked, so that nobody who sweeps meanwhile takes it for one that was left.
    """
    made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=parent))
    descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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
