"""The operating system's side of a worker: how it starts, what it prints, that it has ended, and how.

A worker starts by exec, in a session of its own, with the descriptors that it needs and no others. One that floods its
output is read as fast as it writes, so that it is not held up; of what it says only so many lines a second reach the
log, and the rest is counted. The reading lives on the loop. Nothing here knows of batches; what the end of a worker
means for them is `process`'s business.
"""

import asyncio
import contextlib
import logging
import mmap
import os
import re
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trivium.codecs.traceback_lines import TracebackLines
from trivium.machine.control_group import ControlGroups, within_group
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.interfaces import NO_GUARD, ProcessGuard
from trivium.types.observing import DeathCause, last_words
from trivium.types.recording import WORKER_LINE, RequestName, WorkerLine, WorkerVoice
from trivium.types.running import WorkerCommand
from trivium_worker.wire import system

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
    guard: ProcessGuard

    def discard(self) -> None:
        """End it, and give back all that is held of it here. For one that nobody has taken over."""
        self.kill_for_good()
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

    def kill_for_good(self) -> None:
        """Kill all of it; the guard has no more to do with it then."""
        self.kill()  # before it is reaped: until then its group's number is nobody else's
        self.guard.release(self.process.pid)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the process and whatever it has started in its session. Nothing happens once it has been reaped."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


def spawn(program: WorkerCommand, arena: int, guard: ProcessGuard = NO_GUARD) -> Spawned:
    """Start it, in the care of a guard. Blocking, some milliseconds. LOAD_FAILED where it cannot be started; then
    nothing is left.
    """
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        try:
            environment = guard.marked(within_group(program.environment))
            process, wire, page, outputs = _start(program, environment, arena, ours, theirs)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            words = said_by(error)
            raise ServeError(
                Code.LOAD_FAILED,
                f"The interpreter {program.command[0]} could not be started in {program.directory}: {words}. Give the "
                "path of a Python 3.10 or newer that is there and may be run, and leave the server some descriptors.",
            ) from error
        ours.pop_all()
    guard.watch(process.pid, environment)
    marks = memoryview(mmap.mmap(page, PAGE)).cast("Q")
    os.close(page)
    return Spawned(process, wire, marks, outputs, guard)


