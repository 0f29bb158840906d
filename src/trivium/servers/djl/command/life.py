"""The life of a DJL server: say what it is, load, listen, serve until a signal, drain.

The order of these and the exit status are the original's (spec sheet `djl`, sections 1.1, 1.3 and 1.5): it listens once
every model is loaded, or before if `wait_model_loading` is false; a model that fails ends it.
"""

import asyncio
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from trivium.commands.cannot_listen import CannotListen, taken
from trivium.commands.life import (
    ExitStatuses,
    FatalFailure,
    Life,
    LifeWords,
    ListenMoment,
    ServerParts,
    StartReport,
)
from trivium.commands.server_line import ServerLine, bound, cut_off, error, write_to
from trivium.core.server import Server
from trivium.profiles import GRPC, HTTP, MANAGEMENT
from trivium.servers.djl.command.server_metrics import LifeMetrics, failure
from trivium.servers.djl.command.settings import ServingSettings
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.types.by_type import ByType
from trivium.types.interfaces import Format

STATUSES = ExitStatuses(cannot_listen=2, given_up=137)
"""With `SERVING_FAIL_FAST` a server ends once it has given up a model."""

LAST_PINGS = 3.0
"""Seconds for which a server whose models failed still answers how they are."""

_ADDRESSES = "by inference_address, management_address or grpc_port"
_log = logging.getLogger("ModelServer")


def record(settings: ServingSettings, opening: Sequence[ServerLine]) -> Life[ServerLine]:
    """Return how a server of these settings lives; `opening` is said first."""
    form = DjlFormat(settings.under, settings.environments, takes_weights=True)
    states = ByType() if settings.lazy is None else ByType(settings.lazy)
    parts = ServerParts(catalogue=settings.catalogue, config=settings.loaded.config, form=form, states=states)
    given_up = asyncio.Event()
    counting = _Counting(settings, given_up)
    return Life(
        parts=parts,
        words=LifeWords(
            opening=opening,
            listens=lambda listeners: bound(listeners, apis(listeners.places)),
            cannot_listen=_cannot_listen,
            loaded=_loaded,
            stopping=lambda left: (ServerLine("Stopping model server."),),
            cut_off=cut_off,
        ),
        say=write_to(_log),
        add=partial(_add, settings, form, parts.formats),
        listens=ListenMoment.LOADED if settings.waits else ListenMoment.KNOWN,
        fatal=FatalFailure.ANY,
        last_answers=LAST_PINGS,
        statuses=STATUSES,
        given_up=given_up if settings.fails_fast else None,
        progress=counting.begin,
        up=counting.end,
    )


class _Counting:
    """Counts a start in the original's metrics, and hears of models that are given up."""

    def __init__(self, settings: ServingSettings, given_up: asyncio.Event) -> None:
        self._version = settings.catalogue.version
        self._given_up = given_up

    def begin(self, server: Server) -> AbstractContextManager[LifeMetrics]:
        """Count from here on, for as long as the server lives."""
        self._metrics = LifeMetrics(self._version, server.metrics.take, self._given_up.set)
        return nullcontext(self._metrics)

    async def end(self, server: Server, report: StartReport) -> None:
        """Count that it has started."""
        self._metrics.listens()


def apis(places: Container[str]) -> Mapping[str, str]:
    """Return the word for each listener: where management has none of its own, the other serves both APIs."""
    return {
        HTTP: "INFERENCE" if MANAGEMENT in places else "BOTH",
        MANAGEMENT: "MANAGEMENT",
        GRPC: "GRPC",
    }


def _add(settings: ServingSettings, form: DjlFormat, formats: Sequence[Format], server: Server) -> None:
    for model in settings.models:
        _log.info("Initializing model: %s", model.source.uri)
        if model.path is None:
            server.add(model.source)
            continue
        claiming = next((each for each in formats if each.claims(model.path)), form)
        server.add(model.path, claiming, model.source)


def _cannot_listen(fault: CannotListen) -> Iterable[ServerLine] | None:
    return (error(taken(fault, _ADDRESSES)),) if fault.address else None


def _loaded(report: StartReport) -> Iterable[ServerLine]:
    for row in report.failed:
        yield error(f"Failed to load model {row.model}: {row.reason}")
    if report.failed:
        yield failure("StartupFailed")
