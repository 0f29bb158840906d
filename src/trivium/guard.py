"""Keeps what a server could leave behind when it dies: it has a guard process, and a scratch folder that is locked.

Decides how the guard is started, kept alive and spoken to, and how processes are marked for it. What the guard does is
`trivium_worker.guard`'s business. Must not know what the processes and files are for.
"""

import itertools
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from trivium.scratch import make_scratch, sweep
from trivium_worker import guard

_log = logging.getLogger(__name__)

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
        self.scratch, self._folder = make_scratch(parent)
        self._lock = threading.Lock()
        self._groups: dict[int, str] = {}
        self._is_closed = self._is_ended = False
        self._server = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        try:
            self._process, self._pipe = _start(self.scratch, self._server)
        except OSError:
            os.close(self._folder)
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise

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
        """Remove the folder, and end the process. Blocking; nobody else waits for it. Further calls have no effect."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.close(self._folder)
        with self._lock:
            self._is_ended = True
        self._end()

    def _tell(self, line: bytes) -> None:
        if self._is_ended:
            return
        try:
            os.write(self._pipe, line)
        except OSError:  # somebody has ended it, or stopped it: another one takes over
            self._start_anew()

    def _start_anew(self) -> None:
        self._process.kill()
        self._end()
        try:
            self._process, self._pipe = _start(self.scratch, self._server)
            os.write(self._pipe, b"".join(map(self._begins, self._groups)))
        except OSError as error:
            _log.error(
                "The process that cleans up behind this server has ended, and another cannot be started: %s. It is "
                "tried again when a worker begins or ends.",
                error,
            )

    def _end(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = -1  # the number may soon be somebody else's
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start(scratch: Path, server: str) -> tuple["subprocess.Popen[bytes]", int]:
    """Start the process; it, and the descriptor to speak to it by, which does not block."""
    reading, writing = os.pipe()
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
