"""Loads and unloads: registers before loading, loads new before dropping old, drops only what is idle.

The version policy decides which versions; this module carries it out, one change per model at a time. A load
that fails leaves what served before serving, and its reason in the registry.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec

from trivium.core.graph import instance as graph
from trivium.core.graph import policy as graph_policy
from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.rate_limiter import RateLimiter
from trivium.core.instances.scaler import Launch
from trivium.core.models import version_policy
from trivium.core.models.broadcasts import have_made
from trivium.core.models.completion import Facts, SpecCompletion
from trivium.core.models.launcher import Launcher
from trivium.core.models.model_context import ModelContext, Offload, at_once
from trivium.core.models.preparations import Preparations, PreparedLoad
from trivium.core.models.registry import Record, Registry
from trivium.core.models.repository import ModelEntry
from trivium.core.models.served_model import ServedModel
from trivium.core.models.trials import Trials
from trivium.core.observability.tracing import Tracing
from trivium.core.queueing.call_graph import CallGraph
from trivium.core.queueing.response_cache import ResponseCache, Section
from trivium.core.request import GIVEN_UP
from trivium.core.streams.spool import StreamStore
from trivium.core.workers.process_launcher import WorkerServices
from trivium.machine.memory import FreeMemory
from trivium.machine.memory_guard import MemoryGuard
from trivium.types import reasons
from trivium.types.core_config import CoreConfig
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ConfigError, ServeError, anew, frameless, named
from trivium.types.findings import Severity
from trivium.types.interfaces import Clock, Engine, FindEngine, Format, default_isolation
from trivium.types.operations import Scale, VersionStatus
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource
from trivium.types.spec import Device, InvalidModel, Isolation, ModelSpec
from trivium.types.state import VersionState

log = logging.getLogger(__name__)

Progress = Callable[[VersionStatus], None]
_LEVELS = {Severity.ERROR: logging.WARNING, Severity.NOTICE: logging.WARNING, Severity.REMARK: logging.INFO}


@dataclass(frozen=True, slots=True)
class LoadServices:
    """Holds what opening models takes: `find_engine` looks up, `facts` asks the inspector, `executor` has the
    threads that open, `forget` drops the metrics that a model counted once it is gone, `offload` reads long bodies in
    threads, `trials` know which files may be opened in this process, `store` keeps what receivers leave unread,
    `memory` tells what is free, `is_patient` whether requests wait though instances do not open.
    """

    find_engine: FindEngine
    facts: Facts
    mailbox: Mailbox
    clock: Clock
    executor: Executor
    workers: WorkerServices
    tracing: Tracing
    forget: Callable[[str], None]
    offload: Offload = at_once
    trials: Trials | None = None
    store: StreamStore = field(default_factory=StreamStore.in_memory)
    memory: FreeMemory = field(default_factory=FreeMemory)
    is_patient: Callable[[], bool] = lambda: False


class Lifecycle:
    """Loads and unloads versions of models. Used on the loop only."""

    def __init__(self, registry: Registry, services: LoadServices, config: CoreConfig) -> None:
        self._registry = registry
        self._services = services
        self._config = config
        self._calls = CallGraph()
        self._means = partial(
            ModelContext,
            calls=self._calls,
            measures=config.measures,
            tracing=services.tracing,
            offload=services.offload,
            store=services.store,
            observer=services.workers.observer,
            recorder=services.workers.recorder,
            given_up=self._given_up,
            is_patient=services.is_patient,
            binds_answers=config.binds_answers,
            news=services.workers.news,
        )
        self.cache = ResponseCache(config.cache_bytes) if config.cache_bytes else None
        self._limiter = None if config.resources is None else RateLimiter(config.resources)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.completion = SpecCompletion(
            services.find_engine,
            services.facts,
            services.executor,
            config.loads_at_once,
            services.workers.observer.opening,
        )
        self._memory = MemoryGuard(services.memory)
        self._loads = 0
        self._drains: set[asyncio.Task[None]] = set()
        self._progress: Progress = lambda status: None
        self._preparations = Preparations(config.loads_at_once, config.defaults.scratch, services.workers)

    @property
    def is_loading(self) -> bool:
        """Is any model being loaded?"""
        return self._loads > 0

    def report_to(self, progress: Progress) -> None:
        """Call `progress` with every change of a version's state from now on, and with FAILED for one that is given up
        though it is not unloaded.
        """
        self._progress = progress

    async def register(self, entry: ModelEntry, source: ModelSource, keep_failed: bool = False) -> None:
        """Serve every version of an entry in addition to what serves already. Raises CONFLICT where one is there, or
        any where nobody gave a version; the first failure, and then none of the entry's versions is left, unless with
        `keep_failed`.
        """
        async with self._locks[entry.name]:
            self.check_new(entry)
            records = [self._registry.record(entry.name, spec.version) for spec in entry.specs]
            for record in records:
                record.source, record.vanished = entry.asked.get(record.version, source), False
                record.is_member = entry.is_member
            for record, spec in zip(records, entry.specs, strict=True):
                record.spec = record.spec or spec
            loads = (
                self._load(record, spec, entry.form)
                for record, spec in zip(records, entry.specs, strict=True)
            )
            try:
                failures = [error for error in await asyncio.gather(*loads) if error is not None]
            except BaseException:
                self._discard(records)
                raise
            if failures:
                if not keep_failed:
                    self._discard(records)
                raise anew(failures[0])

    def check_new(self, entry: ModelEntry) -> None:
        """Raises CONFLICT for a version that is known already, and for one that nobody gave where any is. One that was
        unregistered, and still finishes what it has in work, is not known any more; see also `forget_failed`.
        """
        records = self._registry.records(entry.name)
        there = {record.version for record in records if not record.vanished}
        for spec in entry.specs:
            if spec.version in there or (there and not spec.is_versioned):
                raise _registered_twice(spec)

    async def forget_failed(self, entry: ModelEntry) -> list[ModelSource]:
        """Forget what an entry is registered in place of: its versions that did not load, and its model where that
        could not be read. Returns the sources of which nothing is left.
        """
        async with self._locks[entry.name]:
            coming = {spec.version for spec in entry.specs}
            records = [
                record
                for record in self._registry.records(entry.name)
                if record.state is VersionState.FAILED and (record.spec is None or record.version in coming)
            ]
            self._discard(records)
            return self._unused(entry.name, records)

    def _unused(self, name: str, gone: Sequence[Record]) -> list[ModelSource]:
        """Return the sources of records that are gone, but for those that still have another."""
        sources = {id(record.source): record.source for record in gone}
        left = {id(record.source) for record in self._registry.records(name) if not record.vanished}
        return [source for key, source in sources.items() if source is not None and key not in left]

    def _discard(self, records: Sequence[Record]) -> None:
        for record in records:
            record.vanished = True
            self._drop(record, forget=True)

    async def unregister(self, name: str, version: str) -> list[ModelSource]:
        """Stop serving a version, or all of a model (no version), and forget it; returns at once, what is in flight
        finishes. Returns the sources of which nothing is left. Raises NOT_FOUND.
        """
        self._registry.known(name, version)  # before a lock is made for the name
        async with self._locks[name]:
            self._registry.known(name, version)
            records = [record for record in self._registry.records(name) if version in ("", record.version)]
            self._discard(records)
            return self._unused(name, records)

    async def scale(self, operation: Scale) -> None:
        """Give a version's instance groups new bounds, or those of all models that a graph runs. Raises as
        `ServedModel.scale` and `ServedModel.scaled`.
        """
        loaded = self._registry.serving(operation.model, operation.version)
        if isinstance(loaded.spec.scheduling, Graph):
            for name, version in loaded.spec.scheduling.places:
                await self.scale(msgspec.structs.replace(operation, model=name, version=version))
            return
        record = self._registry.known(loaded.spec.name, loaded.spec.version)
        loaded.scale(operation.minimum, operation.maximum, _device(operation.device))
        state = VersionState.COLD if loaded.is_cold else VersionState.READY
        if record.state is not state:
            self._move(record, state)
        if operation.wait:
            await loaded.scaled()

    async def load(self, found: ModelEntry) -> None:
        """Serve the versions that the policy wants of those found. Raises the first failure, after trying all;
        then nothing is unloaded, so that what served goes on.
        """
        name = found.name
        async with self._locks[name]:
            available = {spec.version: spec for spec in found.specs}
            serving = self._registry.ready_versions(name)
            plan = version_policy.plan(serving, available, found.specs[0].version_policy)
            records = [self._registry.record(name, version) for version in plan.load]
            for record in records:
                record.vanished = False
                record.source = found.asked.get(record.version, record.source)
                record.is_member = found.is_member
            loads = (self._load(record, available[record.version], found.form) for record in records)
            failures = [error for error in await asyncio.gather(*loads) if error is not None]
            if failures:
                raise anew(failures[0])
            for record in self._registry.records(name):
                if record.version not in plan.load:
                    self._drop(record, forget=True)

    async def unload(self, name: str) -> None:
        """Stop serving; returns at once, what is in flight finishes."""
        async with self._locks[name]:
            for record in self._registry.records(name):
                self._drop(record, forget=False)

    async def remove(self, name: str) -> None:
        """Stop serving a model whose files are gone, and forget it; returns at once, what is in flight finishes."""
        async with self._locks[name]:
            for record in self._registry.records(name):
                record.vanished = True
                self._drop(record, forget=True)

    def is_arriving(self, name: str, version: str = "") -> bool:
        """Does nobody serve a version, or any of a model, while something is being done with that model?"""
        is_busy = name in self._locks and self._locks[name].locked()
        records = (record for record in self._registry.records(name) if version in ("", record.version))
        return is_busy and all(record.loaded is None for record in records)

    async def settled(self, name: str) -> None:
        """Wait until what is being done with a model has been done."""
        async with self._locks[name]:
            pass

    async def drained(self, name: str) -> None:
        """Wait until what was in flight of a model that was unloaded has ended."""
        drains = [drain for drain in self._drains if drain.get_name() == name]
        if drains:
            await asyncio.wait(drains)

    def note(self, broken: InvalidModel) -> ServeError:
        """Register a model that cannot be read as failed, next to what may serve under its name."""
        error = ConfigError(broken.findings)
        record = self._registry.record(broken.name, "")
        if record.state is not VersionState.LOADING:
            record.move(VersionState.LOADING)
        self._move(record, VersionState.FAILED, error.message)
        return error

    def refusal(self, broken: InvalidModel) -> ServeError:
        """Why a model cannot be loaded. It is registered as failed, unless it serves: then that goes on."""
        if not self._registry.ready_versions(broken.name):
            return self.note(broken)
        return ConfigError(broken.findings)

    async def close(self, grace: float) -> None:
        """Unload everything; what is still in flight after `grace` seconds is given up."""
        until = self._services.clock.now() + grace
        for names in reversed(self._waves()):  # a graph needs its members to the end
            for record in (record for name in names for record in self._registry.records(name)):
                self._drop(record, forget=False)
            if self._drains:
                left = max(until - self._services.clock.now(), 0.0)
                _, late = await asyncio.wait(self._drains, timeout=left)
                for drain in late:
                    drain.cancel()
                await asyncio.gather(*late, return_exceptions=True)

    async def undone(self, seconds: float) -> None:
        """Wait so long at most until what was prepared for models that are gone is undone; after their workers' end."""
        await self._preparations.close(seconds)

    def _waves(self) -> list[list[str]]:
        """All models that are known, each after those that it needs."""
        needs: dict[str, set[str]] = {}
        for record in self._registry.records():
            wanted = () if record.spec is None else graph_policy.members(record.spec)
            needs.setdefault(record.name, set()).update(wanted)
        order, stuck = graph_policy.waves(needs)
        return [*order, stuck] if stuck else order

    async def _load(self, record: Record, spec: ModelSpec, form: Format) -> ServeError | None:
        self._move(record, VersionState.LOADING, only_tell=record.loaded is not None)
        record.spec = record.spec or spec
        try:
            spec, loaded = await self._opened(spec, form)
        except ServeError as error:
            failure = record.blamed(frameless(error))
        except Exception as error:
            log.exception("loading model '%s' version %s failed", spec.name, spec.version)
            failure = ServeError(Code.INTERNAL, f"Loading failed: {named(error)}")
        else:
            record.spec = spec
            before = self._registry.publish(record, loaded)
            self._move(record, VersionState.READY, only_tell=before is not None)
            if loaded.is_cold and record.state is VersionState.READY:
                self._move(record, VersionState.COLD)
            if before is not None:
                self._drain(before, None)
            return None
        self._move(record, VersionState.FAILED, failure.message, only_tell=record.loaded is not None)
        return failure

    async def _opened(self, spec: ModelSpec, form: Format) -> tuple[ModelSpec, ServedModel]:
        """Try as often as the server was configured to; the last failure is the one that counts."""
        self._loads += 1
        try:
            for left in range(self._config.load_retries, 0, -1):
                try:
                    return await self._open(spec, form)
                except ServeError as error:
                    log.warning(
                        "model '%s' failed to load; %d more tries: %s", spec.name, left, error.message
                    )
            return await self._open(spec, form)
        finally:
            self._loads -= 1

    async def _open(self, spec: ModelSpec, form: Format) -> tuple[ModelSpec, ServedModel]:
        async with self._memory.loading(spec):
            if isinstance(spec.scheduling, Graph):
                return await self._open_prepared(spec, form, None)
            prepared = await self._preparations.prepare(self._engine(spec), spec)
            try:
                return await self._open_prepared(prepared.spec, form, prepared)
            except BaseException as error:
                prepared.undo()
                if isinstance(error, ServeError):
                    prepared.blame(frameless(error))
                raise

    async def _open_prepared(
        self, spec: ModelSpec, form: Format, prepared: PreparedLoad | None
    ) -> tuple[ModelSpec, ServedModel]:
        spec = await self.completion.complete(spec, form)
        for finding in spec.reports:
            log.log(_LEVELS[finding.severity], "%s", finding)
        loaded = self._built(spec, prepared)
        try:
            await loaded.open()
            await have_made(spec.name, graph_policy.member_calls(spec), self._registry.serving)
        except BaseException:
            await loaded.close()
            raise
        return loaded.spec, loaded

    def _built(self, spec: ModelSpec, prepared: PreparedLoad | None) -> ServedModel:
        steps = spec.scheduling
        if isinstance(steps, Graph):
            spec = self._joined(spec, steps)
            launch = graph.launcher(spec, self._services.workers.submits, self._services.clock.now)
            means = self._means(takes=graph.takes(steps), cache=self._section(spec))
            return self._served(spec, Isolation.INLINE, launch, means)
        engine = self._engine(spec)
        launcher = Launcher(
            engine, spec, self._services.executor, self._services.workers, self._services.trials
        )
        section = self._section(spec)
        means = self._means(
            takes=engine.takes, arena=launcher.arena, cache=section, limiter=self._limiter, prepared=prepared
        )
        return self._served(spec, default_isolation(engine, spec), launcher.launch, means)

    def _served(
        self, spec: ModelSpec, isolation: Isolation, launch: Launch, means: ModelContext
    ) -> ServedModel:
        return ServedModel(spec, isolation, launch, self._services.mailbox, self._services.clock, means)

    def _section(self, spec: ModelSpec) -> Section | None:
        """Return where its answers are kept. Raises LOAD_FAILED for a model whose answers cannot be."""
        if self.cache is None or not spec.caches:
            return None
        return self.cache.section(spec, self._services.clock.now)

    def _joined(self, spec: ModelSpec, steps: Graph) -> ModelSpec:
        """A graph with what its members bring. Raises LOAD_FAILED where one does not serve, ConfigError where they do
        not fit together.
        """
        there: dict[int, ModelSpec] = {}
        for i, step in enumerate(steps.steps):
            if not step.model:
                continue
            try:
                there[i] = self._registry.serving(step.model, step.version).spec
            except ServeError as error:
                text = f"Model '{spec.name}' depends on model '{step.model}'. {error.message}"
                raise ServeError(Code.LOAD_FAILED, text) from error
        faults = graph_policy.faults(spec, there)
        if faults:
            raise ConfigError(faults)
        return graph_policy.joined(spec, steps, there)

    def _engine(self, spec: ModelSpec) -> Engine:
        return self._services.find_engine(spec)

    def _drop(self, record: Record, forget: bool) -> None:
        loaded = self._registry.withdraw(record)
        if loaded is not None:
            self._move(record, VersionState.UNLOADING)
            self._drain(loaded, record)
        elif forget:
            self._registry.forget(record)

    def _drain(self, loaded: ServedModel, record: Record | None) -> None:
        loaded.end_waits(_withdrawn(loaded.spec))
        task = asyncio.ensure_future(self._drained(loaded, record))
        task.set_name(loaded.spec.name)
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)

    async def _drained(self, loaded: ServedModel, record: Record | None) -> None:
        why, limit = GIVEN_UP, loaded.spec.limits.drain_seconds
        with suppress(asyncio.CancelledError):  # the time of grace is over: what is left is given up
            try:
                async with asyncio.timeout(limit):
                    await loaded.idle()
            except TimeoutError:
                why = _unloaded(loaded.spec, limit)
        await loaded.close(why)
        if not self._registry.ready_versions(loaded.spec.name):
            self._services.forget(loaded.spec.name)
        # It may have been loaded again while the old one drained.
        if record is not None and record.state is VersionState.UNLOADING:
            self._move(record, VersionState.UNLOADED, "unloaded")
            if record.vanished:
                self._registry.forget(record)

    def _given_up(self, spec: ModelSpec, why: ServeError) -> None:
        self._progress(VersionStatus(spec.name, spec.version, VersionState.FAILED, why.message))

    def _move(self, record: Record, state: VersionState, reason: str = "", only_tell: bool = False) -> None:
        """`only_tell` of what becomes of a version that serves on as it was meanwhile."""
        if not only_tell:
            record.move(state, reason)
        self._progress(VersionStatus(record.name, record.version, state, reason))


