"""Settings of a serving process for itself before it starts: memory, descriptors, switching, logs, the event loop."""

import asyncio
import contextlib
import errno
import logging
import resource
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NoReturn, TextIO, cast

import uvloop
from rich.console import Console
from rich.text import Text

from trivium.affinity.observer import AffinityObserver
from trivium.affinity.processors import Processors
from trivium.codecs.visible_text import visible
from trivium.commands.collector import COLLECTIONS
from trivium.commands.json_log import JsonFormatter, capture
from trivium.commands.stopping import leave
from trivium.commands.visible_console import only_text
from trivium.core.clock import LoopClock
from trivium.log_rotation import Rotation
from trivium.log_settings import LOG
from trivium.log_writer import LogStream, LogWriter, standard_error
from trivium.types.interfaces import NO_OBSERVER, RunObserver
from trivium_worker.wire import system

SWITCH_SECONDS = 0.0005
START = "trivium.start"
"""The log of what whoever starts a server should know of where it runs."""
_WORKERS = "trivium.worker"
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of glibc's mallopt(3)."""
_PR_SET_DUMPABLE = 4
"""Of prctl(2): with 0 what /proc has of a process is root's, and nobody else may trace it. An exec sets it anew."""
_log = logging.getLogger(__name__)


def keep_memory() -> None:
    """Have glibc keep freed memory: mapping and unmapping pages for every large tensor costs more than the
    copy. No effect with another C library.
    """
    try:
        for parameter, value in (
            (_M_MMAP_THRESHOLD, 32 * 2**20),
            (_M_TRIM_THRESHOLD, 256 * 2**20),
            (_M_ARENA_MAX, 2),
        ):
            system.libc("mallopt", parameter, value)
    except OSError as error:
        _log.info("%s: its settings of memory are left alone", error.strerror)


def allow_descriptors() -> None:
    """Allow as many open descriptors as the system lets this process have: each connection is one, and the usual soft
    limit of 1024 is less than `max_connections`.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError):  # macOS says "unlimited" and takes no such number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def hide() -> None:
    """Keep the memory, the descriptors and the environment of this process from the others of its user, among which
    handlers are. What it starts is not hidden. No effect on other systems than Linux.
    """
    try:
        system.libc("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
    except OSError as error:
        level = logging.INFO if error.errno == errno.ENOSYS else logging.WARNING
        _log.log(level, "This process cannot be hidden from handlers: %s.", error.strerror)


class VisibleFormatter(logging.Formatter):
    """Formats records so that what others have written into them is text: no control characters, and no line of a
    message passes for a record of its own.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record)).replace("\n", "\n    ")

    def formatException(self, ei: Any) -> str:
        return visible(super().formatException(ei))


class LogHandler(logging.Handler):
    """Gives records, as its formatter writes them, to a writer that makes nobody wait."""

    def __init__(self, file: str = "", rotation: Rotation | None = None) -> None:
        """Log to this file, begun anew as the `rotation` says, or to standard error. OSError for a file that cannot be
        written.
        """
        super().__init__()
        self._writer = LogWriter(file or standard_error(), self.lost, rotation=rotation)
        self._is_shown = not file and sys.stderr.isatty()
        self._above: Console | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Format it here, where its arguments are as they were, and have it written."""
        try:
            text, above = self.format(record), self._above
            if above is not None:
                above.print(Text(text), soft_wrap=True)
            else:
                self._writer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
        except Exception:
            self.handleError(record)

    @contextlib.contextmanager
    def above(self, console: Console) -> Iterator[None]:
        """Meanwhile, where it logs to a terminal, print there by this console, which keeps a line up to date below."""
        self._above = console if self._is_shown else None
        try:
            yield
        finally:
            self._above = None

    def write(self, piece: bytes, lines: int) -> None:
        """Have lines written that are formatted already."""
        self._writer.write(piece, lines)

    def lost(self, lines: int, why: str) -> bytes:
        """Return what it says of lines that could not be written."""
        words = f"lines of this log that were lost: {lines} ({why})" if lines else f"of this log: {why}"
        record = logging.LogRecord("trivium.log", logging.WARNING, __file__, 0, words, None, None)
        return f"{self.format(record)}\n".encode("utf-8", "backslashreplace")


def log_through(
    formatter: logging.Formatter,
    level: int | str,
    passes: Callable[[logging.LogRecord], bool] | None = None,
    file: str = "",
) -> None:
    """Have everything from this level on logged, as far as it `passes`, to standard error or to this file. OSError for
    one that cannot be written.
    """
    handler = LogHandler(file)
    handler.setFormatter(formatter)
    if passes is not None:
        handler.addFilter(passes)
    logging.basicConfig(level=level, handlers=[handler])


def log_to_stderr(log_level: str, log_format: str = "text") -> None:
    """Have everything from this level on logged; as JSON, all that the process says, by whatever way."""
    is_json = log_format == "json"
    if is_json:
        capture()
    log_through(
        JsonFormatter() if is_json else VisibleFormatter("%(levelname)s %(name)s: %(message)s"),
        log_level.upper(),
        lambda record: record.name.startswith((_WORKERS, START)) or LOG.passes(record),
    )
    if log_level == "warning":  # the default: what handlers print is for their owner, as with the originals
        logging.getLogger(_WORKERS).setLevel(logging.INFO)
        logging.getLogger(START).setLevel(logging.INFO)


@contextlib.contextmanager
def logs_above(console: Console) -> Iterator[None]:
    """Have what is logged meanwhile stand above the line that a console keeps up to date, and not behind it."""
    with contextlib.ExitStack() as stack:
        for handler in logging.getLogger().handlers if console.is_terminal else ():
            if isinstance(handler, LogHandler):
                stack.enter_context(handler.above(console))
        yield


def screen() -> Console:
    """Make the screen of a serving process, on standard output; whoever does not read it makes nobody wait."""
    writer = LogWriter(sys.stdout.fileno(), lambda lines, why: b"")
    return only_text(Console(highlight=False, file=cast(TextIO, LogStream(writer, sys.stdout))))


def observer(shares_processor: bool) -> RunObserver:
    """Make the observer of a server's runs: one that lets instances share the loop's processor, where that is wanted
    and the system can do it. Called on the loop.
    """
    if shares_processor and system.can_stay():
        return AffinityObserver(LoopClock(asyncio.get_running_loop()), Processors())
    return NO_OBSERVER


def run(main: Coroutine[Any, Any, int], *, is_debuggable: bool = False) -> NoReturn:
    """Run a server's main coroutine on uvloop, and leave with the exit status that it returns, unless it raises."""
    if not is_debuggable:
        hide()
    keep_memory()
    allow_descriptors()
    COLLECTIONS.start()
    # A thread that computes in Python would otherwise hold the loop up for 5 ms at a time.
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        leave(runner.run(main))  # the runner, and the interpreter, would wait for threads, which may hang
