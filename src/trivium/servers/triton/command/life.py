"""The life of a `tritonserver`: load, say what is ready, open the ports, serve until a signal, drain, unload.

Decides the order of these, the lines that tell of them and the exit status, all as the original (spec sheet `triton`,
section 1.2). What is served and how it is configured says `settings`.
"""

import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from trivium import app
from trivium.app import Site
from trivium.codecs.visible_text import visible
from trivium.commands.cannot_listen import CannotListen
from trivium.commands.collector import COLLECTIONS
from trivium.commands.listeners import Listeners
from trivium.commands.process import observer
from trivium.commands.stopping import StopSignals
from trivium.core.server import Server
from trivium.log_writer import LogWriter, flush_logs
from trivium.servers.triton.command.errors import CannotStart
from trivium.servers.triton.command.log_lines import TABLE
from trivium.servers.triton.command.narration import narrate
from trivium.servers.triton.command.report import tables, used_options, warnings
from trivium.servers.triton.command.settings import CommandSettings, check_start
from trivium.servers.triton.repository.repository import FORMAT as TRITON
from trivium.types.errors import ServeError
from trivium.types.operations import Listing, VersionStatus
from trivium.types.state import VersionState

log = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
"""For whoever reads the log, before what follows it is written elsewhere."""

_STARTED = {
    "gRPC": "Started GRPCInferenceService at %s",
    "HTTP": "Started HTTPService at %s",
    "metrics": "Started Metrics Service at %s",
}
_SERVICES = {"gRPC": "GRPC", "HTTP": "HTTP", "metrics": "Metrics"}
_FAILED = 1


async def live(settings: CommandSettings) -> int:
    """Run from start to end; returns the exit status."""
    output = LogWriter(sys.stdout.fileno(), lambda lines, why: b"")
    stop = StopSignals(
        settings.config.server.drain_timeout,
        lambda number: output.write(f"Signal ({number}) received.\n".encode()),
        hurries=False,
    )
    for line in warnings(settings):
        log.warning("%s", line)
    try:
        return await _serve(settings, stop)
    except CannotStart as error:
        flush_logs(FLUSH_SECONDS)  # this line comes last, as in the original
        click.echo(visible(f"error: creating server: {error}"), err=True)
        return _FAILED


async def _serve(settings: CommandSettings, stop: StopSignals) -> int:
    try:
        check_start(settings)
    except CannotStart:
        log.info("\n%s", used_options(settings).rstrip("\n"), extra=TABLE)
        raise
    async with _built(settings) as server:
        listeners = _made(server, settings)
        for path in _folders(settings.repositories):
            server.add(path, TRITON)  # it may be empty still
        listing = await _load(server, settings, stop)
        if listing is None:
            return await _go_down(server, stop, listeners)
        for text in tables(server, listing, settings):
            log.info("%s", text.rstrip("\n"), extra=TABLE)
        if any(row.state is VersionState.FAILED for row in listing.versions):
            if settings.values["--exit-on-error"]:
                await _go_down(server, stop, listeners)
                raise CannotStart("Internal", "failed to load all models")
            log.error("Internal: failed to load all models")
        if not await _listen(listeners):
            return _FAILED
        COLLECTIONS.settle()
        await stop.wait()
        return await _go_down(server, stop, listeners)


def _built(settings: CommandSettings) -> Server:
    try:
        return app.build(
            settings.catalogue, settings.config, observer(settings.config.workers.shares_processor)
        )
    except ServeError as error:
        raise CannotStart("Invalid argument", error.message) from error


def _made(server: Server, settings: CommandSettings) -> Listeners:
    try:
        return Listeners(server, Site(settings.catalogue, settings.config, server.regions))
    except ServeError as error:
        raise CannotStart("Invalid argument", error.message) from error


def _folders(repositories: Sequence[str]) -> list[Path]:
    for path in repositories:
        if not Path(path).is_dir():
            raise CannotStart("Internal", f"failed to stat file {path}")
    return [Path(path) for path in repositories]


async def _load(server: Server, settings: CommandSettings, stop: StopSignals) -> Listing | None:
    """Return the result of loading; None if a signal to stop came meanwhile."""
    loading = asyncio.ensure_future(server.start(_tell, settings.startup))
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({loading, stopped}, return_when="FIRST_COMPLETED")
    stopped.cancel()
    if loading.done():
        return loading.result()
    loading.cancel()
    await asyncio.wait({loading})
    return None


def _tell(status: VersionStatus) -> None:
    for level, text in narrate(status):
        log.log(level, "%s", text)


async def _listen(listeners: Listeners) -> bool:
    try:
        await listeners.start()
    except CannotListen as error:
        service = _SERVICES[error.service]
        log.error(
            "failed to start %s service: Unavailable - Socket '%s' already in use ", service, error.address
        )
        return False
    except click.ClickException as error:
        log.error("%s", error.message)
        return False
    for service, line in _STARTED.items():
        if service in listeners.places:
            log.info(line, listeners.places[service])
    return True


async def _go_down(server: Server, stop: StopSignals, listeners: Listeners) -> int:
    server.begin_drain()
    log.info("Waiting for in-flight requests to complete.")
    report = await listeners.drain(stop.left)
    await listeners.close()
    for line in report.unfinished:
        log.warning("cut off: %s", line)
    if report.unfinished:
        log.error("failed to stop server: Internal - Exit timeout expired. Exiting immediately.")
    log.info("All models are stopped, unloading models")
    _count(server, stop.left)
    killed = await server.close(stop.left)
    for line in killed:
        log.warning("cut off: %s", line)
    _count(server, stop.left)
    return _FAILED if report.unfinished or killed else 0


def _count(server: Server, left: float) -> None:
    live = len(server.specs())
    log.info("Timeout %d: Found %d live models and 0 in-flight non-inference requests", left, live)
