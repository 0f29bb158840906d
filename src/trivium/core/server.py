"""The core's face: takes operations, answers through sinks; complete without HTTP.

It gives each verb to the part that knows: the registry, a loaded model, the life cycle. The composition root
hands it its formats, engines and probe; it knows none of them by name.
"""

import asyncio
import itertools
import os
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from os import PathLike
from typing import TypeVar

import msgspec

from trivium.core.buffer_pool import BufferPool
from trivium.core.clock import LoopClock, LoopWatch
from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.collect import MetricsCollector, OtherCounts
from trivium.core.models.control import Change, LazyModels, ModelControl
from trivium.core.models.lifecycle import Lifecycle, LoadServices, Progress
from trivium.core.models.listing import listed, page
from trivium.core.models.readiness import ReadyAnswers
from trivium.core.models.registry import Registry
from trivium.core.models.repository import Repository, chosen, loading_order
from trivium.core.models.server_view import ServerView
from trivium.core.models.trials import Trials
from trivium.core.models.waiting import WaitingRoom
from trivium.core.observability.custom_metrics import CustomMetrics
from trivium.core.observability.recording import recorded_measure
from trivium.core.observability.tracing import Tracing
from trivium.core.queueing.deferred import DeferredAnswers
from trivium.core.request import COMPLETED
from trivium.core.services import CoreServices
from trivium.core.streams.spool import StreamStore
from trivium.core.workers.child_process import END_SECONDS, TERM_SECONDS
from trivium.core.workers.process_launcher import WorkerServices
from trivium.log_settings import LOG
from trivium.machine.shared_memory import Regions
from trivium.types.buffers import Lease
from trivium.types.core_config import CoreConfig
from trivium.types.datatype import Array
from trivium.types.debug_state import ModelDebugState
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.interfaces import (
    FindEngine,
    Format,
    Sink,
    Ticket,
)
from trivium.types.operations import (
    Answer,
    CollectMetrics,
    Defer,
    Describe,
    DescribeAll,
    Fetch,
    Infer,
    InferLazily,
    List,
    Listen,
    Listing,
    ListServed,
    Live,
    LogControl,
    LogReport,
    ModelDescription,
    ModelDescriptions,
    Observe,
    Operation,
    Readiness,
    Ready,
    RegionOperation,
    Register,
    ResponsePart,
    Scale,
    ServerDescription,
    SetDefault,
    Statistics,
    TraceControl,
    TraceReport,
    Unregister,
    VersionStatus,
)
from trivium.types.payload import PayloadKind, Raw, RawPart, Scalar, Tensors
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource, Place
from trivium.types.spec import InvalidModel, ModelSpec
from trivium.types.state import SERVER_MOVES, ServerState, move
from trivium.types.statistics import VersionStatistics

Worked = TypeVar("Worked")


def _make_token() -> str:
    return str(uuid.uuid4())


DEFAULTS = CoreConfig()
READING_THREADS = 2
"""Threads that make tensors of long bodies."""
CLOSING_SECONDS = 1.0
"""For each thing to be closed once a server's time to stop is over."""


