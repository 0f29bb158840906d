"""Starts a worker process: by exec, in a session of its own, with the descriptors that it needs and no others."""

import contextlib
import mmap
import os
import signal
import socket
import subprocess
from dataclasses import dataclass

from trivium.types.errors import Code, ServeError
from trivium.types.running import WorkerCommand

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

    def discard(self) -> None:
        """End it, and give back all that is held of it here. For one that nobody has taken over."""
        self.kill()
        self.process.wait()
        self.wire.close()
        for output in self.outputs:
            os.close(output)
        self.close_marks()

    def close_marks(self) -> None:
        """Give back the page, and with it a descriptor. The marks cannot be read any more."""
        page = self.marks.obj
        self.marks.release()
        assert isinstance(page, mmap.mmap)
        page.close()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the process and whatever it has started in its session. Nothing happens once it has been reaped."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


def spawn(program: WorkerCommand, arena: int) -> Spawned:
    """Start it. Blocking, some milliseconds. LOAD_FAILED where it cannot be started; then nothing is left."""
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        try:
            process, wire, page, outputs = _start(program, arena, ours, theirs)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ServeError(
                Code.LOAD_FAILED,
                f"The interpreter {program.command[0]} could not be started in {program.directory}: {words}. Give the "
                "path of a Python 3.8 or newer that is there and may be run, and leave the server some descriptors.",
            ) from error
        ours.pop_all()
    marks = memoryview(mmap.mmap(page, PAGE)).cast("Q")
    os.close(page)
    return Spawned(process, wire, marks, outputs)


def _start(
    program: WorkerCommand, arena: int, ours: contextlib.ExitStack, theirs: contextlib.ExitStack
) -> tuple["subprocess.Popen[bytes]", socket.socket, int, tuple[int, int]]:
    """The process, the socket to it, the page of marks, what to read its outputs from. `ours` closes what it has
    opened for this process, `theirs` what the other one has inherited.
    """
    wire, inherited = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.callback(wire.close)
    theirs.callback(inherited.close)
    for end in (wire, inherited):
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, 2**20)
    wire.setblocking(False)
    page = os.memfd_create("trivium-marks", os.MFD_CLOEXEC)
    ours.callback(os.close, page)
    os.ftruncate(page, PAGE)
    reading, writing = [], []
    for _ in range(2):
        ends = os.pipe2(os.O_CLOEXEC)
        ours.callback(os.close, ends[0])
        theirs.callback(os.close, ends[1])
        os.set_blocking(ends[0], False)
        reading.append(ends[0])
        writing.append(ends[1])
    passed = (inherited.fileno(), page, arena)
    process = subprocess.Popen(
        [*program.command, *map(str, passed)],
        cwd=program.directory,
        env=dict(program.environment),
        stdin=subprocess.DEVNULL,
        stdout=writing[0],
        stderr=writing[1],
        pass_fds=passed,
        start_new_session=True,
    )
    return process, wire, page, (reading[0], reading[1])
