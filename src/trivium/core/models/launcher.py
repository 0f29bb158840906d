"""Opens one instance: the engine's runner, its warm-up, and the kind of worker that its placement asks for.

Before the first one an engine may prepare the load. Everything that blocks runs in the server's opening threads, and
what prepares in threads of its own, since it may take minutes. Whatever goes wrong leaves here as a ServeError.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from trivium.core.instances.inline import InlineInstance
from trivium.core.instances.thread import ThreadInstance
from trivium.core.models.warmup import warm
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import (
    ChoosesIsolation,
    Engine,
    Instance,
    OpensRunner,
    Port,
    Preparation,
    Runner,
    SupportsPreparation,
    WorkerEngine,
)
from trivium.types.running import Placement, Prepared
from trivium.types.spec import Isolation, ModelSpec

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class Launcher:
    """Opens the instances of one model version. `arena` is what its worker processes share with the server; None
    where it has none.
    """

    def __init__(self, engine: Engine, spec: ModelSpec, executor: Executor, around: WorkerServices) -> None:
        self._engine = engine
        self._spec = spec
        self._executor = executor
        self._around = around
        kinds = {group.isolation or default_isolation(engine, spec) for group in spec.groups}
        self.arena = Arena(spec.name) if Isolation.PROCESS in kinds else None

    async def launch(self, placement: Placement, port: Port) -> Instance:
        """An open, warm instance. Raises LOAD_FAILED, also when the start-up deadline has passed."""
        if placement.isolation not in self._engine.isolation:
            able = ", ".join(kind.value for kind in self._engine.isolation)
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{self._spec.name}': engine '{self._engine.name}' cannot run in isolation "
                f"'{placement.isolation.value}'; it can in: {able}.",
            )
        with self._around.observer.opening():
            if placement.isolation is Isolation.PROCESS:
                return await self._launch_process(placement, port)
            return await self._launch_here(placement, port)

    async def _launch_process(self, placement: Placement, port: Port) -> Instance:
        assert self.arena is not None
        make = self._engine.program if isinstance(self._engine, WorkerEngine) else self._around.host
        launcher = ProcessLauncher(self._spec, self._executor, self._around, self.arena)
        return await launcher.launch(make(self._spec, placement), placement, port, self._warm)

    async def _launch_here(self, placement: Placement, port: Port) -> Instance:
        future = self._executor.submit(self._open, placement)
        deadline = self._spec.limits.startup_deadline
        try:
            async with asyncio.timeout(deadline):
                runner = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_close_late)
            raise
        except TimeoutError as error:
            future.add_done_callback(_close_late)
            raise ServeError(
                Code.LOAD_FAILED,
                f"Instance {placement.name} of model '{self._spec.name}' was not open after {deadline:g} s, "
                "its start-up deadline.",
            ) from error
        instance: Instance
        if placement.isolation is Isolation.INLINE:
            instance = InlineInstance(runner, port)
        else:
            instance = ThreadInstance(runner, port, placement.name, self._around.call_last)
        try:
            await self._warm(instance, port)
        except BaseException:
            instance.close()
            raise
        return instance

    async def _warm(self, instance: Instance, port: Port) -> None:
        await warm(instance, self._spec, self._executor, port)

    def _open(self, placement: Placement) -> Runner:
        assert isinstance(self._engine, OpensRunner), "it says that it can run in this process"
        try:
            return self._engine.open(self._spec, placement)
        except ServeError:
            raise
        except Exception as error:
            raise ServeError(
                Code.LOAD_FAILED,
                f"Engine '{self._engine.name}' could not open {self._spec.root / self._spec.entry} for model "
                f"'{self._spec.name}': {type(error).__name__}: {error}",
            ) from error


PREPARE_STOP_SECONDS = 20.0
"""For a preparation to end once its time was up; then the load fails, whatever becomes of it."""


class Preparations:
    """Has engines prepare loads, each within its model's start-up deadline. Used on the loop only."""

    def __init__(self, threads: int, scratch: Path | None, around: WorkerServices) -> None:
        self._threads = threads
        self._scratch = scratch
        self._around = around
        self._executor: ThreadPoolExecutor | None = None
        self._undoing: set[asyncio.Task[None]] = set()

    async def prepare(self, engine: Engine, spec: ModelSpec) -> "PreparedLoad":
        """Return the load as it was prepared: as it is where there is nothing to do. Raises LOAD_FAILED."""
        if not isinstance(engine, SupportsPreparation):
            return PreparedLoad(self, Prepared(spec))
        preparation = engine.preparation(spec, self._scratch, self._around.guard)
        if preparation is None:
            return PreparedLoad(self, Prepared(spec))
        return PreparedLoad(self, await self._run(preparation, spec), preparation)

    async def _run(self, preparation: Preparation, spec: ModelSpec) -> Prepared:
        deadline = spec.limits.startup_deadline
        running = self._in_thread(preparation.run)
        try:
            await asyncio.wait({running}, timeout=deadline)
            if not running.done():
                preparation.stop()
                await asyncio.wait({running}, timeout=PREPARE_STOP_SECONDS)
            if running.done():
                return running.result()
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}' was not prepared after {deadline:g} s, its start-up deadline, and does not stop. "
                "Give it more time, or look at what it asks for.",
            )
        except BaseException:
            running.add_done_callback(_forget)
            self.undo(preparation, None)
            raise

    def undo(self, preparation: Preparation, arena: Arena | None) -> None:
        """Undo it, once all workers of the arena are gone; returns at once."""
        preparation.stop()
        task = asyncio.ensure_future(self._undo(preparation, arena))
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    async def _undo(self, preparation: Preparation, arena: Arena | None) -> None:
        if arena is not None:
            await self._around.ended(arena)
        await self._in_thread(preparation.undo)

    def _in_thread(self, call: Callable[[], Result]) -> "asyncio.Future[Result]":
        if self._executor is None:
            self._executor = ThreadPoolExecutor(2 * self._threads, thread_name_prefix="trivium-prepare")
        with self._around.observer.opening():  # while its thread is born: what it runs may take minutes
            return asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def close(self, seconds: float) -> None:
        """Wait so long at most until all is undone."""
        if self._undoing:
            await asyncio.wait(self._undoing, timeout=seconds)
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


