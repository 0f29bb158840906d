"""The file by which a TorchServe is found again: its process's number, and a lock for as long as that lives.

Decides whether a server runs, whatever number the file holds: whoever holds its lock does. A number alone proves
nothing, since numbers are given again. Source: spec sheet `torchserve`, section 1.
"""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil

from trivium.types.errors import Code, ServeError

NAME = ".model_server.pid"
_LONGEST = 32
_OURS, _ORIGINAL = "torchserve", "org.pytorch.serve.ModelServer"


class PidState(Enum):
    """Says what a pid file tells of its process."""

    ABSENT = "there is none"
    RUNNING = "its server runs"
    ORPHAN = "its server is gone"


@dataclass(frozen=True, slots=True)
class PidRecord:
    """A pid file as found: its state, and the number of the server that runs."""

    state: PidState
    pid: int = 0


class PidFile:
    """The pid file of a folder for temporary files; one server has it at a time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._descriptor = -1

    def look(self) -> PidRecord:
        """Say whether a server runs, without changing anything. Raises INVALID for a file that cannot be read."""
        try:
            # A named pipe is not waited for: it holds no number, and so is an orphan.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return PidRecord(PidState.ABSENT)
        except OSError as error:
            raise self._unfit("read", error) from error
        try:
            text = os.read(descriptor, _LONGEST).decode("ascii", "replace").strip()
            is_held = _is_held(descriptor)
        except OSError as error:
            raise self._unfit("read", error) from error
        finally:
            os.close(descriptor)
        pid = int(text) if text.isascii() and text.isdigit() else 0
        runs = pid > 1 and _is_server(pid, is_held)
        return PidRecord(PidState.RUNNING, pid) if runs else PidRecord(PidState.ORPHAN, pid)

    def take(self) -> bool:
        """Write this process's number into it, and hold it until the process ends; False where another server has it.
        Raises INVALID for a file that cannot be written.
        """
        descriptor = self._locked()
        if descriptor < 0:
            return False
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except OSError as error:
            os.close(descriptor)
            raise self._unfit("written", error) from error
        self._descriptor = descriptor
        return True

    def _locked(self) -> int:
        """Return the file's descriptor, locked; -1 where another process has the lock."""
        while True:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            except OSError as error:
                raise self._unfit("written", error) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_there(descriptor):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                return -1
            os.close(descriptor)  # whoever had it took it away in this moment

    def _is_there(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Take it away, if this process has it: another server may start."""
        if self._descriptor >= 0:
            self.remove()
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Take it away, as far as that can be."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _unfit(self, what: str, error: OSError) -> ServeError:
        return ServeError(
            Code.INVALID,
            f"The pid file {self.path} cannot be {what}: {error.strerror}. Remove it, or give another folder for "
            "temporary files by the variable TEMP.",
        )


def _is_held(descriptor: int) -> bool:
    """Tell whether another process holds the lock of this file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _is_server(pid: int, is_held: bool) -> bool:
    """Tell whether a process is one of ours, if the lock `is_held`, or the original's, which holds none."""
    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
    return _ORIGINAL in words or (is_held and _OURS in words)
