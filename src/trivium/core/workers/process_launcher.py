"""Opens one instance in a worker process: starts it, tells it its setup, waits for it, warms it up, watches it."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from dataclasses import asdict, replace

from trivium.core.clock import CallLast
from trivium.core.observability.news import ServerNews
from trivium.core.observability.worker_deaths import WorkerDeaths
from trivium.core.observability.worker_lines import WorkerLines
from trivium.core.workers.arena import Arena
from trivium.core.workers.child_process import BURIAL, END_SECONDS, TERM_SECONDS, Spawned, spawn
from trivium.core.workers.process import ProcessInstance
from trivium.core.workers.upcalls import Measure, Upcalls
from trivium.core.workers.watch import Watch
from trivium.types.core_config import CoreConfig, WorkerBounds
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import (
    NO_GUARD,
    NO_OBSERVER,
    InferenceCore,
    Instance,
    Port,
    ProcessGuard,
    RunObserver,
)
from trivium.types.observing import DeathCause
from trivium.types.recording import InstanceName, ServingRecorder
from trivium.types.running import Placement, WorkerCommand
from trivium.types.spec import Limits, ModelSpec
from trivium_worker.wire import frames

NONE = CoreConfig()
MakeProgram = Callable[[ModelSpec, Placement], WorkerCommand]


class WorkerServices:
    """Holds what all worker processes of a server share: whom they call, who counts their metrics and `deaths`, who
    observes and who records them, who keeps their last `lines` and hears the `news`, when what is handed to them
    leaves, who waits for their end, and who kills them if the server does not live to.
    """

    def __init__(  # noqa: PLR0913 - the services
        self,
        submits: InferenceCore,
        measure: Measure,
        host: MakeProgram,
        config: CoreConfig = NONE,
        *,
        observer: RunObserver = NO_OBSERVER,
        guard: ProcessGuard = NO_GUARD,
        recorder: ServingRecorder | None = None,
        call_last: CallLast | None = None,
    ) -> None:
        self.submits = submits
        self.measure = measure
        self.call_last: CallLast = call_last or _call_soon
        self.host = host
        self._config = config
        self.observer = observer
        self.guard = guard
        self.recorder = recorder
        self.news = ServerNews()
        self.lines = WorkerLines(time.time, self.news, config.follows_lines)
        self.deaths = WorkerDeaths()
        self._living: dict[ProcessInstance, Arena] = {}

    def limits(self, spec: ModelSpec) -> Limits:
        """The model's, with the server's own bounds where it sets none."""
        own, ours = spec.limits, self._config
        items = ours.recycle_items if own.recycle_items is None else own.recycle_items
        grown = ours.recycle_bytes if own.recycle_bytes is None else own.recycle_bytes
        most = ours.worker_bytes if own.most_bytes is None else own.most_bytes
        return replace(own, recycle_items=items, recycle_bytes=grown, most_bytes=most)

    def bounded(self, program: WorkerCommand, placement: Placement) -> WorkerCommand:
        """Return the command with the bounds that the worker takes upon itself, where there are any."""
        bounds = self._config.worker_bounds
        if bounds == WorkerBounds():
            return program
        text = json.dumps({**asdict(bounds), "index": placement.index})
        return replace(program, command=(*program.command, text))

    def keep(self, worker: ProcessInstance, arena: Arena) -> None:
        """Until it is gone."""
        self._living[worker] = arena
        worker.gone.add_done_callback(lambda gone: self._living.pop(worker, None))

    async def ended(self, arena: Arena) -> None:
        """Wait until every worker that shares this arena is gone, or should long have been."""
        workers = [worker.gone for worker, its in self._living.items() if its is arena]
        if workers:
            await asyncio.wait(workers, timeout=END_SECONDS + TERM_SECONDS + BURIAL)

    async def close(self, seconds: float) -> tuple[str, ...]:
        """Wait for all workers to end, and end those that have not. Returns a line for each that had to be killed."""
        workers = tuple(self._living)
        if workers:
            await asyncio.wait([worker.gone for worker in workers], timeout=seconds)
        for worker in tuple(self._living):
            worker.kill("the server goes down, and it had not ended", DeathCause.STOP_TIMEOUT)
        if self._living:
            await asyncio.wait([worker.gone for worker in self._living], timeout=BURIAL)
        killed = [worker for worker in workers if worker.was_killed]
        return tuple(
            worker.gone.result() if worker.gone.done() else f"process {worker.pid} does not end"
            for worker in killed
        )


Warm = Callable[[Instance, Port], Awaitable[None]]
"""Warms an opened instance up; afterwards its events go to the port."""


async def _as_it_is(instance: Instance, port: Port) -> None:
    """Leave an instance as it is."""


class ProcessLauncher:
    """Launches the workers of one model version, which share an arena."""

    def __init__(self, spec: ModelSpec, executor: Executor, around: WorkerServices, arena: Arena) -> None:
        self._spec = spec
        self._executor = executor
        self._around = around
        self._arena = arena
        self._log = logging.getLogger(f"trivium.worker.{spec.name}")

    async def launch(
        self, program: WorkerCommand, placement: Placement, port: Port, warm: Warm = _as_it_is
    ) -> ProcessInstance:
        """Start a worker, and have it warmed up. Raises LOAD_FAILED, with nothing left of it."""
        loop = asyncio.get_running_loop()
        program = self._around.bounded(program, placement)
        spawning = self._executor.submit(spawn, program, self._arena.descriptor, self._around.guard)
        try:
            spawned = await asyncio.shield(asyncio.wrap_future(spawning))
        except asyncio.CancelledError:
            spawning.add_done_callback(kill_late)
            raise
        around, instance = self._around, instance_name(self._spec, placement)
        upward = Upcalls(
            self._spec.name,
            around.submits,
            around.measure,
            self._log,
            program.words,
            program.read_metric,
            program.open_form,
        )
        voice = around.lines.voice(instance, placement.name)
        upward.says = voice.say
        worker = ProcessInstance(
            placement.name, spawned, self._arena, upward, self._log, around.call_last, voice
        )
        around.keep(worker, self._arena)
        worker.gone.add_done_callback(lambda gone: around.deaths.count(instance, worker.death))
        if (recorder := around.recorder) is not None:
            worker.gone.add_done_callback(lambda gone: recorder.ended(instance, worker.end, gone.result()))
        try:
            await loop.create_unix_connection(lambda: worker.connection, sock=spawned.wire)
            worker.write([frames.frame(frames.SETUP, frames.text(dict(program.setup)))])
            await self._opened(worker, placement)
            await warm(worker, port)
        except BaseException as error:
            is_late = isinstance(error.__cause__, TimeoutError)
            cause = DeathCause.STARTUP_TIMEOUT if is_late else None
            worker.kill(f"it was given up before it was ready ({type(error).__name__})", cause)
            if not worker.opened.done():
                worker.opened.cancel()
            raise
        worker.attach(port)
        worker.serves = True
        Watch(worker, self._around.limits(self._spec), port, self._log)
        return worker

    async def _opened(self, worker: ProcessInstance, placement: Placement) -> None:
        deadline = self._spec.limits.startup_deadline
        try:
            async with asyncio.timeout(deadline):
                await asyncio.shield(worker.opened)
        except TimeoutError as error:
            raise ServeError(
                Code.LOAD_FAILED,
                f"Worker {placement.name} of model '{self._spec.name}' was not ready after {deadline:g} s, its "
                f"start-up deadline.{worker.last_words()}",
            ) from error


def instance_name(spec: ModelSpec, placement: Placement) -> InstanceName:
    """Return the name of the instance that goes there."""
    return InstanceName(spec.name, spec.version, placement.number)


def _call_soon(callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(callback)


def kill_late(spawning: "Future[Spawned]") -> None:
    """Kill a process whose launch was cancelled before it had been spawned. In any thread: the loop may be over."""
    if not spawning.cancelled() and spawning.exception() is None:
        spawning.result().discard()
