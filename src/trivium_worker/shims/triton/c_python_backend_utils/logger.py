"""Log lines of the model, each with the place in user code that wrote it."""

import os
import sys
from typing import Any

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.names import Numbered, text, whole


class LogLevel(Numbered):
    """The severity of a line."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


_WORDS = {
    LogLevel.INFO: "info",
    LogLevel.WARNING: "warning",
    LogLevel.ERROR: "error",
    LogLevel.VERBOSE: "debug",
}


class Logger:
    """Static calls only, from any thread. A line reads `model.py:12] message`."""

    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: int = INFO) -> None:
        """Log at one of the class's levels."""
        _log(message, level)

    @staticmethod
    def log_info(message: str) -> None:
        """Log at INFO."""
        _log(message, LogLevel.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        """Log at WARNING."""
        _log(message, LogLevel.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        """Log at ERROR."""
        _log(message, LogLevel.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Log at VERBOSE, which is the server's debug."""
        _log(message, LogLevel.VERBOSE)


def _log(message: Any, level: int) -> None:
    message, number = text("Logger: message", message), whole("Logger: level", level, 0, len(_WORDS) - 1)
    frame = sys._getframe(2)
    place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    BACKEND.host.log(_WORDS[LogLevel(number)], f"{place}] {message}")
