"""The life of a TorchServe: listen, read the models, say so, load, serve until a signal, drain.

Decides the order of these and the exit status. Source: spec sheet `torchserve`, section 1, and the original's log: once
it says that it has started every model is known, and workers are started behind that; a model that cannot be loaded is
a line of the log.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trivium import app
from trivium.app import Site
from trivium.commands.cannot_listen import CannotListen
from trivium.commands.collector import COLLECTIONS
from trivium.commands.listeners import Listeners
from trivium.commands.process import observer
from trivium.commands.stopping import CUT_OFF, StopSignals
from trivium.core.server import Server
from trivium.servers.torchserve.archive.repository import TorchServeFormat
from trivium.servers.torchserve.command.logs import TorchServeLogs
from trivium.servers.torchserve.command.machine import measuring
from trivium.servers.torchserve.command.options import FAILED
from trivium.servers.torchserve.command.records import AnswerRecords, TorchServeRecorder, make_meter
from trivium.servers.torchserve.command.report import bound
from trivium.servers.torchserve.command.settings import TorchServeSettings
from trivium.servers.torchserve.command.snapshots import SnapshotWriter
from trivium.servers.torchserve.command.token_check import authorizers
from trivium.servers.torchserve.words.tokens import Tokens
from trivium.types.by_type import ByType
from trivium.types.errors import ServeError
from trivium.types.operations import Listing, VersionStatus
from trivium.types.state import VersionState

_log = logging.getLogger("org.pytorch.serve.ModelServer")
_models = logging.getLogger("org.pytorch.serve.wlm.ModelManager")


@dataclass(frozen=True, slots=True)
class LifeServices:
    """Holds what a server's life needs besides its settings: the keys, if requests need one, the folder for snapshots,
    if there are any, what is called once clients may come and every model is known (`listens`), what at the very end,
    and the logs.
    """

    tokens: Tokens | None
    snapshots: Path | None
    listens: Callable[[], None]
    ends: Callable[[], None]
    logs: TorchServeLogs


async def live(settings: TorchServeSettings, services: LifeServices) -> int:
    """Run from start to end, and return the exit status."""
    try:
        return await _live(settings, services)
    finally:
        services.ends()


async def _live(settings: TorchServeSettings, services: LifeServices) -> int:
    tokens = services.tokens
    config = settings.loaded.config
    stop = StopSignals(config.server.drain_timeout)
    form = TorchServeFormat(settings.rules, os.environ)
    formats = (form, *(each for each in settings.catalogue.formats if not isinstance(each, TorchServeFormat)))
    meter = make_meter(settings.metrics, services.logs)
    recorder = TorchServeRecorder(meter)
    seen = observer(config.workers.shares_processor)
    async with (
        app.build(settings.catalogue, config, seen, formats, recorder) as server,
        services.logs.written(),
    ):
        keys = () if tokens is None else (tokens,)
        states = ByType(meter, settings.rules.sequence_names, *keys)
        allowed = authorizers(tokens, app.listeners(settings.catalogue, config))
        site = Site(settings.catalogue, config, server.regions, states)
        listeners = Listeners(server, site, allowed, AnswerRecords(meter, services.logs))
        try:
            await listeners.start()
        except CannotListen as error:
            _log.error(
                "Failed to listen: %s (%s) is taken, or no address of this machine. Choose another in the "
                "configuration (port 0 takes a free one), or stop what listens there.",
                error.address,
                error.service,
            )
            return FAILED
        for line in bound(listeners.places, settings):
            _log.info("%s", line)
        _add_models(server, settings)

        async def known() -> None:
            services.listens()

        loading = asyncio.ensure_future(server.start(_told, known=known))
        snapshots = None
        if services.snapshots is not None:
            snapshots = SnapshotWriter(server, settings.sources, settings.store, services.snapshots)
        async with measuring(server, meter, settings.sources):
            await _until_stopped(server, settings, loading, stop, snapshots)
        status = await _go_down(server, listeners, stop, snapshots)
        services.logs.flush()
        _log.info("Torchserve stopped.")
        return status


def _add_models(server: Server, settings: TorchServeSettings) -> None:
    for item, why in settings.startup.failures:
        _log.warning("Failed to load model: %s, %s", item, why)
    for model in settings.startup.models:
        _log.info("Loading initial models: %s", model.item)
        try:
            if model.path is None:
                server.add(model.source)
            else:
                server.add(model.path, asked=model.source)
        except ServeError as error:
            _log.warning("Failed to load model: %s, %s", model.item, error.message)


def _told(status: VersionStatus) -> None:
    match status.state:
        case VersionState.READY:
            _models.info("Model %s loaded.", status.model)
        case VersionState.FAILED:
            _log.warning("Failed to load model: %s, %s", status.model, status.reason)


async def _until_stopped(
    server: Server,
    settings: TorchServeSettings,
    loading: "asyncio.Task[Listing]",
    stop: StopSignals,
    snapshots: SnapshotWriter | None,
) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({loading, stopped}, return_when="FIRST_COMPLETED")
    if loading.done():
        loading.result()
        COLLECTIONS.settle()
        await _choose_defaults(server, settings)
        if snapshots is not None:
            await snapshots.begin()
    else:
        loading.cancel()
        await asyncio.wait({loading})
    await stopped


async def _choose_defaults(server: Server, settings: TorchServeSettings) -> None:
    """Have the versions serve by default that a snapshot names, as far as they have loaded."""
    for name, version in settings.startup.defaults:
        try:
            await server.set_default(name, version)
        except ServeError as error:
            _log.warning("%s", error.message)


async def _go_down(
    server: Server, listeners: Listeners, stop: StopSignals, snapshots: SnapshotWriter | None
) -> int:
    server.begin_drain()
    if snapshots is not None:
        with contextlib.suppress(TimeoutError):  # its disk may hang
            async with asyncio.timeout(stop.left):
                await snapshots.end()
    report = await listeners.drain(stop.left)
    await listeners.close()
    lines = (*report.unfinished, *await server.close(stop.left))
    for line in lines:
        _log.warning("cut off: %s", line)
    return CUT_OFF if lines else 0