class Server:
    """Serves models to whoever submits operations. Use as `async with`.

    All methods but `execute_sync` belong to the loop that entered it.
    """

    _state = ServerState.STARTING

    def __init__(
        self,
        formats: Sequence[Format],
        find_engine: FindEngine,
        services: CoreServices,
        config: CoreConfig = DEFAULTS,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._config = config
        self.is_recorded = services.recorder is not None
        """Does a recorder hear of its requests? It may ask over which wire one came."""
        self._guard, self._close_facts = services.guard, services.close_facts
        self._opening = ThreadPoolExecutor(config.loads_at_once, thread_name_prefix="trivium-open")
        self._reading = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="trivium-read")
        self._registry = registry = Registry()
        self._routes = self._registry.routes
        self._mailbox = Mailbox(self._loop.call_soon_threadsafe)
        clock = LoopClock(self._loop)
        self.metrics = CustomMetrics()
        self._tracing = Tracing(clock.now, services.exporter, config.traces)
        self._workers = self._worker_services(services, clock)
        loading = LoadServices(
            find_engine,
            services.facts,
            self._mailbox,
            clock,
            self._opening,
            self._workers,
            self._tracing,
            self.metrics.forget,
            self._offload,
            None if services.try_model is None else Trials(services.try_model, self._opening),
            StreamStore(config.unread, config.defaults.scratch, self._offload),
            is_patient=lambda: self._room.is_open,
        )
        self._lifecycle = lifecycle = Lifecycle(self._registry, loading, config)
        watches = config.watches_loop
        self._watch = LoopWatch(self._loop, is_loading=lambda: lifecycle.is_loading) if watches else None
        self._repository = Repository(formats, config, self._opening, services.fetch)
        self._numbers = itertools.count(1)
        self._control = ModelControl(registry, self._lifecycle, self._repository, config, lambda: self._is_up)
        self._lazy = LazyModels(self._registry, self._control, self.submit, clock.now)
        self._room = WaitingRoom(self._registry, clock, self.submit, config.is_patient)
        self._readiness = ReadyAnswers(self._registry, clock, lambda: self._state, config.is_lenient)
        others = OtherCounts(self._watch, self._workers.deaths, self._tracing.exemplars)
        self._collector = MetricsCollector(registry, self.metrics, config.measures, lifecycle.cache, others)
        self.view = ServerView(registry, self._readiness, clock, self._workers)
        self.buffers = BufferPool(config.kept_buffer_bytes)
        self._deferred = DeferredAnswers(config.deferred, clock.now, _make_token, self.submit, self._offload)
        self.regions = Regions(config.client_shared_memory, reserved=config.reserved_regions)

    def _worker_services(self, services: CoreServices, clock: LoopClock) -> WorkerServices:
        return WorkerServices(
            self,
            recorded_measure(self.metrics.take, services.recorder),
            services.host,
            self._config,
            observer=services.observer,
            guard=services.guard,
            recorder=services.recorder,
            call_last=clock.call_last,
        )

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def state(self) -> ServerState:
        """Return where the server is in its life."""
        return self._state

    @property
    def _is_up(self) -> bool:
        return self._state in (ServerState.STARTING, ServerState.SERVING)

    def add(self, place: Place, form: Format | None = None, asked: ModelSource | None = None) -> None:
        """Take a path to serve, or a source to fetch; before `start`. `form` saves asking the formats, `asked` is what
        shall hold in spite of its files. Raises NOT_FOUND, as `Repository.add`.
        """
        self._repository.take(place, form, asked)

    async def start(
        self,
        progress: Progress | None = None,
        only: Collection[str] | None = None,
        known: Callable[[], Awaitable[None]] | None = None,
    ) -> Listing:
        """Load everything, or `only` these models and those that they need, the others becoming known; models that
        fail are in the listing with their reason, the others serve. `known` is awaited when every model is known, and
        none is loaded yet.
        """
        self._report_to(progress)
        unfetched = await self._repository.fetch_all()
        await self._control.look()
        found, broken = await self._repository.read()
        broken = unfetched + broken
        if only is not None:
            for name in [one.name for one in found] + [one.name for one in broken]:
                self._registry.record(name, "")
            found, broken = chosen(found, broken, only)
        for unreadable in broken:
            self._lifecycle.note(unreadable)
        for spec in (spec for one in found for spec in one.wanted):
            self._registry.record(spec.name, spec.version).spec = spec
        self._registry.at_start = frozenset(record.name for record in self._registry.records())
        if known is not None:
            await known()
        for wave in loading_order(found):
            loads = (self._lifecycle.load(model) for model in wave)
            for result in await asyncio.gather(*loads, return_exceptions=True):
                if isinstance(result, BaseException) and not isinstance(result, ServeError):
                    raise anew(result)
        if self._state is ServerState.STARTING:
            self._move(ServerState.SERVING)
            self._control.start_watch()
        return self._registry.listing()

    def _report_to(self, progress: Progress | None) -> None:
        """Report every change of a version's state to those requests that wait for it, and to `progress`."""

        def tell(status: VersionStatus) -> None:
            self._room.told(status)
            self._workers.news.tell(status)
            if progress is not None:
                progress(status)

        self._lifecycle.report_to(tell)

    async def examine(self) -> tuple[list[ModelSpec], list[InvalidModel]]:
        """Return what `start` would load, complete, and what it could not; loads nothing."""
        unfetched = await self._repository.fetch_all()
        found, broken = await self._repository.read()
        said = [one async for one in self._lifecycle.completion.examined(found)]
        specs = [one for one in said if isinstance(one, ModelSpec)]
        return specs, unfetched + broken + [one for one in said if isinstance(one, InvalidModel)]

    def specs(self) -> tuple[ModelSpec, ...]:
        """The specs of all versions that serve, sorted by model, then version number."""
        return tuple(r.loaded.spec for r in self._registry.records() if r.loaded is not None)

    def lend(self, model: str, version: str, size: int, lead: int = 0) -> Lease:
        """Memory for a request's body: what its model's workers share (behind `lead` bytes aligned), else a buffer.
        Raises the ServeError that a request to the model gets, if it is named and does not serve.
        """
        try:
            lease = self._registry.serving(model, version).lend(size, lead)
        except ServeError:
            if model and not self._room.takes(model, version):
                raise
            lease = None
        return self.buffers.lend(size) if lease is None else lease

    def submit(self, operation: Operation, sink: Sink) -> Ticket:
        """Begin an operation; its answer comes through the sink, at once where it takes no time."""
        if type(operation) is Infer:
            model = None if operation.version else self._routes.get(operation.model)
            if model is None:
                try:
                    model = self._registry.serving(operation.model, operation.version)
                except ServeError as error:
                    if (waiting := self._room.join(operation, sink)) is not None:
                        return waiting
                    name, version = operation.model, operation.version
                    sink(ResponsePart(error=frameless(error), model=name, version=version))
                    return COMPLETED
                if not operation.adapter and (adapter := self._registry.adapter_meant(operation.model)):
                    operation = msgspec.structs.replace(operation, adapter=adapter)
            return model.submit(next(self._numbers), operation, sink)
        if isinstance(operation, Change):
            self._control.begin(operation, sink)
        elif isinstance(operation, InferLazily):
            return self._lazy.begin(operation, sink)
        elif isinstance(operation, CollectMetrics | Ready | Listen):
            return self._begin(operation, sink)
        elif isinstance(operation, DescribeAll) and operation.asked is not None:
            return self.submit(operation.asked, partial(self._describe_with, operation, sink))
        else:
            try:
                part = ResponsePart(answer=self._answer(operation))
            except ServeError as error:
                part = ResponsePart(error=frameless(error))
            sink(part)
        return COMPLETED

    def _begin(self, operation: CollectMetrics | Ready | Listen, sink: Sink) -> Ticket:
        """Begin what may take its time."""
        if isinstance(operation, Listen):
            return self.view.begin(sink)
        if isinstance(operation, Ready):
            self._readiness.begin(operation, sink)
        else:
            self._collector.begin(sink)
        return COMPLETED

    async def execute(self, operation: Operation) -> ResponsePart:
        """Submit and wait for the final part. Raises the ServeError that it holds. Cancelling cancels."""
        done: asyncio.Future[ResponsePart] = self._loop.create_future()

        def sink(part: ResponsePart) -> None:
            if part.final and not done.done():
                done.set_result(part)

        ticket = self.submit(operation, sink)
        try:
            part = await done
        except asyncio.CancelledError:
            ticket.cancel(ServeError(Code.CANCELLED, "The caller was cancelled."))
            raise
        if part.error is not None:
            raise anew(part.error)
        return part

    def execute_sync(self, operation: Operation) -> ResponsePart:
        """`execute` from another thread."""
        return asyncio.run_coroutine_threadsafe(self.execute(operation), self._loop).result()

    async def infer(self, model: str, inputs: Mapping[str, Array], version: str = "") -> Tensors:
        """Run one item on numpy arrays by name; outputs by name in the answer. A handler's own body is tensors where
        its content type says so, else one element of bytes called `output`; `run` returns it as it is. Raises
        ServeError, for an answer whose status says that it failed, too.
        """
        wants = PayloadKind.TENSORS
        operation = Infer(model=model, version=version, payload=Tensors.of(inputs), wants=wants)
        answer = (await self.execute(operation)).payload
        assert isinstance(answer, Tensors), "it was asked for"
        return answer

    async def run(
        self,
        model: str,
        body: bytes | memoryview,
        content_type: str = "",
        *,
        version: str = "",
        parameters: Mapping[str, Scalar] | None = None,
    ) -> Tensors | Raw:
        """Run one item on a body, as a client would send it: a handler gets it as it is, other models get the tensors
        that its content type makes of it (JSON, npz, safetensors, ...). Returns what the model answers: tensors by
        name, or a handler's own body. Raises ServeError, for an answer whose status says that it failed, too.
        """
        payload = Raw((RawPart(body, content_type),), {"content-type": content_type} if content_type else {})
        infer = Infer(model=model, version=version, payload=payload, parameters=parameters or {})
        answer = (await self.execute(infer)).payload
        assert isinstance(answer, Tensors | Raw)
        if isinstance(answer, Raw) and answer.status >= 400:
            raise ServeError(
                Code.MODEL_FAILED,
                f"Model '{model}' answered with status {answer.status}: {_beginning(answer)}",
                status=answer.status,
            )
        return answer

    async def register(
        self, path: str | PathLike[str], *, name: str = "", version: str = "", wait: bool = True
    ) -> tuple[VersionStatus, ...]:
        """Serve what a folder or file holds in addition to what serves already, under another `name` or `version` if
        one is given. Returns the state of its models' versions. Raises ServeError (NOT_FOUND, LOAD_FAILED, CONFLICT),
        and then nothing of it is left; without `wait` it loads behind this call, and the listing tells what became of
        it.
        """
        source = ModelSource(os.fspath(path), name, version)
        return (await self._listed(Register(source, wait))).versions

    async def unregister(self, model: str, version: str = "") -> None:
        """Stop serving a version, or all of a model, and forget it; items in flight finish. Raises NOT_FOUND."""
        await self._listed(Unregister(model, version))

    async def scale(
        self,
        model: str,
        minimum: int,
        maximum: int | None = None,
        *,
        version: str = "",
        device: str = "",
        wait: bool = True,
    ) -> None:
        """Have from `minimum` to `maximum` instances (None: exactly the minimum) in every instance group, or in those
        on one kind of `device` ("cpu", "gpu"). With 0 and 0 the version is cold: accepted items finish, new ones are
        refused with NOT_READY; with 0 and more they wait and open an instance. Raises INVALID, NOT_FOUND, UNSUPPORTED
        for a graph, and with `wait` what keeps an instance from opening.
        """
        top = minimum if maximum is None else maximum
        await self._listed(Scale(model, minimum, top, version, device, wait))

    async def set_default(self, model: str, version: str = "") -> None:
        """Choose the version that serves requests without one; empty: the greatest that is ready."""
        await self._listed(SetDefault(model, version))

    def describe(self, model: str, version: str = "") -> ModelDescription:
        """Describe a version of a model in full: its spec, the state of all versions, its instances, its queue. Raises
        NOT_FOUND, or NOT_READY where it does not serve.
        """
        return self._described(Describe(model, version, in_full=True))

    def list(self, *, ready: bool = False, limit: int = 0, after: str = "") -> Listing:
        """List the versions of all models with their states; see `operations.List`."""
        return page(self._registry.listing(), ready, limit, after)

    async def _listed(self, operation: Change) -> Listing:
        answer = (await self.execute(operation)).answer
        assert isinstance(answer, Listing)
        return answer

    def statistics(self, model: str, version: str = "") -> VersionStatistics:
        """Counters of the version that serves, since it was loaded. Raises like `infer`."""
        return self._registry.serving(model, version).report()

    def debug_state(self, model: str, version: str = "") -> ModelDebugState:
        """Copy what a version that serves holds at this moment, for a developer who debugs. Raises like `infer`."""
        return self._registry.serving(model, version).debug_state()

    async def poll(self, retries: bool = True) -> None:
        """Look once for models whose files changed, and follow them, as happens by itself every `poll_seconds`; with
        `retries` models that failed are tried again, changed or not. Raises UNSUPPORTED where models do not follow
        their files.
        """
        await self._control.poll(retries)

    async def exchange(self, places: Sequence[Place]) -> None:
        """Serve what these paths and sources hold, in place of those that were added, all of it or nothing: what is new
        or differs is loaded before what it replaces is dropped, and what is in flight finishes. What clients registered
        stays. Raises as `poll`; NOT_FOUND as `add`, and LOAD_FAILED with what cannot be loaded.
        """
        await self._control.exchange(places)

    def begin_drain(self) -> None:
        """Readiness says no from now on; requests that still come are served, and nobody waits for a load or another
        change of what is served any more.
        """
        if self._is_up:
            self._move(ServerState.DRAINING)
            self._room.close()
            self._control.begin_drain()
            self.view.close()

    async def close(self, grace: float = 30.0) -> tuple[str, ...]:
        """Unload everything within `grace` seconds; what is in flight or has not ended then is given up, and has a
        second to be closed. Loads in work are given up at once. Returns a line for each worker that had to be killed.
        """
        if self._state is ServerState.STOPPED:
            return ()
        until = self._loop.time() + grace
        self.begin_drain()
        if self._watch is not None:
            self._watch.close()
        self._workers.observer.close()
        self._deferred.close()
        await self._control.close()
        self._repository.close()
        await self._collector.close()
        await self._lifecycle.close(self._left(until))
        killed = await self._workers.close(min(self._left(until), END_SECONDS + TERM_SECONDS))
        await self._lifecycle.undone(self._left(until))
        await self._close_facts()
        await _in_time(self._tracing.close, self._left(until))
        await _in_time(self._guard.close, self._left(until))
        self._mailbox.close()
        for threads in (self._opening, self._reading):
            threads.shutdown(wait=False, cancel_futures=True)
        self._move(ServerState.STOPPED)
        return killed

    def _offload(self, work: Callable[[], Worked], done: Callable[[Worked], None]) -> None:
        future = self._loop.run_in_executor(self._reading, work)
        future.add_done_callback(lambda future: None if future.cancelled() else done(future.result()))

    def _left(self, until: float) -> float:
        return max(until - self._loop.time(), CLOSING_SECONDS)

    def _answer(
        self,
        operation: Defer
        | Fetch
        | Live
        | Describe
        | DescribeAll
        | List
        | Statistics
        | RegionOperation
        | LogControl
        | TraceControl
        | Observe
        | ListServed,
    ) -> Answer:
        match operation:
            case Defer():
                return self._deferred.begin(operation)
            case Fetch():
                return self._deferred.fetch(operation)
            case Live():
                return Readiness(self._state is not ServerState.STOPPED)
            case Describe("", _):
                return ServerDescription("trivium", self._config.version, self._state)
            case Describe():
                return self._described(operation)
            case DescribeAll(model, version):
                return self._all_described(model, version)
            case List() | ListServed():
                return listed(self._registry, operation, self._state is ServerState.STARTING)
            case Statistics(model, version):
                return self._registry.report(model, version)
            case Observe(model, version):
                return self.view.observed(self._all_described(model, version) if model else None)
            case LogControl(change):
                return LogReport(LOG.change(change))
            case TraceControl():
                return self._traced(operation)
            case _:
                return self.regions.answer(operation)

    def _traced(self, operation: TraceControl) -> TraceReport:
        if operation.model:
            self._registry.serving(operation.model)
        return self._tracing.answer(operation)

    def _described(self, operation: Describe) -> ModelDescription:
        registry = self._registry
        loaded = registry.serving(operation.model, operation.version)
        name = loaded.spec.name
        brief = ModelDescription(loaded.spec, registry.ready_versions(name), tuple(loaded.deaths))
        if not operation.in_full:
            return brief
        whole = msgspec.structs.replace(
            brief,
            default=registry.default_version(name),
            statuses=registry.listing(name).versions,
            source=registry.known(name, loaded.spec.version).source,
        )
        return loaded.described(whole)

    def _all_described(self, model: str, version: str) -> ModelDescriptions:
        model = self._registry.own_name(model) or self._registry.serving("", version).spec.name
        self._registry.known(model, version)
        statuses = self._registry.listing(model, version).versions
        records = [self._registry.known(model, status.version) for status in statuses]
        return ModelDescriptions(
            statuses,
            tuple(
                self._with_members(self._described(Describe(model, record.version, in_full=True)))
                if record.loaded is not None
                else ModelDescription(
                    record.spec, (), source=record.source, queued=self._room.count(model, record.version)
                )
                for record in records
                if record.spec is not None
            ),
            self._registry.default_version(model),
        )

    def _describe_with(self, operation: DescribeAll, sink: Sink, part: ResponsePart) -> None:
        """Describe a model, once an item has been run for that: with the first part of what it answers."""
        if part.error is not None:
            sink(part)
        elif part.final:
            try:
                found = self._all_described(operation.model, operation.version)
            except ServeError as error:
                sink(ResponsePart(error=frameless(error)))
                return
            sink(ResponsePart(answer=msgspec.structs.replace(found, said=part.payload)))

    def _with_members(self, described: ModelDescription) -> ModelDescription:
        """Return the description of a graph with those of the models that it runs and that serve."""
        graph = described.spec.scheduling
        if not isinstance(graph, Graph):
            return described
        found = []
        for model, version in graph.places:
            with suppress(ServeError):
                found.append(self._described(Describe(model, version, in_full=True)))
        statuses = (self._registry.listing(one.spec.name, one.spec.version).versions[0] for one in found)
        return msgspec.structs.replace(described, members=ModelDescriptions(tuple(statuses), tuple(found)))

    def _move(self, to: ServerState) -> None:
        self._state = move(SERVER_MOVES, self._state, to)


async def _in_time(close: Callable[[], None], seconds: float) -> None:
    """Run something that blocks, and leave it to itself when its time is over."""
    await asyncio.wait([asyncio.ensure_future(asyncio.to_thread(close))], timeout=seconds)


def _beginning(answer: Raw) -> str:
    data = bytes(answer.parts[0].data[:500]) if answer.parts else b""
    return data.decode("utf-8", "replace") or answer.reason
