"""Everything that can be measured, of this moment: the counters of what serves, custom metrics, the machine.

The counters are read on the loop, the machine in a thread; nothing is collected between two scrapes.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from trivium.core.clock import LoopWatch
from trivium.core.instances.saturation_policy import FullnessView, saturation, together
from trivium.core.models.registry import Record, Registry
from trivium.core.models.served_model import ServedModel
from trivium.core.observability.custom_metrics import CustomMetrics
from trivium.core.observability.exemplars import Exemplars
from trivium.core.observability.worker_deaths import WorkerDeaths
from trivium.core.queueing.response_cache import ResponseCache
from trivium.machine.build import build_facts
from trivium.machine.use import Machine, resident_bytes
from trivium.types.errors import Code, ServeError, named
from trivium.types.interfaces import Sink
from trivium.types.metrics import CacheUse, GpuUse, MachineUse, Measurements
from trivium.types.operations import ResponsePart
from trivium.types.spec import Device, ModelSpec
from trivium.types.statistics import MetricsReport, ProcessMemory, VersionHealth, VersionMetrics

Processes = Sequence[tuple[ProcessMemory, int]]
"""Whose memory is to be read, each with the number of its process."""

Use = tuple[tuple[MachineUse | None, tuple[GpuUse, ...]], tuple[ProcessMemory, ...], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class OtherCounts:
    """Holds what is counted apart from versions: how late the loop is, workers that died, and traced requests."""

    watch: LoopWatch | None = None
    deaths: WorkerDeaths = field(default_factory=WorkerDeaths)
    exemplars: Exemplars = field(default_factory=Exemplars)


class MetricsCollector:
    """One per server; used on the loop only."""

    def __init__(
        self,
        registry: Registry,
        custom: CustomMetrics,
        measures: Measurements,
        cache: ResponseCache | None = None,
        others: OtherCounts | None = None,
    ) -> None:
        self._registry = registry
        self._custom = custom
        self._cache = cache
        self._others = others or OtherCounts()
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
            return await asyncio.to_thread(self._measure, self._processes())

    def _processes(self) -> Processes:
        loaded = [record.loaded for record in self._registry.records() if record.loaded is not None]
        return [(ProcessMemory(0), os.getpid())] + [
            (ProcessMemory(0, model.spec.name, model.spec.version, name), process)
            for model in loaded
            for name, process in model.status.processes()
        ]

    def _measure(self, processes: Processes) -> Use:
        """Read what is not the loop's to read. In a thread."""
        found = [(whose, resident_bytes(process)) for whose, process in processes]
        memory = tuple(replace(whose, bytes=size) for whose, size in found if size is not None)
        return self._machine.read(), memory, build_facts()

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
        (machine, gpus), memory, build = task.result()
        records, others = self._registry.records(), self._others
        report = MetricsReport(
            tuple(
                metrics_of(record.loaded, others.exemplars) for record in records if record.loaded is not None
            ),
            self._custom.report(),
            machine,
            gpus,
            cache=None if self._cache is None else use_of(self._cache),
            loop=None if others.watch is None else others.watch.use(),
            health=tuple(self._health(records)),
            memory=memory,
            build=build,
        )
        sink(ResponsePart(answer=report))

    def _health(self, records: Sequence[Record]) -> Iterator[VersionHealth]:
        """Yield the state of each version, and its deaths; of one with workers also that there were none."""
        counted = self._others.deaths.report()
        for record in records:
            if not record.version:  # known by its name alone
                continue
            deaths = counted.get((record.name, record.version))
            if deaths is None and record.loaded is not None and record.loaded.status.has_workers:
                deaths = {}
            yield VersionHealth(record.name, record.version, record.state, deaths)


def metrics_of(model: ServedModel, exemplars: Exemplars) -> VersionMetrics:
    """Return all that is measured of a version that serves, of this moment."""
    spec, report, load = model.spec, model.report(), model.status.load()
    many = together(spec.batching.max_rows, report.rows, report.success.count) if spec.batching.merge else 1.0
    is_wanted = load.open + load.opening + load.lack > 0
    fullness = FullnessView(load.places, load.used, report.queued_items, many, is_wanted)
    return VersionMetrics(
        report,
        spec.metrics.labels,
        gpu_of(spec),
        spec.caches,
        model.oldest_run(),
        load,
        saturation(fullness),
        *exemplars.of(spec.name, spec.version),
    )


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
