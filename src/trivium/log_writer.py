"""Writes a log in a thread of its own, so that nobody ever waits for whoever reads it: a bounded queue, no more.

Decides what is dropped when the reader is slow, and counts it. Must not know what a line means.
"""

import contextlib
import os
import select
import stat
import sys
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

from trivium.log_rotation import LogFileView, Rotation, is_due, pack_later, set_aside

MOST_BYTES = 4 * 2**20
"""Bytes that may wait for a slow reader before more are dropped."""

Lost = Callable[[int, str], bytes]
"""Makes what the log says of lines that it lost: their number, and why; nothing where it is said elsewhere."""

_REOPEN = object()
_TOO_SLOW = "whoever reads it is too slow"
_OPEN: "set[LogWriter]" = set()
"""Those of this process, whose logs they are."""


_KEPT: dict[int, int] = {}
"""Standard streams that have been replaced by what reads them, with what they were."""


def standard_output() -> int:
    """Return the descriptor of what the process was started with as its standard output."""
    return _KEPT[1] if 1 in _KEPT else sys.stdout.fileno()


def standard_error() -> int:
    """Return the descriptor of what the process was started with as its standard error."""
    return _KEPT[2] if 2 in _KEPT else sys.stderr.fileno()


_FIRST: list[Callable[[], None]] = []
"""What has to be done before the logs of this process are whole."""


def keep_standard(number: int) -> int:
    """Return a copy of a standard descriptor, which is about to be replaced; logs go on there."""
    _KEPT[number] = os.dup(number)
    return _KEPT[number]


def before_flush(done: Callable[[], None]) -> None:
    """Have this done, too, whenever the logs are to be written whole."""
    _FIRST.append(done)


def reopen_logs() -> None:
    """Have every log file of this process opened anew; see `LogWriter.reopen`. May be called in a signal handler."""
    for writer in tuple(_OPEN):
        writer.reopen()


def flush_logs(seconds: float) -> None:
    """Wait until all logs of this process are written, for so many seconds at most for each."""
    for first in _FIRST:
        first()
    for writer in tuple(_OPEN):
        writer.flush(seconds)


class LogWriter:
    """Owns a thread, and the file that it writes if it has a path. `write` and `reopen` may be called in any thread,
    and in a signal handler.
    """

    def __init__(
        self, target: str | int, lost: Lost, most_bytes: int = MOST_BYTES, rotation: Rotation | None = None
    ) -> None:
        """Write to a file by its path (appending; OSError where that cannot be) or to an open descriptor. A file is
        begun anew as the `rotation` says.
        """
        self._path = target if isinstance(target, str) else ""
        self._descriptor = _open(target) if isinstance(target, str) else target
        self._rotation = rotation if self._path else None
        self._is_rotated = False
        self._look()
        self._tell = lost
        self._most = most_bytes
        self._lock = threading.RLock()  # a signal handler may write, too
        self._queue: SimpleQueue[tuple[bytes, int] | threading.Event | object] = SimpleQueue()
        self._waiting = 0
        self._lost = 0
        self._why = ""
        _OPEN.add(self)
        threading.Thread(target=self._work, name="trivium-log", daemon=True).start()

    def write(self, piece: bytes, lines: int = 1) -> None:
        """Have whole lines written, or drop them where too many bytes wait. Never blocks, never raises."""
        with self._lock:
            if self._waiting + len(piece) > self._most:
                self._lost += lines
                self._why = self._why or _TOO_SLOW
                return
            self._waiting += len(piece)
            self._queue.put((piece, lines))

    def reopen(self) -> None:
        """Have the file opened anew by its path, behind what waits to be written: it may have been moved away."""
        self._queue.put(_REOPEN)

    def flush(self, seconds: float = 1.0) -> bool:
        """Wait for so many seconds at most until all is written that waits now; return whether it is."""
        written = threading.Event()
        self._queue.put(written)
        return written.wait(seconds)

    def close(self, seconds: float = 1.0) -> None:
        """Write what waits, for so many seconds at most, and close the file. Nothing may be written any more."""
        self.flush(seconds)
        self._queue.put(None)
        _OPEN.discard(self)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            if isinstance(task, tuple):
                self._put(*task)
            elif isinstance(task, threading.Event):
                task.set()
            else:
                self._open_anew()
        if self._path:
            os.close(self._descriptor)

    def _put(self, piece: bytes, lines: int) -> None:
        if self._is_rotated and self._rotation is not None:
            self._rotate(self._rotation, len(piece))
        why = self._attempt(piece)
        with self._lock:
            self._waiting -= len(piece)
            if why:
                self._lost += lines
                self._why = why
            lost, said = self._lost, self._why
            self._lost, self._why = 0, ""
        if lost and self._attempt(self._tell(lost, said)):
            with self._lock:  # it is said with the next line that can be written
                self._lost, self._why = self._lost + lost, said

    def _attempt(self, piece: bytes) -> str:
        """Write it; why that cannot be, if it cannot."""
        try:
            _write(self._descriptor, piece)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _open_anew(self) -> bool:
        """Open the file by its path. False where that cannot be, which is said in it, and it goes on as it was."""
        if not self._path:
            return False
        try:
            descriptor = _open(self._path)
        except OSError as error:  # the old one is better than none
            self._attempt(self._tell(0, f"it cannot be opened anew, and goes on as it was: {error}"))
            return False
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._look()
        return True

    def _look(self) -> None:
        """See how the file is. One that is none (a pipe, a device), or lies elsewhere, is never begun anew."""
        found = os.fstat(self._descriptor)
        self._is_rotated = (
            self._rotation is not None and stat.S_ISREG(found.st_mode) and not os.path.islink(self._path)
        )
        self._view = LogFileView(found.st_size, date.fromtimestamp(found.st_mtime))

    def _rotate(self, rotation: Rotation, more: int) -> None:
        """Begin the file anew, if that is due. Where it cannot be, it goes on until it is opened anew."""
        today = date.today()
        if is_due(self._view, rotation, more, today):
            day = self._view.day
            try:
                aside = set_aside(Path(self._path))
            except OSError as error:
                self._is_rotated = False
                self._attempt(self._tell(0, f"it cannot be begun anew, and goes on as it was: {error}"))
                return
            if not self._open_anew():
                self._is_rotated = False
                with contextlib.suppress(OSError):
                    aside.rename(self._path)
                return
            pack_later(aside, Path(self._path), day)
        self._view = LogFileView(self._view.size + more, today)


def _open(path: str) -> int:
    # Not blocking: a named pipe that nobody reads is refused, instead of waited for.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    return os.open(path, flags, 0o666)


def _write(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # a pipe that is full
            poll = select.poll()  # select() takes small numbers only
            poll.register(descriptor, select.POLLOUT)
            poll.poll()


class LogStream:
    """Stands for a text stream whose text goes through a `LogWriter`, for whoever prints."""

    def __init__(self, writer: LogWriter, like: TextIO) -> None:
        self._writer = writer
        self._like = like
        self.encoding = like.encoding or "utf-8"

    def write(self, text: str) -> int:
        """Have it written; see `LogWriter.write`."""
        self._writer.write(text.encode(self.encoding, "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        """Nothing waits here: the writer's thread does its work by itself."""

    def isatty(self) -> bool:
        """Is there a terminal behind it?"""
        return self._like.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream that it stands for; of a terminal it tells the size."""
        return self._like.fileno()
