"""The life of a `tritonserver`: load, say what is ready, open the ports, serve until a signal, drain, unload.

The order of these, the lines that tell of them and the exit status are the original's (spec sheet `triton`, section
1.2). What is served and how it is configured says `settings`.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from trivium.codecs.visible_text import visible
from trivium.commands import life
from trivium.commands.cannot_listen import CannotListen
from trivium.commands.life import FatalFailure, Life, LifeWords, ListenMoment, ServerParts
from trivium.commands.listeners import Listeners
from trivium.commands.server_line import ServerLine, cut_off, error, write_to
from trivium.core.server import Server
from trivium.log_writer import LogWriter, flush_logs
from trivium.servers.triton.command.errors import CannotStart
from trivium.servers.triton.command.report import drained, loaded, narrate, options_line, stopped, warnings
from trivium.servers.triton.command.settings import CommandSettings, check_start
from trivium.servers.triton.repository.repository import FORMAT as TRITON
from trivium.types.errors import ServeError
from trivium.types.operations import VersionStatus

FLUSH_SECONDS = 1.0
"""For whoever reads the log, before what follows it is written elsewhere."""

_STARTED = {
    "gRPC": "Started GRPCInferenceService at",
    "HTTP": "Started HTTPService at",
    "metrics": "Started Metrics Service at",
}
_SERVICES = {"gRPC": "GRPC", "HTTP": "HTTP", "metrics": "Metrics"}
_FAILED = 1
_say = write_to(logging.getLogger(__name__))


async def live(settings: CommandSettings) -> int:
    """Run from start to end; returns the exit status."""
    for line in warnings(settings):
        _say(line)
    try:
        check_start(settings)
    except CannotStart as fault:
        _say(options_line(settings))
        return _cannot_start(str(fault))
    output = LogWriter(sys.stdout.fileno(), lambda lines, why: b"")

    def signalled(number: int) -> None:
        """Say so, whatever the log does."""
        output.write(f"Signal ({number}) received.\n".encode())

    try:
        return await life.live(replace(record(settings), signalled=signalled))
    except CannotStart as fault:
        return _cannot_start(str(fault))
    except ServeError as fault:
        return _cannot_start(f"Invalid argument - {fault.message}")


def _cannot_start(why: str) -> int:
    flush_logs(FLUSH_SECONDS)  # this line comes last, as in the original
    click.echo(visible(f"error: creating server: {why}"), err=True)
    return _FAILED


def record(settings: CommandSettings) -> Life[ServerLine]:
    """Return how a server of these settings lives."""
    return Life(
        parts=ServerParts(catalogue=settings.catalogue, config=settings.config),
        words=LifeWords(
            listens=_listening,
            cannot_listen=_cannot_listen,
            loaded=partial(loaded, settings),
            failed=_failed,
            stopping=lambda left: (ServerLine("Waiting for in-flight requests to complete."),),
            cut_off=cut_off,
            drained=drained,
            stopped=stopped,
        ),
        say=_say,
        add=partial(_add, settings),
        only=settings.startup,
        listens=ListenMoment.LOADED,
        fatal=FatalFailure.ANY if settings.values["--exit-on-error"] else FatalFailure.NONE,
        drains_failed=True,
        hurries=False,
        progress=lambda server: nullcontext(_tell),
    )


def _add(settings: CommandSettings, server: Server) -> None:
    for path in settings.repositories:
        if not Path(path).is_dir():
            raise CannotStart("Internal", f"failed to stat file {path}")
    for path in settings.repositories:
        server.add(Path(path), TRITON)  # it may be empty still


def _tell(status: VersionStatus) -> None:
    for line in narrate(status):
        _say(line)


def _failed() -> NoReturn:
    raise CannotStart("Internal", "failed to load all models")


def _cannot_listen(fault: CannotListen) -> Iterator[ServerLine]:
    if not fault.service:
        yield error(fault.message)
        return
    service = _SERVICES[fault.service]
    yield error(f"failed to start {service} service: Unavailable - Socket '{fault.address}' already in use ")


def _listening(listeners: Listeners) -> Iterator[ServerLine]:
    for service, line in _STARTED.items():
        if service in listeners.places:
            yield ServerLine(f"{line} {listeners.places[service]}")
