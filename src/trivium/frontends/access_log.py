"""A full access log at the cost of a list append per request: encoded 256 lines at a time, and written in a thread.

Knows no connection; the sweeper flushes what waits, so that a quiet server's last lines appear too.
"""

import logging
import sys
from typing import Protocol

import msgspec

from trivium.log_writer import LogWriter

_log = logging.getLogger(__name__)
_LINES_AT_A_TIME = 256


class AccessLine(msgspec.Struct, frozen=True, gc=False):
    """One answered request. `time` is epoch seconds of the answer, `seconds` from the head to the answer, kept
    to the half second of the sweeper; `size` is the bytes of the answer's body.
    """

    time: float
    peer: str
    method: str
    path: str
    status: int
    size: int
    seconds: float


class DetailedLine(AccessLine, frozen=True, gc=False):
    """One answered request, with its query and the version of HTTP. Its times are exact."""

    query: str = ""
    version: str = "HTTP/1.1"


class AnswerLog(Protocol):
    """Takes a line for each request that was answered, on the loop; it must not block, nor raise. One that `is_exact`
    gets a `DetailedLine` of each over HTTP.
    """

    is_exact: bool

    def add(self, line: AccessLine) -> None:
        """Take a line."""

    def flush(self) -> None:
        """Have written what waits: some half a second has passed."""

    def close(self) -> None:
        """Write the rest; nothing follows."""


class AccessLog:
    """Implements `AnswerLog`: JSON lines. Owns the writer of the file; `close` has the rest written."""

    is_exact = False

    def __init__(self, path: str) -> None:
        """Open for appending, "-" being the standard output; OSError where that cannot be."""
        self._writer = LogWriter(sys.stdout.fileno() if path == "-" else path, _lost)
        self._encoder = msgspec.json.Encoder()
        self._lines: list[AccessLine] = []

    def add(self, line: AccessLine) -> None:
        """Take a line; have them written when there are enough."""
        self._lines.append(line)
        if len(self._lines) >= _LINES_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Have written what waits. A full disk, or a reader who is too slow, costs these lines, said in the server's
        own log, and no request.
        """
        if self._lines:
            lines, self._lines = self._lines, []
            self._writer.write(self._encoder.encode_lines(lines), len(lines))

    def close(self) -> None:
        """Write the rest, for a second at most, and close the file, the standard output excepted."""
        self.flush()
        self._writer.close()


def open_log(path: str | None) -> AnswerLog | None:
    """Open the log at a path, None for none. OSError where that cannot be."""
    return None if path is None else AccessLog(path)


def close_log(log: AnswerLog | None, shared: AnswerLog | None) -> None:
    """Close the log of one front end, unless others share it."""
    if log is not None and log is shared:
        log.flush()
    elif log is not None:
        log.close()


def _lost(lines: int, why: str) -> bytes:
    _log.error("lines of the access log that may be lost: %d (%s)", lines, why)
    return b""
