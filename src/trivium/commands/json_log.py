"""The log of a process as JSON: each record is one object in one line, whatever wrote it.

Records of the standard logging module are formatted here. What does not come by that, Python's own warnings, exceptions
that nobody caught, and all that libraries in this process write straight to its standard output and error, becomes
records first. Must not decide what is worth a record.
"""

import atexit
import contextlib
import logging
import os
import sys
import threading
from types import TracebackType
from typing import Any

import msgspec

from trivium import log_writer
from trivium.codecs.rfc3339 import rfc3339
from trivium.codecs.traceback_lines import TracebackLines
from trivium.types.recording import RECORD_FACTS, WORKER_LINE, WorkerLine

SCREEN = logging.getLogger("trivium.server")
"""Has what a serving command says on its screen, where that is a log."""

_MARK = b"\x00all read\x00"
_PIECE = 2**16
_LONGEST = 2**16
"""Bytes of a line without an end that become a record."""


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: `time` (RFC 3339, in UTC), `level`, `logger` and `message`; `exception` where
    there is one; `model`, `version`, `instance`, `stream`, `request_id` or `request_ids`, and `trace_id` where they are
    known.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, without the end of the line."""
        told: dict[str, Any] = {
            "time": rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _text(record.getMessage()),
        }
        line = getattr(record, WORKER_LINE, None)
        if isinstance(line, WorkerLine):
            told |= _of_worker(line)
        facts = getattr(record, RECORD_FACTS, None)
        if isinstance(facts, dict):
            told |= {name: _text(str(value)) for name, value in facts.items() if value}
        if record.exc_info:
            told["exception"] = _text(self.formatException(record.exc_info))
        return msgspec.json.encode(told).decode()


def _of_worker(line: WorkerLine) -> dict[str, Any]:
    told: dict[str, Any] = {
        "message": _text(line.text),
        "model": line.instance.model,
        "version": line.instance.version,
        "instance": line.name,
        "stream": line.stream,
    }
    ids = [_text(request.id) for request in line.requests if request.id]
    traces = sorted({request.trace for request in line.requests if request.trace})
    for name, values in (("request_id", ids), ("trace_id", traces)):
        if len(values) == 1:
            told[name] = values[0]
        elif values:
            told[f"{name}s"] = values
    return told


def _text(text: str) -> str:
    """Return a text that JSON can hold: half of a pair of surrogates is written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class CapturedStream:
    """Reads what this process writes to one of its standard descriptors, from here until `close`, and logs each line; a
    traceback is one record.
    """

    def __init__(self, number: int, name: str, level: int) -> None:
        self._number = number
        self._log = logging.getLogger(name)
        self._level = level
        self._rest = b""
        self._joined = TracebackLines()
        self._read = threading.Semaphore(0)
        self._is_closed = False
        self._kept = log_writer.keep_standard(number)
        reading, writing = os.pipe()
        os.dup2(writing, number, inheritable=True)
        os.close(writing)
        self._thread = threading.Thread(
            target=self._work, args=(reading,), name=f"trivium-{name}", daemon=True
        )
        self._thread.start()

    def flush(self, seconds: float) -> None:
        """Wait until all is logged that was written before, for so many seconds at most."""
        if self._is_closed:
            return
        with contextlib.suppress(OSError):
            os.write(self._number, _MARK + b"\n")
            self._read.acquire(timeout=seconds)

    def close(self) -> None:
        """Log the rest; from now on the process writes to what it was started with."""
        self.flush(1.0)
        self._is_closed = True
        os.dup2(self._kept, self._number, inheritable=True)

    def _work(self, reading: int) -> None:
        while piece := os.read(reading, _PIECE):
            *lines, rest = (self._rest + piece).split(b"\n")
            for line in lines:
                self._take(line)
            if len(rest) > _LONGEST:
                self._take(rest)
                rest = b""
            self._rest = rest

    def _take(self, line: bytes) -> None:
        line, mark, _ = line.partition(_MARK)
        texts = (
            self._joined.add(line.decode("utf-8", "backslashreplace").rstrip("\r"))
            if line or not mark
            else []
        )
        for text in [*texts, *(self._joined.rest() if mark else ())]:
            if text.strip():
                self._log.log(self._level, "%s", text)
        if mark:
            self._read.release()


def capture() -> None:
    """Have all that this process says become records from now on. For a process that logs as JSON; called once."""
    streams = [CapturedStream(1, "stdout", logging.INFO), CapturedStream(2, "stderr", logging.WARNING)]
    for name in ("stdout", "stderr", SCREEN.name):
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(args.exc_type, args.exc_value, args.exc_traceback)

    def finish() -> None:
        """Write all that has been said, by whatever way."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        for each in streams:
            each.flush(0.3)

    def end() -> None:
        """Write the rest, when the interpreter ends by itself."""
        finish()
        for each in streams:
            each.close()
        log_writer.flush_logs(1.0)

    log_writer.before_flush(finish)
    atexit.register(end)


def _uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """Log an exception that nobody caught."""
    if issubclass(kind, KeyboardInterrupt | SystemExit):
        return
    logging.getLogger("trivium").critical(
        "an exception was not caught: %s", error, exc_info=(kind, error or kind(), trace)
    )
