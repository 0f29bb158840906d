"""Completes specs with what the files of their models say, and tells of models that would be served together which can.

Loads nothing: the one way of a spec from its format to what a load opens, for a load and for `trivium check` alike.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import replace

from trivium.core.graph import policy as graph_policy
from trivium.core.models import version_policy
from trivium.core.models.inspector import can_tell
from trivium.core.models.repository import ModelEntry
from trivium.types.errors import ConfigError, ServeError, frameless
from trivium.types.findings import Finding, Severity
from trivium.types.interfaces import FindEngine, Format, SupportsCheck
from trivium.types.schedules import Graph
from trivium.types.spec import InvalidModel, ModelFacts, ModelSpec, Origin

Facts = Callable[[ModelSpec], Awaitable[ModelFacts]]
"""Asks the inspector what a model file says."""


class SpecCompletion:
    """Asks engines and translators about models, so many at once; `opening` is held while a process is asked."""

    def __init__(
        self,
        find_engine: FindEngine,
        facts: Facts,
        executor: Executor,
        at_once: int,
        opening: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._find_engine = find_engine
        self._facts = facts
        self._executor = executor
        self._turn = asyncio.Semaphore(at_once)
        self._opening = opening

    async def complete(self, spec: ModelSpec, form: Format) -> ModelSpec:
        """The spec with what the model file says. ServeError: no such engine, or the two disagree."""
        if isinstance(spec.scheduling, Graph):
            return spec
        engine = self._find_engine(spec)
        if can_tell(engine, spec):
            spec = await self._finished(spec, form)
        if isinstance(engine, SupportsCheck):
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._executor, engine.check, spec)
            if any(one.severity is Severity.ERROR for one in found):
                raise ConfigError((*spec.reports, *found))
            spec = replace(spec, reports=(*spec.reports, *found))
        return spec

    async def _finished(self, spec: ModelSpec, form: Format) -> ModelSpec:
        async with self._turn:
            with self._opening():  # the probe is a process
                facts = await self._facts(spec)
        notices = tuple(Finding(Severity.NOTICE, _file(spec), None, "", note) for note in facts.notes)
        details = {name: value for name, (value, _) in facts.details.items()}
        sources = {f"details[{name}]": Origin(source, "") for name, (_, source) in facts.details.items()}
        spec = replace(
            spec,
            details={**details, **spec.details},
            origin={**sources, **spec.origin},
            context=facts.context or spec.context,
        )
        return form.finish(remarked(replace(spec, reports=spec.reports + notices), facts.remarks), facts)

    async def examined(self, found: Sequence[ModelEntry]) -> AsyncIterator[ModelSpec | InvalidModel]:
        """Give what would be served of these, complete, and what would not: each as soon as it is known, and graphs
        once their members are.
        """
        specs: list[ModelSpec] = []
        for model in found:
            available = {spec.version: spec for spec in model.specs}
            plan = version_policy.plan((), available, model.specs[0].version_policy)
            for version in plan.load:
                try:
                    spec = await self.complete(available[version], model.form)
                except ServeError as error:
                    yield unreadable(available[version], frameless(error))
                    continue
                specs.append(spec)
                if not isinstance(spec.scheduling, Graph):
                    yield spec
        good, unfit = graph_policy.examined(specs)
        for graph in (spec for spec in good if isinstance(spec.scheduling, Graph)):
            yield graph
        for invalid in unfit:
            yield invalid


def unreadable(spec: ModelSpec, error: ServeError) -> InvalidModel:
    """Return what is said of a model that cannot be served."""
    if isinstance(error, ConfigError):
        return InvalidModel(spec.name, spec.root, error.findings)
    finding = Finding(Severity.ERROR, str(spec.root / spec.entry), None, "", error.message)
    return InvalidModel(spec.name, spec.root, (finding,))


def remarked(spec: ModelSpec, remarks: Sequence[str]) -> ModelSpec:
    """Return the spec with remarks about its model file."""
    found = tuple(Finding(Severity.REMARK, _file(spec), None, "", remark) for remark in remarks)
    return replace(spec, reports=spec.reports + found)


def _file(spec: ModelSpec) -> str:
    return str((spec.shown_root or spec.root) / spec.entry)