class PreparedLoad:
    """Holds what was prepared for one load of a model, until it is undone."""

    def __init__(
        self, preparations: Preparations, prepared: Prepared, preparation: Preparation | None = None
    ) -> None:
        self._preparations = preparations
        self._preparation = preparation
        self._warning = prepared.warning
        self.spec = prepared.spec
        if self._warning:
            log.warning("model '%s': %s", self.spec.name, self._warning)

    def blame(self, error: ServeError) -> None:
        """Add what had not succeeded before to why the load failed."""
        if self._warning:
            error.message = f"{error.message} Before that: {self._warning}"
            error.args = (error.message,)

    def undo(self, arena: Arena | None = None) -> None:
        """Undo it, once all workers of the arena are gone; returns at once. Further calls have no effect."""
        preparation, self._preparation = self._preparation, None
        if preparation is not None:
            self._preparations.undo(preparation, arena)


def engine_of(engines: Mapping[str, Engine], spec: ModelSpec) -> Engine:
    """The one that the model asks for. UNSUPPORTED where there is no such."""
    engine = engines.get(spec.engine)
    if engine is None:
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}' wants engine '{spec.engine}' ({spec.origin.get('engine', 'as read')}); "
            f"this server has: {', '.join(sorted(engines))}.",
            info=ErrorInfo.of(reasons.NO_ENGINE, model=spec.name, version=spec.version, engine=spec.engine),
        )
    return engine


def default_isolation(engine: Engine, spec: ModelSpec) -> Isolation:
    """Return where instances run whose group does not say it."""
    return engine.default_isolation(spec) if isinstance(engine, ChoosesIsolation) else engine.isolation[0]


def _forget(running: "asyncio.Future[Prepared]") -> None:
    """Take notice of an error that nobody waits for any more."""
    if not running.cancelled():
        running.exception()


def _close_late(future: "Future[Runner]") -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()
