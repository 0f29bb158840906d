"""Reads models as a server would, and asks engines about them, without a server: what `trivium check` does.

Knows no engine, format or server by name, and imports no front end: a check is a short program.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from trivium.config.core_config import core_config
from trivium.config.engine_parameters import trusts_code
from trivium.config.options import ServerConfig
from trivium.core.models.completion import SpecCompletion, remarked, unreadable
from trivium.core.models.inspector import ModelInspector
from trivium.core.models.repository import Repository
from trivium.core.models.trials import Trials
from trivium.devices import count_gpus
from trivium.fetchers.gate import gate
from trivium.guard import ServerGuard
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.interfaces import (
    NO_OBSERVER,
    Engine,
    Fetcher,
    FindEngine,
    Format,
    TellsCompute,
    TranslatorKind,
)
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource, Place
from trivium.types.spec import InvalidModel, ModelSpec
from trivium.types.spoken import spoken
from trivium.types.tracing import TraceSettings


@dataclass(frozen=True, kw_only=True)
class ModelCatalogue:
    """Holds all that models are read and run by. Tables have the names by which their rows are asked for."""

    engines: Mapping[str, Engine]
    find_engine: FindEngine
    """Finds the engine that runs a model, with its translator around it."""

    formats: Sequence[Format]
    translators: Mapping[str, TranslatorKind]
    fetchers: Sequence[Fetcher]
    probe: Sequence[str]
    """The command that asks engines about models, in a process of its own."""


def check_engines(engines: Mapping[str, Engine], parameters: Iterable[str]) -> None:
    """Refuse a parameter of an engine that there is not: it would be ignored in silence."""
    for name in parameters:
        engine = name.partition(".")[0]
        if engine not in engines:
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--engine-parameters: there is no engine '{engine}' ({name}); there are "
                    f"{', '.join(sorted(engines))}."
                ),
            )


class Examination:
    """Examines the paths that it is given, once. Made on the loop, and used as `async with`."""

    def __init__(
        self,
        catalogue: ModelCatalogue,
        config: ServerConfig,
        formats: Sequence[Format] | None = None,
        *,
        runs: bool = False,
        gpus: int | None = None,
    ) -> None:
        """`formats` go in place of the catalogue's; `runs` says whether models that a server would open in its own
        process are run once; `gpus` is how many the machine has that will serve them, this one where it is None.
        Raises INVALID for options that cannot be used.
        """
        self._find_engine, self._runs = catalogue.find_engine, runs
        settings = core_config(config, "", count_gpus() if gpus is None else gpus, TraceSettings(), ())
        check_engines(catalogue.engines, settings.defaults.engine_parameters)
        models = config.models
        trusts = trusts_code(settings.defaults.engine_parameters)
        fetch = gate(
            catalogue.fetchers, models.fetch_from, models.fetch_bytes, models.fetch_seconds, with_code=trusts
        )
        self._guard = ServerGuard()
        settings = settings.in_folder(self._guard.scratch)
        self._threads = ThreadPoolExecutor(settings.loads_at_once, thread_name_prefix="trivium-open")
        formats = catalogue.formats if formats is None else formats
        self._repository = Repository(formats, settings, self._threads, fetch)
        self._inspector = ModelInspector(catalogue.probe, self._guard, catalogue.find_engine)
        self._completion = SpecCompletion(
            catalogue.find_engine,
            self._inspector.facts,
            self._threads,
            settings.loads_at_once,
            NO_OBSERVER.opening,
        )
        self._trials = Trials(self._inspector.try_model, self._threads)

    async def __aenter__(self) -> "Examination":
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._repository.close()
        await self._inspector.close()
        await asyncio.to_thread(self._guard.close)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def add(self, place: Place, form: Format | None = None, asked: ModelSource | None = None) -> None:
        """Take a path, or a source to fetch; see `Server.add`. Raises NOT_FOUND."""
        self._repository.take(place, form, asked)

    async def models(self) -> AsyncIterator[ModelSpec | InvalidModel]:
        """Give each model, as it would run or with what keeps it from that, as soon as it is known."""
        for unfetched in await self._repository.fetch_all():
            yield unfetched
        found, broken = await self._repository.read()
        for invalid in broken:
            yield invalid
        async for one in self._completion.examined(found):
            yield await self._tried(one) if self._runs else one

    async def _tried(self, model: ModelSpec | InvalidModel) -> ModelSpec | InvalidModel:
        if isinstance(model, InvalidModel) or isinstance(model.scheduling, Graph):
            return model
        computes = isinstance(self._find_engine(replace(model, translator=None)), TellsCompute)
        try:
            await self._trials.try_here(self._find_engine(model), model)
            remarks = await self._inspector.compute(model) if computes else ()
        except ServeError as error:
            return unreadable(model, frameless(error))
        return remarked(model, remarks)
