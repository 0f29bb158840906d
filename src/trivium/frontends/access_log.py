"""A full access log at the cost of a list append per request: encoded and written 256 lines at a time.

Knows no connection; the sweeper flushes what waits, so that a quiet server's last lines appear too.
"""

import logging
import sys
from typing import BinaryIO, cast

import msgspec

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


class AccessLog:
    """Owns the file; `close` writes the rest."""

    def __init__(self, path: str) -> None:
        """Open for appending, "-" being the standard output; OSError where that cannot be."""
        self._is_stdout = path == "-"
        self._file = sys.stdout.buffer if self._is_stdout else cast(BinaryIO, open(path, "ab", buffering=0))  # noqa: SIM115
        self._encoder = msgspec.json.Encoder()
        self._lines: list[AccessLine] = []

    def add(self, line: AccessLine) -> None:
        """Take a line; write when there are enough."""
        self._lines.append(line)
        if len(self._lines) >= _LINES_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Write what waits. A full disk costs these lines, said in the server's own log, and no request."""
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        rest = memoryview(self._encoder.encode_lines(lines))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            self._file.flush()
        except OSError as error:
            _log.error("lines of the access log that may be lost: %d (%s)", len(lines), error)

    def close(self) -> None:
        """Write the rest and close the file, the standard output excepted."""
        self.flush()
        if not self._is_stdout:
            self._file.close()
