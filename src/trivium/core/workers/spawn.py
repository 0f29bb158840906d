"""Starts a worker process: by exec, in a session of its own, with the descriptors that it needs and no others."""

import contextlib
import mmap
import os
import signal
import socket
import subprocess
from dataclasses import dataclass

from trivium.types.errors import Code, ServeError
from trivium.types.running import Program

PAGE = mmap.PAGESIZE
BEGUN_MARK = 0
"""Which word of the page of marks holds the number of the last batch that user code got."""


@dataclass(slots=True)
class Spawned:
    """A process just started. Its end of everything is closed here."""

    process: "subprocess.Popen[bytes]"
    wire: socket.socket
    marks: memoryview
    outputs: tuple[int, int]
    """Descriptors to read its standard output and error from; not blocking."""

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the process and whatever it has started in its session. Nothing happens once it has been reaped."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


def spawn(program: Program, arena: int) -> Spawned:
    """Start it. Blocking, some milliseconds. LOAD_FAILED where the interpreter cannot be started."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for end in (ours, theirs):
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, 2**20)
    page = os.memfd_create("trivium-marks", os.MFD_CLOEXEC)
    os.ftruncate(page, PAGE)
    outputs = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
    passed = (theirs.fileno(), page, arena)
    try:
        process = subprocess.Popen(
            [*program.command, *map(str, passed)],
            cwd=program.directory,
            env=dict(program.environment),
            stdin=subprocess.DEVNULL,
            stdout=outputs[0][1],
            stderr=outputs[1][1],
            pass_fds=passed,
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        for reading, _ in outputs:
            os.close(reading)
        os.close(page)
        raise ServeError(
            Code.LOAD_FAILED,
            f"The interpreter {program.command[0]} could not be started in {program.directory}: "
            f"{error.strerror}. Give the path of a Python 3.8 or newer that is there and may be run.",
        ) from error
    finally:
        theirs.close()
        for _, writing in outputs:
            os.close(writing)
    marks = memoryview(mmap.mmap(page, PAGE)).cast("Q")
    os.close(page)
    for reading, _ in outputs:
        os.set_blocking(reading, False)
    ours.setblocking(False)
    return Spawned(process, ours, marks, (outputs[0][0], outputs[1][0]))
