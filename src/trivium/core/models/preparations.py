"""Prepares loads: what a model needs once before its instances are opened, in threads of its own, and undone later."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import WorkerServices
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import (
    Engine,
    Preparation,
    SupportsPreparation,
)
from trivium.types.running import Prepared
from trivium.types.spec import ModelSpec

log = logging.getLogger(__name__)
Result = TypeVar("Result")


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


def _forget(running: "asyncio.Future[Prepared]") -> None:
    """Take notice of an error that nobody waits for any more."""
    if not running.cancelled():
        running.exception()
