"""Keeps what a server could leave behind when it dies: it has a guard process, and a scratch folder that is locked.

Decides how the guard is started, kept alive and spoken to. What the guard does is `trivium_child.guard`'s business.
Must not know what the processes and files are for.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from trivium.scratch import make_scratch, sweep
from trivium_child import guard

END_SECONDS = 2.0


class ServerGuard:
    """Owns a server's scratch folder and its guard process. `watch` and `release` may be called in any thread.

    The folder is locked as long as the server lives: cleaners of temporary folders leave it alone, and so do other
    servers, which remove at their start what is not locked.
    """

    def __init__(self, parent: Path | None = None) -> None:
        """Make the folder, in that of temporary files if no other is given, and start the process. Removes what dead
        servers of this user have left there. OSError where there is no room.
        """
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        sweep(parent)
        self.scratch, self._folder = make_scratch(parent)
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._is_closed = False
        self._process, self._pipe = _start(self.scratch)

    @property
    def pid(self) -> int:
        """Return the number of the guard process."""
        return self._process.pid

    def watch(self, group: int) -> None:
        """Have a process group killed when the server dies."""
        with self._lock:
            self._groups.add(group)
            self._tell(b"+%d\n" % group)

    def release(self, group: int) -> None:
        """Leave a process group alone from now on: it has ended."""
        with self._lock:
            self._groups.discard(group)
            self._tell(b"-%d\n" % group)

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
            self._process, self._pipe = _start(self.scratch)
            os.write(self._pipe, b"".join(b"+%d\n" % group for group in self._groups))

    def _end(self) -> None:
        os.close(self._pipe)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start(scratch: Path) -> tuple["subprocess.Popen[bytes]", int]:
    """Start the process; it, and the descriptor to speak to it by, which does not block."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(scratch)],
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
