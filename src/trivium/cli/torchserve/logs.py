"""Log lines of a TorchServe: how they look, and the console and files that they go to.

Source: spec sheet `torchserve`, section 1: `YYYY-MM-DDThh:mm:ss,mmm [LEVEL] THREAD LOGGER - MESSAGE`.
"""

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from trivium.cli.process import LogHandler, VisibleFormatter

SERVER_LOG, MODEL_LOG, ACCESS_LOG = "ts_log.log", "model_log.log", "access_log.log"
_WORKERS = "trivium.worker"
_LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}
_THREADS = {"MainThread": "main"}


class TorchServeFormatter(VisibleFormatter):
    """Formats records as the original's lines."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s [%(levelname)-5s] %(threadName)s %(name)s - %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time of a record, with milliseconds behind a comma."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(record.created))
        return f"{moment},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        record.levelname = _LEVELS.get(record.levelname, record.levelname)
        record.threadName = _THREADS.get(record.threadName or "", record.threadName)
        return super().format(record)


def log_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of logs: that of LOG_LOCATION, or `logs` in the current one."""
    return Path(environment.get("LOG_LOCATION") or "logs")


def begin_logs(folder: Path, level: str) -> str:
    """Log to the console, and to files in this folder, which is made. Returns why there are no files; empty where there
    are.
    """
    root = logging.getLogger()
    root.setLevel(level.upper())
    _add(root, LogHandler())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        everything, of_models = LogHandler(str(folder / SERVER_LOG)), LogHandler(str(folder / MODEL_LOG))
    except OSError as error:
        return (
            f"No log files are written: {error.filename or folder}: {error.strerror}. Make the folder writable, or "
            "name another by the variable LOG_LOCATION."
        )
    everything.addFilter(lambda record: not record.name.startswith(_WORKERS))
    of_models.addFilter(lambda record: record.name.startswith(_WORKERS))
    _add(root, everything)
    _add(root, of_models)
    return ""


def _add(root: logging.Logger, handler: LogHandler) -> None:
    handler.setFormatter(TorchServeFormatter())
    root.addHandler(handler)
