"""A full access log at the cost of a list append per request: encoded 256 lines at a time, and written in a thread.

Knows no connection; the sweeper flushes what waits, so that a quiet server's last lines appear too.
"""

import logging
from typing import Protocol

import msgspec

from trivium.codecs.rfc3339 import rfc3339
from trivium.log_writer import LogWriter, standard_output
from trivium.types.observing import RequestFacts

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


class ServedLine(AccessLine, frozen=True, gc=False):
    """One answered request to a model, with what was collected about it. Its time is exact."""

    facts: RequestFacts


class AnswerLog(Protocol):
    """Takes a line for each request that was answered, on the loop; it must not block, nor raise. One that `is_exact`
    gets a `DetailedLine` of each over HTTP, one that `takes_facts` a `ServedLine` of each to a model.
    """

    is_exact: bool
    takes_facts: bool

    def add(self, line: AccessLine) -> None:
        """Take a line."""

    def flush(self) -> None:
        """Have written what waits: some half a second has passed."""

    def close(self) -> None:
        """Write the rest; nothing follows."""


class AccessLog:
    """Implements `AnswerLog`: JSON lines, in the form of the server's own log if they are to be `alike`. Owns the
    writer of the file; `close` has the rest written.
    """

    is_exact = False
    takes_facts = True

    def __init__(self, path: str, alike: bool = False) -> None:
        """Open for appending, "-" being the standard output; OSError where that cannot be."""
        self._writer = LogWriter(standard_output() if path == "-" else path, _lost)
        self._encoder = msgspec.json.Encoder()
        self._alike = alike
        self._lines: list[AccessLine] = []
        self._late: list[AccessLine] = []

    def add(self, line: AccessLine) -> None:
        """Take a line; have them written when there are enough."""
        self._lines.append(line)
        if (
            len(self._lines) >= 2 * _LINES_AT_A_TIME
        ):  # the last ones' executions may not have been counted yet
            self._write(_LINES_AT_A_TIME)

    def flush(self) -> None:
        """Have written what waits. A full disk, or a reader who is too slow, costs these lines, said in the server's
        own log, and no request. A line whose request's execution goes on waits for the next time.
        """
        self._write(len(self._lines))

    def _write(self, count: int) -> None:
        lines, self._lines = self._lines[:count], self._lines[count:]
        late, self._late = self._late, []
        for line in lines:
            waits = isinstance(line, ServedLine) and line.facts.waits
            (self._late if waits else late).append(line)
        if late:
            rows = [_record(line, self._alike) for line in late]
            self._writer.write(self._encoder.encode_lines(rows), len(rows))

    def close(self) -> None:
        """Write the rest, for a second at most, and close the file, the standard output excepted."""
        self.flush()
        self.flush()
        self._writer.close()


class AccessRecord(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A line as it is written: what was not collected is not there, and the first four only where the server's own log
    has them, with the time as a text.
    """

    time: float | str
    level: str = ""
    logger: str = ""
    message: str = ""
    peer: str
    method: str
    path: str
    status: int
    size: int
    seconds: float
    request_id: str = ""
    model: str = ""
    version: str = ""
    trace_id: str = ""
    requests_together: int = 0
    queue_seconds: float | None = None
    compute_seconds: float | None = None
    error: str = ""


def _record(line: AccessLine, alike: bool) -> AccessRecord:
    """Return a line in the form in which it is written."""
    facts = line.facts if isinstance(line, ServedLine) else NO_FACTS
    has_run = facts.together > 0
    return AccessRecord(
        time=rfc3339(line.time) if alike else line.time,
        level="info" if alike else "",
        logger="trivium.access" if alike else "",
        message=f"{line.method} {line.path} {line.status}" if alike else "",
        peer=line.peer,
        method=line.method,
        path=line.path,
        status=line.status,
        size=line.size,
        seconds=round(line.seconds, 6),
        request_id=facts.id,
        model=facts.model,
        version=facts.version,
        trace_id=facts.trace,
        requests_together=facts.together,
        queue_seconds=round(facts.queued, 6) if has_run or facts.queued else None,
        compute_seconds=round(facts.compute, 6) if has_run else None,
        error=facts.code,
    )


NO_FACTS = RequestFacts()


def open_log(path: str | None, alike: bool = False) -> AnswerLog | None:
    """Open the log at a path, None for none. OSError where that cannot be."""
    return None if path is None else AccessLog(path, alike)


def close_log(log: AnswerLog | None, shared: AnswerLog | None) -> None:
    """Close the log of one front end, unless others share it."""
    if log is not None and log is shared:
        log.flush()
    elif log is not None:
        log.close()


def _lost(lines: int, why: str) -> bytes:
    _log.error("lines of the access log that may be lost: %d (%s)", lines, why)
    return b""
