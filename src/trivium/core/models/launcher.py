"""Opens one instance: the engine's runner, its warm-up, and the kind of worker that its placement asks for.

Everything that blocks runs in the server's opening threads. Whatever goes wrong leaves here as a ServeError.
"""

import asyncio
import logging
import time
from concurrent.futures import Executor, Future
from functools import partial
from typing import TypeVar

from trivium.core.instances.inline import InlineInstance
from trivium.core.instances.thread import ThreadInstance
from trivium.core.models.gang import open_gang
from trivium.core.models.trials import Trials
from trivium.core.models.warmup import warm
from trivium.core.observability.recording import recorded_opening
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices, instance_name
from trivium.types.errors import Code, ServeError, named
from trivium.types.interfaces import (
    Engine,
    Instance,
    OpensRunner,
    Port,
    Runner,
    WorkerEngine,
    default_isolation,
)
from trivium.types.observing import InstanceOpened
from trivium.types.running import Placement
from trivium.types.spec import Isolation, ModelSpec

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class Launcher:
    """Opens the instances of one model version. `arena` is what its worker processes share with the server; None
    where it has none. What an instance in this process opens has passed its `trials`.
    """

    def __init__(
        self,
        engine: Engine,
        spec: ModelSpec,
        executor: Executor,
        around: WorkerServices,
        trials: Trials | None = None,
    ) -> None:
        self._engine = engine
        self._trials = trials
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
        is_process = placement.isolation is Isolation.PROCESS
        launch = self._launch_process if is_process else self._launch_here
        instance = instance_name(self._spec, placement)
        with self._around.observer.opening():
            opened = await recorded_opening(launch(placement, port), instance, self._around.recorder)
        self._around.news.tell(InstanceOpened(time.time(), instance.model, instance.version, placement.name))
        return opened

    async def _launch_process(self, placement: Placement, port: Port) -> Instance:
        assert self.arena is not None
        make = self._engine.program if isinstance(self._engine, WorkerEngine) else self._around.host
        launcher = ProcessLauncher(self._spec, self._executor, self._around, self.arena)
        if placement.ranks > 1:
            return await open_gang(launcher, partial(make, self._spec), placement, port, self._warm)
        return await launcher.launch(make(self._spec, placement), placement, port, self._warm)

    async def _launch_here(self, placement: Placement, port: Port) -> Instance:
        if self._trials is not None:
            await self._trials.passed(self._engine, self._spec)
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
                f"'{self._spec.name}': {named(error)}",
            ) from error


def _close_late(future: "Future[Runner]") -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()
