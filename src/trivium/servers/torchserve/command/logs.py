"""Log lines of a TorchServe: how they look, and the console and the five files that they go to. As in the original,
console and `ts_log.log` have all of them.

Files are begun anew at 100 MB and with each day, and packed; SIGHUP has them opened anew. A full disk costs lines,
which is said once on the console, and no request. Source: spec sheet `torchserve`, sections 1 and 6.3.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from trivium.codecs.visible_text import visible
from trivium.commands.process import LogHandler, VisibleFormatter
from trivium.frontends.access_log import AccessLine, DetailedLine
from trivium.log_rotation import Rotation
from trivium.log_writer import LogWriter
from trivium.types.errors import frameless
from trivium.types.recording import WORKER_LINE, InstanceName, WorkerLine

SERVER_LOG, MODEL_LOG, ACCESS_LOG = "ts_log.log", "model_log.log", "access_log.log"
SERVER_METRICS, MODEL_METRICS = "ts_metrics.log", "model_metrics.log"
ROTATION = Rotation(100 * 2**20)
THREAD_NAME = "thread_name"
"""The attribute under which a record says which thread of the original would have written it."""

_WORKERS = "trivium.worker"
_WORKER_LOGGER = "MODEL_LOG"
_LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}
_THREADS = {"MainThread": "main"}
_FIRST_ID = 9000
_GRPC_FAMILY = re.compile("^ipv[46]:")
_LINES_AT_A_TIME = 256
_SECONDS = 0.5


def worker_id(instance: InstanceName) -> int:
    """Return the number by which clients know a worker: descriptions of models have the same."""
    return _FIRST_ID + instance.number


def worker_name(instance: InstanceName) -> str:
    """Return the name of a worker, as the original gives it to its thread: W-9001-MODEL_VERSION."""
    return f"W-{worker_id(instance)}-{instance.model}_{instance.version}"


def moment(seconds: float) -> str:
    """Return a time, in seconds of the epoch, with milliseconds behind a comma."""
    return f"{_second(int(seconds))},{int(seconds % 1 * 1000):03d}"


class _Seconds:
    """Keeps how the last second is written: many lines have the same."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def __call__(self, second: int) -> str:
        if second != self._second:
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(second))
            self._second = second
        return self._text


_second = _Seconds()


class LineMask:
    """Takes out of every line what no log may show: `hide` returns a text without that, once it is known."""

    def __init__(self) -> None:
        self.hide: Callable[[str], str] = str

    def __call__(self, text: str) -> str:
        return self.hide(text)


class TorchServeFormatter(VisibleFormatter):
    """Formats records as the original's lines."""

    def __init__(self, mask: LineMask) -> None:
        self._mask = mask
        super().__init__("%(asctime)s [%(levelname)-5s] %(threadName)s %(name)s - %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time of a record, with milliseconds behind a comma."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(record.created))
        return f"{moment},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        shown = logging.makeLogRecord(record.__dict__)
        shown.levelname = _LEVELS.get(shown.levelname, shown.levelname)
        thread = getattr(record, THREAD_NAME, shown.threadName or "")
        shown.threadName = _THREADS.get(thread, thread)
        line = getattr(record, WORKER_LINE, None)
        if isinstance(line, WorkerLine):
            shown.threadName = f"{worker_name(line.instance)}-{line.stream}"
            shown.name, shown.msg, shown.args = _WORKER_LOGGER, line.text, None
        return self._mask(super().format(shown))


class DiskFault:
    """Says on the console that lines of a file are lost: once, until it could be written again."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name = name
        self._say = say
        self._lost = 0

    def __call__(self, lines: int, why: str) -> None:
        goes_on = lines >= self._lost > 0  # what is lost is counted until it could be written again
        self._lost = lines
        if not goes_on:
            what = f"lines of {self._name} are lost" if lines else self._name
            self._say(f"{what}: {why}. Requests are served all the same; this is said once.")


class FileHandler(LogHandler):
    """Writes records into a file, and says on the console where that fails."""

    def __init__(self, path: Path, say: Callable[[str], None], mask: LineMask) -> None:
        self._fault = DiskFault(path.name, say)
        super().__init__(str(path), ROTATION)
        self.setFormatter(TorchServeFormatter(mask))

    def lost(self, lines: int, why: str) -> bytes:
        """See `LogHandler`; it is tried at each line whether the file can be written again."""
        self._fault(lines, why)
        return super().lost(lines, why)


class LineLog:
    """Writes `time - text` lines into a file, many at a time, and into others under the name of a logger. Without a
    path only the others have them.
    """

    def __init__(
        self,
        path: Path | None,
        say: Callable[[str], None],
        mask: LineMask,
        name: str = "",
        others: Sequence[LogHandler] = (),
    ) -> None:
        """OSError where it cannot be opened."""
        self._mask = mask
        self._name = name
        self._others = others
        self._lines: list[tuple[float, str]] = []
        self._writer: LogWriter | None = None
        if path is not None:
            self._fault = DiskFault(path.name, say)
            self._writer = LogWriter(str(path), self._lost, rotation=ROTATION)

    def add(self, text: str, seconds: float | None = None) -> None:
        """Take a line of this moment, or of another in seconds of the epoch."""
        self._lines.append((time.time() if seconds is None else seconds, text))
        if len(self._lines) >= _LINES_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Have written what waits. What no log may show is taken out of all at once."""
        waiting, self._lines = self._lines, []
        if not waiting:
            return
        lines = [(moment(when), text) for when, text in waiting]
        if self._writer is not None:
            whole = "".join([f"{when} - {text}\n" for when, text in lines])
            self._writer.write(self._mask(whole).encode("utf-8", "backslashreplace"), len(lines))
        if self._others:
            begin = f"[INFO ] main {self._name} -"
            piece = "".join([f"{when} {begin} {text}\n" for when, text in lines])
            for other in self._others:
                other.write(self._mask(piece).encode("utf-8", "backslashreplace"), len(lines))

    def close(self) -> None:
        """Write the rest, for a second at most."""
        self.flush()
        if self._writer is not None:
            self._writer.close()

    def _lost(self, lines: int, why: str) -> bytes:
        self._fault(lines, why)
        return f"{moment(time.time())} - lines of this log that were lost: {lines} ({why})\n".encode()