def _start(
    program: WorkerCommand,
    environment: Mapping[str, str],
    arena: int,
    ours: contextlib.ExitStack,
    theirs: contextlib.ExitStack,
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
    page = system.anonymous_memory("trivium-marks", PAGE)
    ours.callback(os.close, page)
    reading, writing = [], []
    for _ in range(2):
        ends = os.pipe()
        ours.callback(os.close, ends[0])
        theirs.callback(os.close, ends[1])
        os.set_blocking(ends[0], False)
        reading.append(ends[0])
        writing.append(ends[1])
    passed = (inherited.fileno(), page, arena)
    process = subprocess.Popen(
        [*program.command, *map(str, passed)],
        cwd=program.directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=writing[0],
        stderr=writing[1],
        pass_fds=passed,
        start_new_session=True,
    )
    return process, wire, page, (reading[0], reading[1])


HOLDING_SECONDS = 0.1
"""For which the beginning of a traceback waits for its rest."""

KEPT_LINES = 50
LINES_PER_SECOND = 100
LONGEST = 4096
PIECE = 2**16
PIECES_AT_ONCE = 64


Hears = Callable[[str], None]
"""Takes a line of a worker's output."""


class Output:
    """One stream of one worker, read on the loop from `descriptor`, which it owns. `hears` gets each line, too. Records
    of the log say by its `voice` which instance has printed a line, and how it stands, where that is known.
    """

    def __init__(
        self,
        descriptor: int,
        name: str,
        level: int,
        log: logging.Logger,
        hears: Hears | None = None,
        voice: WorkerVoice | None = None,
    ) -> None:
        self._descriptor = descriptor
        self._name = name
        self._level = level
        self._log = log
        self._hears = hears
        self._voice = voice
        self._joined = None if voice is None or not voice.follows else TracebackLines()
        self._begun_with: tuple[RequestName, ...] = ()  # the requests in hand when a traceback began
        self._flusher: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._second = 0.0
        self._said = 0
        self._unsaid = 0
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
        self._loop.add_reader(descriptor, self.read, 1)

    def close(self) -> None:
        """Take in what is still there, and close. Further calls have no effect."""
        if self._descriptor >= 0:
            self.read(PIECES_AT_ONCE)
        if self._descriptor >= 0:
            self._end()

    @property
    def pending_bytes(self) -> int:
        """Bytes of the line that has not ended yet."""
        return len(self._rest)

    def read(self, pieces: int) -> None:
        """Take in so many pieces at most of what the worker has written."""
        for _ in range(pieces):
            try:
                piece = os.read(self._descriptor, PIECE)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self._end()
                return
            self._take(piece)

    def _end(self) -> None:
        """Nothing more comes, or is wanted: the line that has not ended is one."""
        self._loop.remove_reader(self._descriptor)
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1
        self._end_line()
        self._tell_unsaid()
        self._flush()

    def end_run(self) -> None:
        """Take what has come of a line, or of a traceback, as whole: what follows belongs to other requests."""
        self._end_line()
        self._flush()

    def _end_line(self) -> None:
        if self._rest:
            self._line(_last_state(self._rest))
            self._rest = b""

    def _take(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._line(_last_state(line))
        self._rest = _last_state(rest) + (b"\r" if rest.endswith(b"\r") else b"")
        if len(self._rest) > LONGEST:
            self._line(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
        if self._hears is not None:
            self._hears(line[:LONGEST].decode("utf-8", "replace"))
        now = self._loop.time()
        if now - self._second >= 1:
            self._tell_unsaid()
            self._second, self._said = now, 0
        self._said += 1
        if self._said > LINES_PER_SECOND and self._unsaid:
            self._unsaid += 1
            self.last.append(line[:LONGEST].decode("utf-8", "replace"))
            return
        text = line[:LONGEST].decode("utf-8", "backslashreplace")
        self.last.append(text)
        if self._said > LINES_PER_SECOND:
            self._unsaid = 1
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        voice, joined = self._voice, self._joined
        if voice is not None:
            voice.say(text)
        if joined is None or voice is None:
            self._tell(text, ())
            return
        if not joined.is_holding:
            self._begun_with = voice.doing()
        for whole in joined.add(text):
            self._tell(whole, self._begun_with)
        if joined.is_holding and self._flusher is None:
            self._flusher = self._loop.call_later(HOLDING_SECONDS, self._flush)

    def _flush(self) -> None:
        """Wait no longer for the rest of a traceback."""
        if self._flusher is not None:
            self._flusher.cancel()
            self._flusher = None
        for whole in () if self._joined is None else self._joined.rest():
            self._tell(whole, self._begun_with)

    def _tell(self, text: str, requests: tuple[RequestName, ...]) -> None:
        extra, voice = None, self._voice
        if voice is not None:
            stream = self._name.rpartition(" ")[2]
            extra = {WORKER_LINE: WorkerLine(voice.instance, stream, text, voice.name, requests)}
        self._log.log(self._level, "%s: %s", self._name, text, extra=extra)

    def _tell_unsaid(self) -> None:
        if self._unsaid:
            self._write(f"{self._unsaid} lines more were not logged")
            self._unsaid = 0


_PROGRESS = re.compile(rb"\d ?%|\d/\d")


def _last_state(line: bytes) -> bytes:
    """Return the last state of a progress bar, which goes back to the beginning of its line each time; any other line
    as it is.
    """
    whole = line.rstrip(b"\r")
    last = whole[whole.rfind(b"\r") + 1 :]
    return last if _PROGRESS.search(last) else whole


STATUSES = {
    70: "ended: its connection to the server had failed, perhaps because user code had closed it",
    72: "ended: it could not write to the server any more, perhaps because user code had closed its connection",
}
"""Exit statuses that `trivium_worker` gives itself."""

_NAMES = {number.value: number.name for number in signal.Signals}


def describe(
    name: str,
    pid: int,
    status: int | None,
    why: str,
    memory: tuple[int | None, int | None],
) -> str:
    """Say how a worker has ended. `status` as of `Popen.returncode` (None: it still ran); `why` it was killed by us, if
    it was; `memory` the counts of `out_of_memory_kills` when it started and now.
    """
    text = f"Worker {name} (process {pid}) {_how(status, why)}."
    before, now = memory
    if status == -signal.SIGKILL and not why:
        if before is not None and now is not None and now > before:
            text += " The kernel has killed for want of memory meanwhile: there was less than it needed."
        else:
            text += " Nobody here sent that; the kernel does when memory runs out, or somebody did by hand."
    return text


def _how(status: int | None, why: str) -> str:
    if why:
        return f"was killed: {why}"
    if status is None:
        return "closed its connection and was killed"
    if status in STATUSES:
        return STATUSES[status]
    if status < 0:
        return f"was killed by {_NAMES.get(-status, f'signal {-status}')}"
    return f"ended by itself with status {status}"


def cause_of_death(status: int | None, memory: tuple[int | None, int | None]) -> DeathCause:
    """Return by what a worker was lost that nobody here has killed; arguments are as of `describe`."""
    before, now = memory
    if status is None or status in STATUSES:
        return DeathCause.CONNECTION
    if status == -signal.SIGKILL and before is not None and now is not None and now > before:
        return DeathCause.OUT_OF_MEMORY
    return DeathCause.SIGNAL if status < 0 else DeathCause.EXIT


END_SECONDS = 10.0
"""For a worker that was told to stop and has nothing in hand for anybody; then SIGTERM, and after `TERM_SECONDS` more
SIGKILL.
"""
TERM_SECONDS = 2.0
LINGER = 0.2
"""Seconds between the end of the process and that of its connection, which a process that it forked may keep open."""
LOOK_SECONDS, LOOK_SECONDS_AT_END = 0.5, 0.02
"""Between two looks at a process whose end the system does not tell; the second once its connection has ended."""
BURIAL = 2.0
"""Seconds for the end of a process that was killed to become known."""


class ChildProcess:
    """Owns what has been spawned, but for its socket. `ended` is called once, when the process has."""

    def __init__(
        self,
        name: str,
        spawned: Spawned,
        log: logging.Logger,
        ended: Callable[[], None],
        hears: Hears | None = None,
        voice: WorkerVoice | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._spawned = spawned
        self._ended = ended
        self._why = ""
        self._oom_kills = ControlGroups().out_of_memory_kills()
        self._outputs = [
            Output(descriptor, f"{name} {stream}", level, log, hears, voice)
            for descriptor, stream, level in zip(
                spawned.outputs, ("stdout", "stderr"), (logging.INFO, logging.WARNING), strict=True
            )
        ]
        self.pid = spawned.process.pid
        self._is_over = self._is_buried = False
        self._begun = 0
        self._pidfd = system.end_of_process(self.pid)
        self._look: asyncio.TimerHandle | None = None
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._process_ended)
        else:
            self._look = self._loop.call_later(LOOK_SECONDS, self._look_for_end, LOOK_SECONDS)

    @property
    def has_ended(self) -> bool:
        """Has `ended` been called?"""
        return self._is_over

    def read_outputs(self, ends_lines: bool) -> None:
        """Take in what it has printed by now; if it `ends_lines`, a line without an end is one."""
        for output in self._outputs:
            output.read(PIECES_AT_ONCE)
            if ends_lines:
                output.end_run()

    @property
    def begun(self) -> int:
        """The number of the last batch that user code got, also after the end."""
        return self._begun if self._is_buried else self._spawned.marks[BEGUN_MARK]

    @property
    def was_killed_here(self) -> bool:
        """Has `kill` been called?"""
        return bool(self._why)

    def kill(self, why: str) -> None:
        """End it now, and whatever it has started; the first `why` goes into the post-mortem."""
        self._why = self._why or why
        self._spawned.kill()

    def end_within(self, seconds: float, more: float) -> None:
        """SIGTERM then, SIGKILL after so many more."""
        self._loop.call_later(seconds, self._spawned.kill, signal.SIGTERM)
        why = f"it was told to end, and had not {seconds + more:g} s later, {more:g} s after SIGTERM"
        self._loop.call_later(seconds + more, self._end, why)

    def _end(self, why: str) -> None:
        if not self._is_over:  # else it has ended by itself, and that is what its post-mortem says
            self.kill(why)

    def disconnected(self) -> None:
        """Its connection has ended, and so will it, most likely: where the system does not tell, look more often."""
        if self._look is not None:
            self._look.cancel()
            self._look_for_end(LOOK_SECONDS_AT_END)

    def _look_for_end(self, seconds: float) -> None:
        if system.has_ended(self._spawned.process):
            self._look = None
            self._process_ended()
        else:
            self._look = self._loop.call_later(seconds, self._look_for_end, seconds)

    def last_words(self) -> str:
        """The last lines on its standard error, for a sentence to end with; empty where there are none."""
        return last_words(list(self._outputs[1].last))

    def finalize(self) -> tuple[int | None, str, tuple[str, ...]]:
        """Its exit status, how it has ended, in sentences, and its last lines on standard error. What it has started in
        its session ends with it.
        """
        self._forget_pidfd()
        if self._look is not None:
            self._look.cancel()
            self._look = None
        self._spawned.kill_for_good()
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._spawned.process.wait(1.0)
        self._begun, self._is_buried = self.begun, True
        self._spawned.close_marks()
        for output in self._outputs:
            output.close()
        memory = self._oom_kills, ControlGroups().out_of_memory_kills()
        cause = describe(self._name, self.pid, status, self._why, memory)
        return status, cause, tuple(self._outputs[1].last)

    def cause_of_death(self, status: int | None) -> DeathCause:
        """Return by what it was lost, if it was not killed here; `status` is its exit status."""
        return cause_of_death(status, (self._oom_kills, ControlGroups().out_of_memory_kills()))

    def _process_ended(self) -> None:
        self._forget_pidfd()
        self._is_over = True
        self._ended()

    def _forget_pidfd(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
