"""Runs a command to its end, with what it starts: in a process group of its own, in the care of a guard.

It can be stopped at any moment, and is then killed with all of its group. What it prints is read as fast as it comes;
of it so many lines are passed on, and the last ones kept.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trivium.types.interfaces import ProcessGuard
from trivium_worker.wire import system

MOST_LINES, LONGEST, KEPT_LINES, MOST_WORDS = 200, 4096, 8, 1000
"""Lines that are passed on, bytes of each, lines that are kept of the end, and characters of these together."""

_PIECE = 2**16
_LOOK_SECONDS = 0.2
"""How soon a stop is noticed."""
_LAST_PIECES = 64
"""Pieces of output that are read behind the end of the process: what it has started may go on printing."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """Says how a command ended: its status, negative for a signal, its last lines, and was it stopped?"""

    status: int
    was_stopped: bool
    last: Sequence[str]

    @property
    def how(self) -> str:
        """Return how it ended and its last words, for a sentence to go on with."""
        way = (
            f"ended with status {self.status}" if self.status >= 0 else f"was killed by signal {-self.status}"
        )
        words = " / ".join(self.last)
        if len(words) > MOST_WORDS:
            words = "... " + words[-MOST_WORDS:]
        return ("was stopped" if self.was_stopped else way) + (f"; its last words: {words}" if words else "")


def run_command(
    command: Sequence[str],
    directory: Path,
    variables: Mapping[str, str],
    stop: threading.Event,
    guard: ProcessGuard,
    say: Callable[[str], None],
) -> CommandEnd:
    """Run it to its end, or until `stop` is set. Blocking. Raises OSError where it cannot be started."""
    environment = guard.marked(variables)
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None, "it was started with a pipe from it"
    lines = _Lines(say)
    try:
        guard.watch(process.pid, environment)
        with process.stdout:
            was_stopped = _follow(process, process.stdout.fileno(), lines, stop)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # it is not reaped yet: the number is nobody else's
        status = process.wait()
        guard.release(process.pid)
    return CommandEnd(status, was_stopped, lines.end())


def _follow(process: "subprocess.Popen[bytes]", output: int, lines: "_Lines", stop: threading.Event) -> bool:
    """Read until it has ended or is to be stopped; tell which. The process is left to be reaped."""
    os.set_blocking(output, False)
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        is_open, left = True, _LAST_PIECES
        while not stop.is_set():
            has_ended = system.has_ended(process)
            if is_open and left and selector.select(0 if has_ended else _LOOK_SECONDS):
                piece = os.read(output, _PIECE)
                lines.take(piece)
                is_open = bool(piece)
                left -= has_ended
            elif has_ended:
                return False
            elif not is_open:
                stop.wait(_LOOK_SECONDS)
    return True


class _Lines:
    """Passes on the first lines of an output, counts the others, and keeps the last."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._rest = b""
        self._count = 0
        self._last: deque[str] = deque(maxlen=KEPT_LINES)

    def take(self, piece: bytes) -> None:
        """Take what was read."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > _PIECE:
            self._line(self._rest)
            self._rest = b""

    def end(self) -> Sequence[str]:
        """Nothing more comes: return the last lines."""
        if self._rest:
            self._line(self._rest)
        if self._count > MOST_LINES:
            self._say(f"{self._count - MOST_LINES} lines more were not logged")
        return tuple(self._last)

    def _line(self, line: bytes) -> None:
        text = line[:LONGEST].decode("utf-8", "backslashreplace").strip()
        if not text:
            return
        self._count += 1
        self._last.append(text)
        if self._count <= MOST_LINES:
            self._say(text)