def _device(name: str) -> Device | None:
    """Return the kind of device that a request names, None where it names none. Raises INVALID."""
    if not name:
        return None
    try:
        return Device(name.lower())
    except ValueError as error:
        kinds = ", ".join(device.value for device in Device)
        raise ServeError(
            Code.INVALID,
            f"There is no kind of device {name[:40]!r}; there are: {kinds}. Name one of them, or none.",
        ) from error


def _unloaded(spec: ModelSpec, limit: float | None) -> ServeError:
    return ServeError(
        Code.DRAINING,
        f"Model '{spec.name}' version {spec.version} was unloaded, and this request was not done {limit:g} s later.",
    )


def _withdrawn(spec: ModelSpec) -> ServeError:
    return ServeError(
        Code.NOT_READY,
        f"Model '{spec.name}' version {spec.version} was unloaded, or loaded anew, while its scaling was waited for. "
        "Look whether it is still wanted, and scale what serves now.",
        info=ErrorInfo.of(reasons.NOT_SERVING, model=spec.name, version=spec.version, state="unloading"),
    )


def _registered_twice(spec: ModelSpec) -> ServeError:
    return ServeError(
        Code.CONFLICT,
        f"Model '{spec.name}' version {spec.version} is registered already. Unregister it first, or give the new one "
        "another version.",
        info=ErrorInfo.of(reasons.REGISTERED_TWICE, model=spec.name, version=spec.version),
    )
