"""Counts of each version that serves, as a frozen report. Neutral: nanoseconds and seconds, rows and items.

Which text or message it becomes is a protocol's business.
"""

from collections.abc import Mapping

import msgspec

from trivium.types.metrics import Buckets, CacheUse, Exemplar, GpuUse, LoopUse, MachineUse, MetricFamily
from trivium.types.observing import DeathCause, VersionLoad
from trivium.types.state import VersionState


class Duration(msgspec.Struct, frozen=True, gc=False):
    """Counts how often something happened, and the nanoseconds that it took in all."""

    count: int = 0
    ns: int = 0


class BatchStatistics(msgspec.Struct, frozen=True, gc=False):
    """Executions of exactly `rows` rows, failed ones counted."""

    rows: int
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


class GenerationStatistics(msgspec.Struct, frozen=True, gc=False):
    """Counters of a version that generates, by tokens: read of prompts, generated, and generated for nobody. `steps` of
    its instances; times from a request's receipt to its `first_token`, by seconds in `first_token_buckets`, and
    `between_tokens` of a request, by seconds in `between_buckets`, in which each token counts as the mean of its
    request. `running`: requests in work; `share` of the `room` for keys and values, in bytes (0 where its engine does
    not tell). Requests that were answered by the tokens of their prompts and of their answers, and by why they ended.
    Of `queried_tokens` of prompts that were looked for among what is kept, `cached_tokens` were there, and not read.
    """

    prompt_tokens: int
    new_tokens: int
    wasted_tokens: int
    steps: Duration
    first_token: Duration
    first_token_buckets: tuple[tuple[float, int], ...]
    between_tokens: Duration
    running: int
    share: float
    room: int = 0
    between_buckets: Buckets = ()
    prompt_buckets: Buckets = ()
    answer_buckets: Buckets = ()
    finishes: Mapping[str, int] = {}
    queried_tokens: int = 0
    cached_tokens: int = 0


class VersionStatistics(msgspec.Struct, frozen=True, gc=False):
    """Counters of one version since it was loaded. Each item is charged its batch's whole compute time.

    `rows`: of successful items; `executions`: batches, failed ones counted; `last` is epoch milliseconds.
    `wasted`: items computed for clients that had left. `failures` counts failed items by code. `success_buckets`: the
    durations of `success` in seconds. `quantiles`: where asked for, of the last minute, by the name of a duration
    here, pairs of quantile and seconds. `first_part`: until the first of several parts. `cache_hit`: answered without
    an execution, and the time that took; `cache_miss`: looked up in vain, and the time for that and for keeping.
    `generation`: of a version that works in steps.
    """

    model: str
    version: str
    last: int
    rows: int
    executions: int
    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    batches: tuple[BatchStatistics, ...]
    failures: Mapping[str, int]
    wasted: int
    queued_items: int
    queue_wait_buckets: tuple[tuple[float, int], ...] = ()
    success_buckets: tuple[tuple[float, int], ...] = ()
    quantiles: Mapping[str, tuple[tuple[float, float], ...]] = {}
    first_part: Duration = Duration()
    first_part_buckets: tuple[tuple[float, int], ...] = ()
    cache_hit: Duration = Duration()
    cache_miss: Duration = Duration()
    generation: GenerationStatistics | None = None


class StatisticsReport(msgspec.Struct, frozen=True, gc=False):
    """One entry per ready version, sorted by model, then version number."""

    versions: tuple[VersionStatistics, ...]


class VersionMetrics(msgspec.Struct, frozen=True, gc=False):
    """A version that serves: its counters, the labels that all its metrics carry, the index of the GPU that it
    runs on, where it is just one, whether its answers may come from the cache, how long the oldest run in hand has
    taken, in seconds (0: none), how its instances are, and how full it is: see
    `saturation_policy`. `waits` and `times` are the last traced requests of each bucket of the histograms of queue
    waits and of whole requests, by the bucket's number.
    """

    statistics: VersionStatistics
    labels: Mapping[str, str] = {}
    gpu: int | None = None
    caches: bool = False
    oldest_run: float = 0.0
    load: VersionLoad | None = None
    saturation: float = 0.0
    waits: Mapping[int, Exemplar] = {}
    times: Mapping[int, Exemplar] = {}


class VersionHealth(msgspec.Struct, frozen=True, gc=False):
    """Names a version that is known, with its state, and counts its worker processes that were lost. Those that never
    had one have no `deaths`.
    """

    model: str
    version: str
    state: VersionState
    deaths: Mapping[DeathCause, int] | None = None


class ProcessMemory(msgspec.Struct, frozen=True, gc=False):
    """Tells the resident memory in bytes of an instance's worker process; without a model, of the server itself."""

    bytes: int
    model: str = ""
    version: str = ""
    instance: str = ""


class MetricsReport(msgspec.Struct, frozen=True, gc=False):
    """`versions` that serve, and the `health` of all that are known, sorted by model, then version number; `machine` is
    None where it is not read, `cache` where there is none, `loop` where nobody watches it. `build`: what this server is
    made of, by names.
    """

    versions: tuple[VersionMetrics, ...]
    custom: tuple[MetricFamily, ...] = ()
    machine: MachineUse | None = None
    gpus: tuple[GpuUse, ...] = ()
    cache: CacheUse | None = None
    loop: LoopUse | None = None
    health: tuple[VersionHealth, ...] = ()
    memory: tuple[ProcessMemory, ...] = ()
    build: Mapping[str, str] = {}
