"""Loads and unloads that clients ask for: one task each, answered when it is through.

Decides what is read for a load: the model's folder, or a folder laid out for this load alone. What is served of it
the life cycle decides.
"""

import asyncio
import itertools
import logging
import shutil
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path

from trivium.core.graph.policy import MemberCall, member_calls
from trivium.core.models.broadcasts import have_undone
from trivium.core.models.exchange import PlaceExchange
from trivium.core.models.lifecycle import Lifecycle
from trivium.core.models.polling import RepositoryPoller, RepositoryReconciler
from trivium.core.models.registry import Record, Registry
from trivium.core.models.repository import ModelEntry, Repository, with_members
from trivium.core.models.waiting import WaitingRequest
from trivium.core.queueing.kept_payload import kept_bytes
from trivium.core.request import COMPLETED
from trivium.types import reasons
from trivium.types.core_config import CoreConfig, ModelControlMode
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ConfigError, ServeError, anew, frameless, named
from trivium.types.interfaces import Sink, Ticket
from trivium.types.operations import (
    Broadcast,
    Infer,
    InferLazily,
    Listing,
    Load,
    Register,
    Remembered,
    ResponsePart,
    Scale,
    SetDefault,
    Unload,
    Unregister,
    VersionStatus,
)
from trivium.types.registered_names import judge_name
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource, Place
from trivium.types.spoken import spoken
from trivium.types.state import VersionState

log = logging.getLogger(__name__)

Change = Load | Unload | Register | Unregister | Scale | SetDefault | Broadcast
"""Operations that change what is served."""

ListedChange = Load | Unload | Register | Unregister | Scale | SetDefault
"""Those of them that a listing answers."""

MOST_LAZY = 256
"""Models that predictions have registered and nobody has unregistered, those being loaded among them."""

MOST_WAITING_BYTES = 256 * 2**20
"""Of requests that wait for such models."""

GOING_DOWN = ServeError(Code.DRAINING, "The server is going down and changes no models any more.")


