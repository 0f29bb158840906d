"""The life of a DJL server: say what it is, load, listen, serve until a signal, drain.

Decides the order of these and the exit status, as the original (spec sheet `djl`, sections 1.1, 1.3 and 1.5): it
listens once every model is loaded, or before if `wait_model_loading` is false; a model that fails ends it.
"""

import asyncio
import logging
from collections.abc import Iterable

from trivium import app
from trivium.app import Site
from trivium.commands.cannot_listen import CannotListen
from trivium.commands.collector import COLLECTIONS
from trivium.commands.listeners import Listeners
from trivium.commands.process import observer
from trivium.commands.stopping import CUT_OFF, StopSignals
from trivium.core.server import Server
from trivium.servers.djl.command.report import bound
from trivium.servers.djl.command.server_metrics import LifeMetrics, log_failure
from trivium.servers.djl.command.settings import ServingSettings
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.types.by_type import ByType
from trivium.types.operations import Listing
from trivium.types.state import VersionState

_log = logging.getLogger("ModelServer")
FAILED, CANNOT_BIND, GIVEN_UP = 1, 2, 137
"""Exit statuses: of a server whose models do not load, of one that cannot listen, and with `SERVING_FAIL_FAST` of one
that has given up a model.
"""

LAST_PINGS = 3.0
"""Seconds for which a server whose models failed still answers how they are."""


async def live(settings: ServingSettings) -> int:
    """Run from start to end; returns the exit status."""
    config = settings.loaded.config
    stop = StopSignals(config.server.drain_timeout)
    form = DjlFormat(settings.under, settings.environments, takes_weights=True)
    formats = (form, *(each for each in settings.catalogue.formats if not isinstance(each, DjlFormat)))
    async with app.build(
        settings.catalogue, config, observer(config.workers.shares_processor), formats
    ) as server:
        for model in settings.models:
            _log.info("Initializing model: %s", model.source.uri)
            if model.path is None:
                server.add(model.source)
                continue
            claiming = next((each for each in formats if each.claims(model.path)), form)
            server.add(model.path, claiming, model.source)
        states = ByType() if settings.lazy is None else ByType(settings.lazy)
        listeners = Listeners(server, Site(settings.catalogue, config, server.regions, states))
        try:
            return await _serve(server, listeners, settings, stop)
        except CannotListen as error:
            _log.error(
                "Failed to listen: %s is taken, or not an address of this machine (%s). Choose another by "
                "inference_address, management_address or grpc_port (port 0 takes a free one), or stop what listens "
                "there.",
                error.address,
                error.service,
            )
            return CANNOT_BIND


async def _serve(server: Server, listeners: Listeners, settings: ServingSettings, stop: StopSignals) -> int:
    async def listen() -> None:
        await listeners.start()
        for line in bound(listeners.places, settings):
            _log.info("%s", line)

    known = None if settings.waits else listen
    given_up = asyncio.Event()
    metrics = LifeMetrics(settings.catalogue.version, server.metrics.take, given_up.set)
    loading = asyncio.ensure_future(server.start(metrics, known=known))
    stopped = asyncio.ensure_future(_until(stop, given_up if settings.fails_fast else None))
    await asyncio.wait({loading, stopped}, return_when="FIRST_COMPLETED")
    if not loading.done():
        loading.cancel()
        await asyncio.wait({loading})
        return await _go_down(server, listeners, stop, settings.fails_fast and given_up.is_set())
    if _say_failures(loading.result()):
        log_failure("StartupFailed")
        if listeners.places:
            await asyncio.wait({stopped}, timeout=LAST_PINGS)
        stopped.cancel()
        await listeners.close()
        return FAILED
    if settings.waits:
        await listen()
    metrics.listens()
    COLLECTIONS.settle()
    await stopped
    return await _go_down(server, listeners, stop, settings.fails_fast and given_up.is_set())


async def _until(stop: StopSignals, given_up: asyncio.Event | None) -> None:
    """Return at a signal to stop, or once a model is given up, where that ends the server."""
    waits = [asyncio.ensure_future(each.wait()) for each in (stop, given_up) if each is not None]
    await asyncio.wait(waits, return_when="FIRST_COMPLETED")
    for wait in waits:
        wait.cancel()


def _say_failures(listing: Listing) -> bool:
    failed = [row for row in listing.versions if row.state is VersionState.FAILED]
    for row in failed:
        _log.error("Failed to load model %s: %s", row.model, row.reason)
    return bool(failed)


async def _go_down(server: Server, listeners: Listeners, stop: StopSignals, has_failed: bool) -> int:
    server.begin_drain()
    _log.info("Stopping model server.")
    report = await listeners.drain(stop.left)
    await listeners.close()
    lines = (*report.unfinished, *await server.close(stop.left))
    _say_cut(lines)
    status = CUT_OFF if lines else 0
    return GIVEN_UP if has_failed else status


def _say_cut(lines: Iterable[str]) -> None:
    for line in lines:
        _log.warning("cut off: %s", line)
