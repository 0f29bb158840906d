"""The lines that a server says in its log, as values: who decides what is said need not say it."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from trivium.commands.listeners import Listeners


@dataclass(frozen=True, slots=True)
class ServerLine:
    """One record of the log, before it is written."""

    text: str
    level: int = logging.INFO
    log: str = ""
    """The name of the logger, where it is not that of the server."""

    extra: Mapping[str, object] = field(default_factory=dict)
    """Further attributes of the record."""


def warning(text: str) -> ServerLine:
    """Make a line of what somebody should know of."""
    return ServerLine(text, logging.WARNING)


def error(text: str) -> ServerLine:
    """Make a line of what has failed."""
    return ServerLine(text, logging.ERROR)


def cut_off(what: str) -> Iterable[ServerLine]:
    """Say that this request was not answered, or that this worker was killed."""
    yield warning(f"cut off: {what}")


def bound(listeners: Listeners, apis: Mapping[str, str]) -> Iterable[ServerLine]:
    """Yield the line of each address that is listened on, as TorchServe and DJL Serving both write it; `apis` has the
    word for each listener.
    """
    for name, url in listeners.urls.items():
        yield ServerLine(f"{apis[name]} API bind to: {url}")


def write_to(log: logging.Logger) -> Callable[[ServerLine], None]:
    """Return what writes lines into this log."""

    def write(line: ServerLine) -> None:
        """Write one."""
        target = logging.getLogger(line.log) if line.log else log
        target.log(line.level, "%s", line.text, extra=line.extra)

    return write
