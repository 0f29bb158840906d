"""The life of a TorchServe: listen, read the models, say so, load, serve until a signal, drain.

The order of these and the exit status are the original's (spec sheet `torchserve`, section 1, and its log): once it
says that it has started every model is known, and workers are started behind that; a model that cannot be loaded is a
line of the log.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trivium import app
from trivium.commands.cannot_listen import CannotListen, taken
from trivium.commands.life import Life, LifeWords, ListenMoment, ServerParts, StartReport, live
from trivium.commands.server_line import ServerLine, bound, cut_off, error, warning, write_to
from trivium.core.server import Server
from trivium.servers.torchserve.archive.repository import TorchServeFormat
from trivium.servers.torchserve.command.logs import TorchServeLogs
from trivium.servers.torchserve.command.machine import measuring
from trivium.servers.torchserve.command.records import AnswerRecords, TorchServeRecorder, make_meter
from trivium.servers.torchserve.command.report import APIS
from trivium.servers.torchserve.command.settings import TorchServeSettings
from trivium.servers.torchserve.command.snapshots import SnapshotWriter
from trivium.servers.torchserve.command.token_check import authorizers
from trivium.servers.torchserve.words.tokens import Tokens
from trivium.types.by_type import ByType
from trivium.types.errors import ServeError
from trivium.types.operations import VersionStatus
from trivium.types.state import VersionState

_log = logging.getLogger("org.pytorch.serve.ModelServer")
_say = write_to(_log)
_MODELS = "org.pytorch.serve.wlm.ModelManager"


@dataclass(frozen=True, slots=True)
class LifeServices:
    """Holds what a server's life needs besides its settings."""

    opening: Sequence[ServerLine]
    """What it says of itself first."""

    tokens: Tokens | None
    """The keys, if requests need one."""

    snapshots: Path | None
    """The folder for snapshots, if there are any."""

    known: Callable[[], None]
    """Called once clients may come and every model is known."""

    ends: Callable[[], None]
    """Called at the very end, however it ends."""

    logs: TorchServeLogs
    """Where the lines go that are no records of the log."""


async def live_as_torchserve(settings: TorchServeSettings, services: LifeServices) -> int:
    """Run from start to end, and return the exit status."""
    try:
        async with services.logs.written():
            return await live(record(settings, services))
    finally:
        services.ends()


def record(settings: TorchServeSettings, services: LifeServices) -> Life[ServerLine]:
    """Return how a server of these settings lives."""
    config, tokens, logs = settings.loaded.config, services.tokens, services.logs
    meter = make_meter(settings.metrics, logs)
    keys = () if tokens is None else (tokens,)
    snapshots = _Snapshots(settings, services.snapshots)
    return Life(
        parts=ServerParts(
            catalogue=settings.catalogue,
            config=config,
            form=TorchServeFormat(settings.rules, os.environ),
            recorder=TorchServeRecorder(meter),
            states=ByType(meter, settings.rules.sequence_names, *keys),
            authorizers=authorizers(tokens, app.listeners(settings.catalogue, config)),
            log=AnswerRecords(meter, logs),
        ),
        words=LifeWords(
            opening=services.opening,
            listens=partial(bound, apis=APIS),
            cannot_listen=_cannot_listen,
            cut_off=cut_off,
            stopped=lambda report: (ServerLine("Torchserve stopped."),),
        ),
        say=_say,
        add=partial(_add, settings),
        listens=ListenMoment.FIRST,
        progress=lambda server: nullcontext(_tell),
        known=services.known,
        up=snapshots.begin,
        beside=lambda server: measuring(server, meter, settings.sources),
        draining=snapshots.end,
        closed=logs.flush,
    )


class _Snapshots:
    """The snapshots of a life, if it has any: begun once its models are loaded, and those that the last one names serve
    by default.
    """

    def __init__(self, settings: TorchServeSettings, folder: Path | None) -> None:
        self._settings = settings
        self._folder = folder
        self._writer: SnapshotWriter | None = None

    async def begin(self, server: Server, report: StartReport) -> None:
        """Have the versions serve by default that a snapshot names, as far as they have loaded, and write the first."""
        for name, version in self._settings.startup.defaults:
            try:
                await server.set_default(name, version)
            except ServeError as fault:
                _say(warning(fault.message))
        if self._folder is not None:
            self._writer = SnapshotWriter(server, self._settings.sources, self._settings.store, self._folder)
            await self._writer.begin()

    async def end(self, left: float) -> None:
        """Write the last."""
        if self._writer is not None:
            with contextlib.suppress(TimeoutError):  # its disk may hang
                async with asyncio.timeout(left):
                    await self._writer.end()


def _add(settings: TorchServeSettings, server: Server) -> None:
    for item, why in settings.startup.failures:
        _say(_unloaded(item, why))
    for model in settings.startup.models:
        _say(ServerLine(f"Loading initial models: {model.item}"))
        try:
            model.add_to(server)
        except ServeError as fault:
            _say(_unloaded(model.item, fault.message))


def _tell(status: VersionStatus) -> None:
    match status.state:
        case VersionState.READY:
            _say(ServerLine(f"Model {status.model} loaded.", log=_MODELS))
        case VersionState.FAILED:
            _say(_unloaded(status.model, status.reason))


def _unloaded(model: str, why: str) -> ServerLine:
    return warning(f"Failed to load model: {model}, {why}")


def _cannot_listen(fault: CannotListen) -> Iterable[ServerLine] | None:
    return (error(taken(fault, "in the configuration")),) if fault.address else None
