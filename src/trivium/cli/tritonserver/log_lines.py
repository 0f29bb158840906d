"""How `tritonserver` writes its log: the form of a line, and which severities are written.

Source: spec sheet `triton`, section 1.2. Formats records of the standard logging module; must not decide what is worth
a record.
"""

import json
import logging
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

TABLE = {"is_table": True}
"""The `extra` of a record whose message stands below its line, as it is."""

_SILENCE = logging.CRITICAL + 10


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is written, in which form, and to which file (empty: standard error)."""

    verbose: int = 0
    info: bool = True
    warning: bool = True
    error: bool = True
    is_iso: bool = False
    file: str = ""

    @property
    def least(self) -> int:
        """The least level that is written, in the numbers of `logging`."""
        if self.verbose > 0:
            return logging.DEBUG
        switches = ((self.info, logging.INFO), (self.warning, logging.WARNING), (self.error, logging.ERROR))
        return next((level for is_on, level in switches if is_on), _SILENCE)

    def writes(self, level: int) -> bool:
        """Is a record of this level written? Switches do not depend on one another."""
        if level < logging.INFO:
            return self.verbose > 0
        if level < logging.WARNING:
            return self.info
        return self.warning if level < logging.ERROR else self.error


class LineFormatter(logging.Formatter):
    """`I1121 17:32:46.097802 4711 server.py:123] "message"`, or with an ISO 8601 time; times are UTC."""

    def __init__(self, is_iso: bool, process: int) -> None:
        super().__init__()
        self._is_iso = is_iso
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds; a table follows its line."""
        time = datetime.fromtimestamp(record.created, UTC)
        letter = "I" if record.levelno < logging.WARNING else "W" if record.levelno < logging.ERROR else "E"
        stamp = f"{time:%Y-%m-%dT%H:%M:%SZ} {letter}" if self._is_iso else f"{letter}{time:%m%d %H:%M:%S.%f}"
        start = f"{stamp} {self._process} {record.filename}:{record.lineno}]"
        message = record.getMessage()
        if getattr(record, "is_table", False):
            return f"{start} \n{message}\n"
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        return f"{start} {json.dumps(message, ensure_ascii=False)}"


def set_up(settings: LogSettings) -> None:
    """Have everything logged so. OSError for a file that cannot be written."""
    handler = logging.FileHandler(settings.file) if settings.file else logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(settings.is_iso, os.getpid()))
    handler.addFilter(lambda record: settings.writes(record.levelno))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("trivium").setLevel(settings.least)
