"""What a worker prints: line by line into the log under its model's name, the last lines kept for a post-mortem.

A worker that floods its output is read as fast as it writes, so that it is not held up; of what it says only
so many lines a second reach the log, and the rest is counted.
"""

import asyncio
import contextlib
import logging
import os
from collections import deque

KEPT_LINES = 50
LINES_PER_SECOND = 100
LONGEST = 4096
PIECE = 2**16
PIECES_AT_ONCE = 64


class Output:
    """One stream of one worker, read on the loop from `descriptor`, which it owns."""

    def __init__(self, descriptor: int, name: str, level: int, log: logging.Logger) -> None:
        self._descriptor = descriptor
        self._name = name
        self._level = level
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._second = 0.0
        self._said = 0
        self._unsaid = 0
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
        self._loop.add_reader(descriptor, self._read, 1)

    def close(self) -> None:
        """Take in what is still there, and close. Further calls have no effect."""
        if self._descriptor >= 0:
            self._read(PIECES_AT_ONCE)
        if self._descriptor >= 0:
            self._end()

    def _read(self, pieces: int) -> None:
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
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self._tell_unsaid()

    def _take(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > LONGEST:
            self._line(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
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
            self._log.log(self._level, "%s: %s", self._name, text)

    def _tell_unsaid(self) -> None:
        if self._unsaid:
            self._log.log(self._level, "%s: %d lines more were not logged", self._name, self._unsaid)
            self._unsaid = 0