@dataclass(frozen=True, slots=True)
class TorchServeLogs:
    """Holds the logs that are written line by line, what is taken out of the lines of all, and what is to be said of
    files that there are not.
    """

    access: LineLog
    server_metrics: LineLog
    model_metrics: LineLog
    mask: LineMask
    fault: str = ""

    def flush(self) -> None:
        """Have written what waits."""
        for log in (self.access, self.server_metrics, self.model_metrics):
            log.flush()

    @contextlib.asynccontextmanager
    async def written(self) -> AsyncIterator[None]:
        """Have the lines of the block written, twice a second, and the rest at its end."""
        task = asyncio.ensure_future(self._write())
        try:
            yield
        finally:
            task.cancel()
            for log in (self.access, self.server_metrics, self.model_metrics):
                log.close()

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS)
            self.flush()


def access_text(line: AccessLine) -> str:
    """Return what the access log says of a request, behind its time."""
    peer = "127.0.0.1" if line.peer.startswith("unix") else f"/{_GRPC_FAMILY.sub('', line.peer)}"
    if line.method == "gRPC":
        asked = f"gRPC {line.path.removeprefix('/')} HTTP/2.0"
    elif isinstance(line, DetailedLine):
        query = f"?{line.query}" if line.query else ""
        asked = f"{line.method} {line.path}{query} {line.version}"
    else:
        asked = f"{line.method} {line.path} HTTP/1.1"
    return f'{peer} "{_one_line(asked)}" {line.status} {line.seconds * 1000:.0f}'


def _one_line(text: str) -> str:
    """Return a text of a client's so that it passes for no line of its own, nor ends its quotation."""
    return visible(text).replace("\n", "\\n").replace('"', "%22")


def log_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of logs: that of LOG_LOCATION, or `logs` in the current one."""
    return Path(environment.get("LOG_LOCATION") or "logs")


def metrics_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the logs of metrics: that of METRICS_LOCATION, or `logs` in the current one."""
    return Path(environment.get("METRICS_LOCATION") or "logs")


def begin_logs(logs: Path, metrics: Path, level: str) -> TorchServeLogs:
    """Log to the console, and to files in these folders, which are made."""
    root = logging.getLogger()
    root.setLevel(level.upper())
    mask = LineMask()
    console = LogHandler()
    console.setFormatter(TorchServeFormatter(mask))
    root.addHandler(console)

    def say(text: str) -> None:
        """Say it on the console alone: the files may be what it is about."""
        console.handle(logging.LogRecord("trivium.log", logging.ERROR, __file__, 0, text, None, None))

    faults: list[str] = []
    others: list[LogHandler] = [console]
    make = partial(FileHandler, say=say, mask=mask)
    has_files = _made(logs, "LOG_LOCATION", faults) and _log_to_files(root, logs, make, faults, others)
    has_metrics = _made(metrics, "METRICS_LOCATION", faults)
    access, of_server, of_models = (
        _opened(
            path if is_there else None,
            partial(LineLog, say=say, mask=mask, name=name, others=others),
            variable,
            faults,
        )
        for path, is_there, name, variable in (
            (logs / ACCESS_LOG, has_files, "ACCESS_LOG", "LOG_LOCATION"),
            (metrics / SERVER_METRICS, has_metrics, "TS_METRICS", "METRICS_LOCATION"),
            (metrics / MODEL_METRICS, has_metrics, "MODEL_METRICS", "METRICS_LOCATION"),
        )
    )
    return TorchServeLogs(access, of_server, of_models, mask, " ".join(dict.fromkeys(faults)))


def _log_to_files(
    root: logging.Logger,
    folder: Path,
    make: Callable[[Path], FileHandler],
    faults: list[str],
    others: list[LogHandler],
) -> bool:
    """Log into the file of everything, which is one of the `others` of all lines, and into that of the workers. False
    where they cannot be opened.
    """
    try:
        everything, of_models = (make(folder / name) for name in (SERVER_LOG, MODEL_LOG))
    except OSError as error:
        faults.append(_unwritable(frameless(error), folder, "LOG_LOCATION"))
        return False
    others.append(everything)
    of_models.addFilter(lambda record: record.name.startswith(_WORKERS))
    root.addHandler(everything)
    root.addHandler(of_models)
    return True


def _made(folder: Path, variable: str, faults: list[str]) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        faults.append(_unwritable(frameless(error), folder, variable))
        return False
    return True


def _opened(
    path: Path | None, make: Callable[[Path | None], LineLog], variable: str, faults: list[str]
) -> LineLog:
    try:
        return make(path)
    except OSError as error:
        faults.append(_unwritable(frameless(error), cast(Path, path), variable))
        return make(None)


def _unwritable(error: OSError, folder: Path, variable: str) -> str:
    return (
        f"No log files are written: {error.filename or folder}: {error.strerror}. Make the folder writable, or name "
        f"another by the variable {variable}."
    )