class ModelControl:
    """Carries out what clients ask to be loaded and unloaded; used on the loop only. `may_change` says no while the
    server goes down.
    """

    def __init__(
        self,
        registry: Registry,
        lifecycle: Lifecycle,
        repository: Repository,
        config: CoreConfig,
        may_change: Callable[[], bool],
    ) -> None:
        self._registry = registry
        self._lifecycle = lifecycle
        self._repository = repository
        self._scratch = config.defaults.scratch
        self._may_change = may_change
        self._tasks: dict[asyncio.Task[ResponsePart], Change] = {}
        self._loading: set[asyncio.Task[None]] = set()
        self._arriving: list[Sequence[ModelEntry]] = []
        """What is being registered, each with the members that it needs."""
        self._numbers = itertools.count(1)
        self._folders: defaultdict[str, list[Path]] = defaultdict(list)
        self._is_open = config.control is ModelControlMode.EXPLICIT
        self._polling: RepositoryPoller | None = None
        self._exchange: PlaceExchange | None = None
        self._is_timed = config.control is ModelControlMode.POLL
        if self._is_timed or config.follows_files:
            self._polling = RepositoryReconciler(registry, lifecycle, repository, config.poll_seconds).polling
            self._exchange = PlaceExchange(registry, lifecycle, repository, self._polling)

    def begin(self, operation: Change, sink: Sink) -> None:
        """The sink gets the model's listing, or what a broadcast is answered with, or why it could not be done."""
        task = asyncio.get_running_loop().create_task(self._part(operation))
        self._tasks[task] = operation
        named = operation.source.name if isinstance(operation, Register) else operation.model
        task.add_done_callback(partial(self._changed, named, sink))

    async def look(self) -> None:
        """Before the first reading: what changes afterwards will be noticed."""
        if self._polling is not None:
            await self._polling.look()

    def start_watch(self) -> None:
        """Once everything has been loaded."""
        if self._polling is not None and self._is_timed:
            self._polling.start()

    async def poll(self, retries: bool = True) -> None:
        """Look once, and follow what changed; with `retries` try again what failed. Raises UNSUPPORTED where models do
        not follow their files.
        """
        if self._polling is None:
            raise _not_polled()
        await self._polling.poll(retries)

    async def exchange(self, places: Sequence[Place]) -> None:
        """Serve what these places hold, in place of those that were added; see `PlaceExchange`. Raises UNSUPPORTED
        where models do not follow their files.
        """
        if self._exchange is None:
            raise _not_polled()
        if not self._may_change():
            raise anew(GOING_DOWN)
        if (tidying := await self._exchange.exchange(places)) is not None:
            self._behind(tidying)

    def begin_drain(self) -> None:
        """Give up the changes in work, since nobody will be served by them, and answer those who wait for one. A call
        of user code that a client asked for has its time, as any request.
        """
        for task, operation in self._tasks.items():
            if not isinstance(operation, Broadcast):
                task.cancel()

    async def close(self) -> None:
        """Give up what is in work."""
        if self._polling is not None:
            await self._polling.close()
        tasks = [*self._tasks, *self._loading]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _part(self, operation: Change) -> ResponsePart:
        if not self._may_change():
            raise anew(GOING_DOWN)
        if not self._is_open:
            raise _not_by_clients()
        _judge_names(operation)
        if isinstance(operation, Broadcast):
            model = self._registry.serving(operation.model, operation.version)
            return ResponsePart(payload=await model.broadcast(operation))
        return ResponsePart(answer=await self._change(operation))

    async def _change(self, operation: ListedChange) -> Listing:
        match operation:
            case Register():
                return await self._register(operation)
            case Unregister():
                await self._unregister(operation.model, self._chosen(operation))
            case Scale(model, version=version, wait=False) if self._lifecycle.is_arriving(model, version):
                self._behind(self._scale_behind(operation))
            case Scale(model, version=version):
                await self._arrived(model, version)
                await self._lifecycle.scale(operation)
            case SetDefault(model, version):
                await self._arrived(model, version)
                self._registry.pin(model, version)
            case Load() | Unload():
                await self._reload(operation)
        return self._registry.listing(operation.model)

    async def _register(self, operation: Register) -> Listing:
        source = operation.source
        entries = await self._repository.register(source)
        try:
            for entry in entries:
                if not (entry.is_member and self._serves(entry)):
                    for failed in await self._lifecycle.forget_failed(entry):
                        self._forget(failed, entry.name)
                    self._lifecycle.check_new(entry)
        except ServeError:
            self._forget(source, entries[-1].name)
            raise
        self._arriving.append(entries)
        for entry in entries if operation.keeps_default else ():
            self._registry.keep_default(entry.name)
        if operation.wait:
            await self._load_registered(entries, source)
        else:
            self._behind(self._load_behind(entries, source))
            await asyncio.sleep(0)  # its versions are in the registry behind this
        return Listing(tuple(row for entry in entries if not entry.is_member for row in self._rows(entry)))

    def _rows(self, entry: ModelEntry) -> Sequence[VersionStatus]:
        """Return the listing of a model; one whose members are still being loaded is registered behind them."""
        waiting = VersionState.REGISTERED
        return self._registry.listing(entry.name).versions or [
            VersionStatus(
                entry.name,
                spec.version,
                waiting,
                is_versioned=spec.is_versioned,
                least=sum(group.minimum for group in spec.groups),
            )
            for spec in entry.specs
        ]

    async def _load_registered(self, entries: Sequence[ModelEntry], source: ModelSource) -> None:
        """Load them in order. Raises the first failure, behind which nothing of them is left that nobody else needs."""
        done: list[ModelEntry] = []
        graph = entries[-1].name
        try:
            for entry in entries:
                try:
                    await self._load_new(entry, source)
                except ServeError as error:
                    raise _named(entry, graph, error) from error
                done.append(entry)
        except BaseException:
            self._arriving.remove(entries)
            for spec in (spec for entry in reversed(done) if not entry.is_member for spec in entry.specs):
                await self._lifecycle.unregister(spec.name, spec.version)
            self._forget(source, graph)
            await self._drop_members(graph, [entry.name for entry in reversed(done) if entry.is_member], ())
            raise
        self._arriving.remove(entries)

    async def _load_new(self, entry: ModelEntry, source: ModelSource, keep_failed: bool = False) -> None:
        """Load a model, unless it is a member that another graph has loaded from the same source. Raises as
        `Lifecycle.register`.
        """
        await self._lifecycle.settled(entry.name)  # another graph may be loading it
        if entry.is_member and self._serves(entry):
            return
        try:
            await self._lifecycle.register(entry, source, keep_failed)
        except ServeError:
            if not (entry.is_member and self._serves(entry)):  # another graph was quicker
                raise

    def _serves(self, entry: ModelEntry) -> bool:
        """Is a member there already, from the very source that is asked for?"""
        records = {record.version: record for record in self._registry.records(entry.name)}
        return all(
            spec.version in records
            and not records[spec.version].vanished
            and records[spec.version].state is not VersionState.FAILED
            and records[spec.version].source == entry.asked.get(spec.version)
            for spec in entry.specs
        )

    async def _unregister(self, model: str, version: str) -> None:
        members = self._members(model, version)
        calls = self._calls(model, version)
        for source in await self._lifecycle.unregister(model, version):
            self._forget(source, model)
        if members:
            self._behind(self._drop_members(model, members, calls))

    def _chosen(self, operation: Unregister) -> str:
        """Return the version that is to go. Raises CONFLICT for the default one while there are others, if it is
        spared.
        """
        model, version = operation.model, operation.version
        if not operation.spares_default:
            return version
        there = [record.version for record in self._registry.records(model) if not record.vanished]
        default = self._registry.default_version(model) or (there[-1] if there else "")
        if len(there) > 1 and version in ("", default):
            raise ServeError(
                Code.CONFLICT,
                f"Version {default} of model '{model}' serves the requests that name no version, and there are others: "
                f"{', '.join(there)}. Choose another one for that first, or unregister the others.",
                info=ErrorInfo.of(reasons.DEFAULT_VERSION, model=model, version=default),
            )
        return version or default

    def _calls(self, model: str, version: str = "") -> list[MemberCall]:
        """Return what versions of a graph, or of all graphs, need of their models."""
        records = [one for one in self._registry.records(model) if version in ("", one.version)]
        specs = [record.spec for record in records if record.spec is not None and not record.vanished]
        return [call for spec in specs for call in member_calls(spec)]

    async def _drop_members(self, graph: str, names: Sequence[str], calls: Sequence[MemberCall]) -> None:
        """Unregister those members of a graph that is gone which no other graph runs, once nothing in flight does;
        those that stay make no more calls for it.
        """
        await self._lifecycle.drained(graph)
        needed = self._calls("")
        await have_undone([call for call in calls if call not in needed], self._registry.serving)
        for name in names:
            for record in self._registry.records(name):
                if record.is_member and not record.vanished and not self._is_needed(record):
                    await self._unregister(name, record.version)

    def _is_needed(self, member: Record) -> bool:
        arriving = (entry for entries in self._arriving for entry in entries if entry.is_member)
        return any(entry.name == member.name and member.version in entry.asked for entry in arriving) or any(
            step.model == member.name and step.version in ("", member.version)
            for record in self._registry.records()
            if not record.vanished and record.spec is not None and isinstance(record.spec.scheduling, Graph)
            for step in record.spec.scheduling.steps
        )

    def _behind(self, work: Coroutine[None, None, None]) -> None:
        """Do it without having anybody wait for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    def _forget(self, source: ModelSource, model: str) -> None:
        """Read a source no more, and remove what was fetched for it once nothing in flight needs it."""
        if folders := self._repository.forget(source):
            self._folders[model] += folders
            self._free_later(model)

    async def _load_behind(self, entries: Sequence[ModelEntry], source: ModelSource) -> None:
        """Load all of them, whatever becomes of one: nobody waits, and who looks finds those that failed."""
        for entry in entries:
            try:
                await self._load_new(entry, source, keep_failed=True)
            except ServeError as error:
                log.error("registering %s failed: %s", source.uri, error.message)
        self._arriving.remove(entries)

    async def _arrived(self, model: str, version: str) -> None:
        """Wait for what is being loaded before it is changed, as whoever unregisters it does."""
        if self._lifecycle.is_arriving(model, version):
            await self._lifecycle.settled(model)

    async def _scale_behind(self, operation: Scale) -> None:
        await self._arrived(operation.model, operation.version)
        try:
            await self._lifecycle.scale(operation)
        except ServeError as error:
            log.error(
                "scaling '%s', as it was asked while it loaded, failed: %s", operation.model, error.message
            )

    async def _reload(self, operation: Load | Unload) -> None:
        if isinstance(operation, Unload):
            self._registry.serving(operation.model)
            members = self._members(operation.model) if operation.with_dependents else ()
            await self._lifecycle.unload(operation.model)
            self._free_later(operation.model)
            if members:
                await self._lifecycle.drained(operation.model)  # what is in flight still needs them
            for name in members:
                await self._lifecycle.unload(name)
        elif operation.config is None and not operation.files:
            for found in await self._find(operation.model):
                await self._lifecycle.load(found)
            self._free_later(operation.model)
        else:
            await self._load_overridden(operation)

    def _changed(self, model: str, sink: Sink, task: asyncio.Task[ResponsePart]) -> None:
        del self._tasks[task]
        error = GOING_DOWN if task.cancelled() else task.exception()
        if error is None:
            sink(task.result())
            return
        if not isinstance(error, ServeError):
            log.error("changing model '%s' failed", model, exc_info=error)
            error = ServeError(Code.INTERNAL, f"Our own fault: {named(error)}")
        sink(ResponsePart(error=frameless(error), model=model))

    def _members(self, model: str, version: str = "") -> Sequence[str]:
        """The models of a graph's steps, if it is one."""
        records = [one for one in self._registry.records(model) if version in ("", one.version)]
        graphs = [record.spec.scheduling for record in records if record.spec is not None]
        return list(
            dict.fromkeys(name for graph in graphs if isinstance(graph, Graph) for name in graph.models)
        )

    async def _find(self, model: str) -> list[ModelEntry]:
        """The model as its folder is now; of a graph, in front of it, the members that do not serve yet."""
        found, broken = await self._repository.read()
        for unreadable in broken:
            if unreadable.name == model:
                raise self._lifecycle.refusal(unreadable)
        for one in found:
            if one.name == model:
                wanted = with_members(one, found)
                lacking = [each for each in wanted if not self._registry.ready_versions(each.name)]
                return [each for each in lacking if each is not one] + [one]
        names = ", ".join(sorted(one.name for one in found)) or "nothing"
        raise ServeError(
            Code.NOT_FOUND, f"No folder or file of model '{model}' was found; the paths served hold {names}."
        )

    async def _load_overridden(self, operation: Load) -> None:
        if self._scratch is None:
            raise ServeError(
                Code.UNSUPPORTED,
                "This server was built without a scratch folder and can load models only as they are. Change the "
                "files and load without 'config' and files.",
            )
        into = self._scratch / f"load-{next(self._numbers)}"
        try:
            found = await self._repository.read_overridden(operation, into)
            await self._lifecycle.load(found)
        finally:
            self._folders[operation.model].append(into)
            await self._tidy(operation.model, kept=1)

    def _free_later(self, model: str) -> None:
        """Remove what was sent for a model once nothing in flight needs it."""
        if self._folders.get(model):
            self._behind(self._free(model))

    async def _free(self, model: str) -> None:
        await self._lifecycle.drained(model)
        await self._tidy(model, kept=0)

    async def _tidy(self, model: str, kept: int) -> None:
        """Remove the folders from which no version serves, but for the last `kept`: what drains may still need them."""
        records = self._registry.records(model)
        roots = [record.loaded.spec.root for record in records if record.loaded is not None]
        folders = self._folders[model]
        idle = [f for f in folders if not any(root.is_relative_to(f) for root in roots)]
        idle = idle[: len(idle) - kept]
        for folder in idle:  # before anything is waited for: who looks meanwhile finds none of them
            folders.remove(folder)
        for folder in idle:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _named(entry: ModelEntry, graph: str, error: ServeError) -> ServeError:
    """Return why a member cannot be loaded, with its name and that of the graph which brings it."""
    if not entry.is_member or isinstance(error, ConfigError):
        return error
    text = f"Model '{entry.name}', which '{graph}' brings: {error.message}"
    return ServeError(error.code, text, error.retry_after, error.status, error.info)


