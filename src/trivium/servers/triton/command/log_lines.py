"""The log of `tritonserver`: the form of a line, and where it goes.

Source: spec sheet `triton`, section 1.2. Formats records of the standard logging module; must not decide what is worth
a record.
"""

import json
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime

from trivium.codecs.visible_text import visible
from trivium.commands.process import log_through
from trivium.log_settings import LOG
from trivium.types.log_settings import LogSettings

TABLE = {"is_table": True}
"""The `extra` of a record whose message stands below its line, as it is."""


class LineFormatter(logging.Formatter):
    """`I1121 17:32:46.097802 4711 server.py:123] "message"`, or with an ISO 8601 time; times are UTC."""

    def __init__(self, is_iso: Callable[[], bool], process: int) -> None:
        super().__init__()
        self._is_iso = is_iso
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds; a table follows its line."""
        time = datetime.fromtimestamp(record.created, UTC)
        letter = "I" if record.levelno < logging.WARNING else "W" if record.levelno < logging.ERROR else "E"
        stamp = (
            f"{time:%Y-%m-%dT%H:%M:%SZ} {letter}" if self._is_iso() else f"{letter}{time:%m%d %H:%M:%S.%f}"
        )
        start = f"{stamp} {self._process} {record.filename}:{record.lineno}]"
        message = record.getMessage()
        if getattr(record, "is_table", False):
            return f"{start} \n{visible(message)}\n"
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        return f"{start} {visible(json.dumps(message, ensure_ascii=False))}"


def set_up(settings: LogSettings) -> None:
    """Have everything logged so. OSError for a file that cannot be written."""
    formatter = LineFormatter(lambda: LOG.settings.is_iso, os.getpid())
    log_through(formatter, logging.WARNING, LOG.passes, settings.file)
    LOG.use(settings, has_forms=True)
