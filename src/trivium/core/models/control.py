"""Loads and unloads that clients ask for: one task each, answered when it is through.

Decides what is read for a load: the model's folder, or a folder laid out for this load alone. What is served of it
the life cycle decides.
"""

import asyncio
import itertools
import logging
import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from trivium.core.models.lifecycle import Lifecycle
from trivium.core.models.polling import RepositoryPoller, RepositoryReconciler
from trivium.core.models.registry import Registry
from trivium.core.models.repository import ModelEntry, Repository, with_members
from trivium.types import reasons
from trivium.types.core_config import CoreConfig, ModelControlMode
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Sink
from trivium.types.operations import (
    Broadcast,
    Listing,
    Load,
    Register,
    ResponsePart,
    Scale,
    SetDefault,
    Unload,
    Unregister,
)
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource

log = logging.getLogger(__name__)

Change = Load | Unload | Register | Unregister | Scale | SetDefault | Broadcast
"""Operations that change what is served."""

ListedChange = Load | Unload | Register | Unregister | Scale | SetDefault
"""Those of them that a listing answers."""

NOT_BY_CLIENTS = ServeError(
    Code.UNSUPPORTED,
    "This server loads and unloads no models because a client asks for it: they follow their folders, or stay as they "
    "were at its start (--model-control). Change the folder, or start it with --model-control explicit.",
    info=ErrorInfo.of(reasons.NOT_BY_CLIENTS),
)
NOT_POLLED = ServeError(
    Code.UNSUPPORTED,
    "The models of this server do not follow their files, so there is nothing to look at. Start it with "
    "--model-control poll.",
)
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
        self._tasks: set[asyncio.Task[ResponsePart]] = set()
        self._loading: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self._folders: defaultdict[str, list[Path]] = defaultdict(list)
        self._is_open = config.control is ModelControlMode.EXPLICIT
        self._polling: RepositoryPoller | None = None
        if config.control is ModelControlMode.POLL:
            self._polling = RepositoryReconciler(registry, lifecycle, repository, config.poll_seconds).polling

    def begin(self, operation: Change, sink: Sink) -> None:
        """The sink gets the model's listing, or what a broadcast is answered with, or why it could not be done."""
        task = asyncio.get_running_loop().create_task(self._part(operation))
        self._tasks.add(task)
        named = operation.source.name if isinstance(operation, Register) else operation.model
        task.add_done_callback(partial(self._changed, named, sink))

    async def look(self) -> None:
        """Before the first reading: what changes afterwards will be noticed."""
        if self._polling is not None:
            await self._polling.look()

    def start_watch(self) -> None:
        """Once everything has been loaded."""
        if self._polling is not None:
            self._polling.start()

    async def poll(self) -> None:
        """Look once, and follow what changed. Raises UNSUPPORTED where models do not follow their files."""
        if self._polling is None:
            raise NOT_POLLED
        await self._polling.poll()

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
            raise GOING_DOWN
        if not self._is_open:
            raise NOT_BY_CLIENTS
        if isinstance(operation, Broadcast):
            model = self._registry.serving(operation.model, operation.version)
            return ResponsePart(payload=await model.broadcast(operation))
        return ResponsePart(answer=await self._change(operation))

    async def _change(self, operation: ListedChange) -> Listing:
        match operation:
            case Register():
                return await self._register(operation)
            case Unregister(model, version):
                for source in await self._lifecycle.unregister(model, version):
                    self._forget(source, model)
            case Scale():
                await self._lifecycle.scale(operation)
            case SetDefault(model, version):
                self._registry.pin(model, version)
            case Load() | Unload():
                await self._reload(operation)
        return self._registry.listing(operation.model)

    async def _register(self, operation: Register) -> Listing:
        source = operation.source
        entries = await self._repository.register(source)
        try:
            for entry in entries:
                self._lifecycle.check_new(entry)
        except ServeError:
            self._forget(source, entries[0].name)
            raise
        if operation.wait:
            await self._load_registered(entries, source)
        else:
            task = asyncio.get_running_loop().create_task(self._load_behind(entries, source))
            self._loading.add(task)
            task.add_done_callback(self._loading.discard)
            await asyncio.sleep(0)  # its versions are in the registry behind this
        rows = [row for entry in entries for row in self._registry.listing(entry.name).versions]
        return Listing(tuple(rows))

    async def _load_registered(self, entries: Sequence[ModelEntry], source: ModelSource) -> None:
        done: list[ModelEntry] = []
        try:
            for entry in entries:
                await self._lifecycle.register(entry, source)
                done.append(entry)
        except BaseException:
            for entry in reversed(done):
                for spec in entry.specs:
                    await self._lifecycle.unregister(spec.name, spec.version)
            self._forget(source, entries[0].name)
            raise

    def _forget(self, source: ModelSource, model: str) -> None:
        """Read a source no more, and remove what was fetched for it once nothing in flight needs it."""
        if folder := self._repository.forget(source):
            self._folders[model].append(folder)
            self._free_later(model)

    async def _load_behind(self, entries: Sequence[ModelEntry], source: ModelSource) -> None:
        """Load all of them, whatever becomes of one: nobody waits, and who looks finds those that failed."""
        for entry in entries:
            try:
                await self._lifecycle.register(entry, source, keep_failed=True)
            except ServeError as error:
                log.error("registering %s failed: %s", source.uri, error.message)

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
        self._tasks.discard(task)
        error = GOING_DOWN if task.cancelled() else task.exception()
        if error is None:
            sink(task.result())
            return
        if not isinstance(error, ServeError):
            log.error("changing model '%s' failed", model, exc_info=error)
            error = ServeError(Code.INTERNAL, f"Our own fault: {type(error).__name__}: {error}")
        sink(ResponsePart(error=error, model=model))

    def _members(self, model: str) -> Sequence[str]:
        """The models of a graph's steps, if it is one."""
        records = self._registry.records(model)
        graphs = [record.spec.scheduling for record in records if record.spec is not None]
        return list(
            dict.fromkeys(step.model for graph in graphs if isinstance(graph, Graph) for step in graph.steps)
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
            task = asyncio.get_running_loop().create_task(self._free(model))
            self._loading.add(task)
            task.add_done_callback(self._loading.discard)

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
