"""Everything that can be measured, of this moment: the counters of what serves, custom metrics, the machine.

The counters are read on the loop, the machine in a thread; nothing is collected between two scrapes.
"""

import asyncio
import time
from functools import partial

from trivium.core.clock import LoopWatch
from trivium.core.models.registry import Registry
from trivium.core.observability.custom_metrics import CustomMetrics
from trivium.core.queueing.response_cache import ResponseCache
from trivium.machine.use import Machine
from trivium.types.errors import Code, ServeError, named
from trivium.types.interfaces import Sink
from trivium.types.metrics import CacheUse, GpuUse, MachineUse, Measurements
from trivium.types.operations import ResponsePart
from trivium.types.spec import Device, ModelSpec
from trivium.types.statistics import MetricsReport, VersionMetrics

Use = tuple[MachineUse | None, tuple[GpuUse, ...]]


class MetricsCollector:
    """One per server; used on the loop only."""

    def __init__(
        self,
        registry: Registry,
        custom: CustomMetrics,
        measures: Measurements,
        cache: ResponseCache | None = None,
        watch: LoopWatch | None = None,
    ) -> None:
        self._registry = registry
        self._custom = custom
        self._cache = cache
        self._watch = watch
        self._machine = Machine(measures, time.monotonic)
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Use]] = set()

    def begin(self, sink: Sink) -> None:
        """The sink gets the report once the machine has been read."""
        task = asyncio.get_running_loop().create_task(self._read())
        self._tasks.add(task)
        task.add_done_callback(partial(self._answer, sink))

    async def close(self) -> None:
        """Give up what is in work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self) -> Use:
        async with self._turn:
            return await asyncio.to_thread(self._machine.read)

    def _answer(self, sink: Sink, task: asyncio.Task[Use]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            sink(ResponsePart(error=ServeError(Code.DRAINING, "The server is going down.")))
            return
        error = task.exception()
        if error is not None:
            text = f"The machine could not be read: {named(error)}. Report it."
            sink(ResponsePart(error=ServeError(Code.INTERNAL, text)))
            return
        machine, gpus = task.result()
        loaded = [record.loaded for record in self._registry.records() if record.loaded is not None]
        versions = tuple(
            VersionMetrics(
                model.report(),
                spec.metrics.labels,
                gpu_of(spec),
                spec.caches,
                model.oldest_run(),
            )
            for model in loaded
            for spec in (model.spec,)
        )
        cache = None if self._cache is None else use_of(self._cache)
        loop = None if self._watch is None else self._watch.use()
        sink(ResponsePart(answer=MetricsReport(versions, self._custom.report(), machine, gpus, cache, loop)))


def use_of(cache: ResponseCache) -> CacheUse:
    """Its counters, frozen."""
    kept = cache.kept
    return CacheUse(
        limit=kept.limit,
        used=kept.used,
        entries=len(kept),
        hits=cache.hits,
        misses=cache.misses,
        evictions=kept.evictions,
        lookup_seconds=cache.lookup_seconds,
        insertion_seconds=cache.insertion_seconds,
    )


def gpu_of(spec: ModelSpec) -> int | None:
    """The GPU that all instances of a model run on; None where there is not just one."""
    used = {
        index if group.device is Device.GPU else None
        for group in spec.groups
        for index in (group.device_ids or (0,))
    }
    return used.pop() if len(used) == 1 else None