def _judge_names(operation: Change) -> None:
    """Raise INVALID for a name that is to be registered, and may not be."""
    match operation:
        case Register(source):
            for text, what in ((source.name, "a model"), (source.version, "a version")):
                if text:
                    judge_name(text, what)
        case Load(model) if operation.config is not None or operation.files:
            judge_name(model, "a model")
        case Broadcast(topic=topic, remembered=Remembered.ADDED):
            judge_name(topic, "an adapter")


class LazyModels:
    """Registers a model when a first request asks for it, and has that and those behind it wait. Used on the loop only.

    Bounded: as many models as `MOST_LAZY`, and requests of as many bytes as `MOST_WAITING_BYTES` wait.
    """

    def __init__(
        self,
        registry: Registry,
        control: ModelControl,
        submit: Callable[[Infer, Sink], Ticket],
        now: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._control = control
        self._submit = submit
        self._now = now
        self._names: set[str] = set()
        self._waiting: dict[str, list[WaitingRequest]] = {}

    def begin(self, operation: InferLazily, sink: Sink) -> Ticket:
        """Run the item: at once where its model is known, else behind the registration."""
        infer, name = operation.infer, operation.infer.model
        waiting = self._waiting.get(name)
        if waiting is None and self._registry.records(name):
            return self._submit(infer, sink)
        request = WaitingRequest(infer, sink, self._now())
        try:
            self._check_room(request)
        except ServeError as error:
            request.fail(frameless(error))
            return COMPLETED
        if waiting is None:
            self._waiting[name] = [request]
            self._names.add(name)
            self._control.begin(Register(operation.source), partial(self._registered, name))
        else:
            waiting.append(request)
        return request

    def _check_room(self, request: WaitingRequest) -> None:
        self._names = {name for name in self._names if name in self._waiting or self._registry.records(name)}
        if request.infer.model not in self._names and len(self._names) >= MOST_LAZY:
            raise ServeError(
                Code.QUEUE_FULL,
                f"Predictions have registered {MOST_LAZY} models, which is the bound. Unregister some of them first.",
            )
        waiting = (one for some in self._waiting.values() for one in some)
        size = sum(kept_bytes(one.infer.payload) for one in (request, *waiting))
        if size > MOST_WAITING_BYTES:
            raise ServeError(
                Code.QUEUE_FULL,
                f"Requests for models being loaded have {MOST_WAITING_BYTES} bytes, the bound. Try again later.",
                retry_after=1.0,
            )

    def _registered(self, name: str, part: ResponsePart) -> None:
        for request in self._waiting.pop(name):
            if part.error is None:
                request.go_on(self._submit)
            else:
                request.fail(part.error)


def _not_by_clients() -> ServeError:
    return ServeError(
        Code.UNSUPPORTED,
        spoken(
            "This server loads and unloads no models because a client asks for it: they follow their folders, or stay "
            "as they were at its start (--model-control). Change the folder, or start it with --model-control explicit."
        ),
        info=ErrorInfo.of(reasons.NOT_BY_CLIENTS),
    )


def _not_polled() -> ServeError:
    return ServeError(
        Code.UNSUPPORTED,
        spoken(
            "The models of this server do not follow their files, so there is nothing to look at. Start it with "
            "--model-control poll, or with --reload."
        ),
    )
