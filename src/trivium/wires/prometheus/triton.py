"""Triton's families: names, types, help, labels and units as its own server writes them.

Source: spec sheet `triton`, section 6.2, and a scrape of release 2.51.0. Labels of a model's own begin with `_` there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trivium.codecs.exposition import ExposedMetric, Labels, fit_labels, written
from trivium.types.errors import Code
from trivium.types.metrics import CacheUse, GpuUse
from trivium.types.statistics import Duration, MetricsReport, VersionMetrics, VersionStatistics

_REASONS: Mapping[str, str] = {
    Code.EXPIRED.value: "REJECTED",
    Code.CANCELLED.value: "CANCELED",
    Code.MODEL_FAILED.value: "BACKEND",
    Code.WORKER_DIED.value: "BACKEND",
    Code.OUT_OF_MEMORY.value: "BACKEND",
    Code.UNKNOWN.value: "BACKEND",
}
"""Of failures, by code; all others are OTHER."""

_COUNTERS: Sequence[tuple[str, str, Callable[[VersionStatistics], int]]] = (
    (
        "nv_inference_request_success",
        "Number of successful inference requests, all batch sizes",
        lambda counts: counts.success.count,
    ),
    (
        "nv_inference_count",
        "Number of inferences performed (does not include cached requests)",
        lambda counts: counts.rows,
    ),
    (
        "nv_inference_exec_count",
        "Number of model executions performed (does not include cached requests)",
        lambda counts: counts.executions,
    ),
)

_DURATIONS: Sequence[tuple[str, str, str, str]] = (
    (
        "success",
        "request",
        "Cumulative inference request duration in microseconds (includes cached requests)",
        "Summary of inference request duration in microseconds (includes cached requests)",
    ),
    (
        "queue",
        "queue",
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
        "Summary of inference queuing duration in microseconds (includes cached requests)",
    ),
    *(
        (name, name, words, words)
        for name, words in (
            (
                "compute_input",
                "Cumulative compute input duration in microseconds (does not include cached requests)",
            ),
            (
                "compute_infer",
                "Cumulative compute inference duration in microseconds (does not include cached requests)",
            ),
            (
                "compute_output",
                "Cumulative inference compute output duration in microseconds (does not include cached requests)",
            ),
        )
    ),
)
"""Our name, Triton's, the help of its counter and of its summary."""

_CACHE: Sequence[tuple[str, str, Callable[[VersionStatistics], int]]] = (
    ("nv_cache_num_hits_per_model", "Number of cache hits per model", lambda counts: counts.cache_hit.count),
    (
        "nv_cache_hit_duration_per_model",
        "Total cache hit duration per model, in microseconds",
        lambda counts: counts.cache_hit.ns // 1000,
    ),
    (
        "nv_cache_num_misses_per_model",
        "Number of cache misses per model",
        lambda counts: counts.cache_miss.count,
    ),
    (
        "nv_cache_miss_duration_per_model",
        "Total cache miss (insert+lookup) duration per model, in microseconds",
        lambda counts: counts.cache_miss.ns // 1000,
    ),
)

_KEPT: Sequence[tuple[str, str, Callable[[CacheUse], float]]] = (
    ("nv_cache_num_entries", "Number of responses stored in response cache", lambda cache: cache.entries),
    (
        "nv_cache_num_lookups",
        "Number of cache lookups in response cache",
        lambda cache: cache.hits + cache.misses,
    ),
    ("nv_cache_num_hits", "Number of cache hits in response cache", lambda cache: cache.hits),
    ("nv_cache_num_misses", "Number of cache misses in response cache", lambda cache: cache.misses),
    ("nv_cache_num_evictions", "Number of cache evictions in response cache", lambda cache: cache.evictions),
    (
        "nv_cache_lookup_duration",
        "Total cache lookup duration (hit and miss), in microseconds",
        lambda cache: int(cache.lookup_seconds * 1e6),
    ),
    (
        "nv_cache_insertion_duration",
        "Total cache insertion duration, in microseconds",
        lambda cache: int(cache.insertion_seconds * 1e6),
    ),
    ("nv_cache_util", "Cache utilization [0.0 - 1.0]", lambda cache: cache.used / cache.limit),
)
"""Of the whole cache. Gauges, as there: a server that starts again begins anew."""

_GPU: Sequence[tuple[str, str, str, Callable[[GpuUse], float | None]]] = (
    ("nv_gpu_utilization", "gauge", "GPU utilization rate [0.0 - 1.0)", lambda gpu: gpu.utilization),
    ("nv_gpu_memory_total_bytes", "gauge", "GPU total memory, in bytes", lambda gpu: gpu.memory_total),
    ("nv_gpu_memory_used_bytes", "gauge", "GPU used memory, in bytes", lambda gpu: gpu.memory_used),
    ("nv_gpu_power_usage", "gauge", "GPU power usage in watts", lambda gpu: gpu.power),
    ("nv_gpu_power_limit", "gauge", "GPU power management limit in watts", lambda gpu: gpu.power_limit),
)
_ENERGY = ("nv_energy_consumption", "GPU energy consumption in joules since the server was first scraped")


@dataclass(frozen=True, slots=True)
class TritonMetric:
    """A version, its labels, and these as they are written."""

    counts: VersionStatistics
    version: VersionMetrics
    labels: Labels
    text: str


def rows_of(report: MetricsReport) -> list[TritonMetric]:
    """Each version with the labels of all its samples."""
    uuids = {gpu.index: gpu.uuid for gpu in report.gpus}
    rows = []
    for version in report.versions:
        counts = version.statistics
        labels = {"model": counts.model, "version": counts.version}
        if version.gpu in uuids:
            labels["gpu_uuid"] = uuids[version.gpu]
        if version.labels:
            own = fit_labels(((f"_{name}", value) for name, value in version.labels.items()), labels)
            labels |= own
        rows.append(TritonMetric(counts, version, labels, written(labels)))
    return rows


def counters(
    rows: Sequence[TritonMetric], gpus: Sequence[GpuUse], with_durations: bool
) -> Iterator[ExposedMetric]:
    """Per version, and of each GPU the energy."""
    success, *others = (_counted("counter", column, rows) for column in _COUNTERS)
    yield success
    yield _failures(rows)
    yield from others
    if with_durations:
        for name, theirs, words, _ in _DURATIONS:
            family = ExposedMetric(f"nv_inference_{theirs}_duration_us", "counter", words)
            for row in rows:
                family.add(row.text, _duration(row, name).ns // 1000)
            yield family
    caching = [row for row in rows if row.version.caches]
    for column in _CACHE:
        if with_durations or "duration" not in column[0]:
            yield _counted("counter", column, caching)
    if gpus:
        energy = ExposedMetric(_ENERGY[0], "counter", _ENERGY[1])
        for gpu in gpus:
            if gpu.energy is not None:
                energy.add(written({"gpu_uuid": gpu.uuid}), gpu.energy)
        yield energy


def gauges(rows: Sequence[TritonMetric], report: MetricsReport) -> Iterator[ExposedMetric]:
    """Yield the gauges: what waits per version, the cache, and the machine."""
    waiting = (
        "nv_inference_pending_request_count",
        "Instantaneous number of pending requests awaiting execution per-model.",
        lambda counts: counts.queued_items,
    )
    yield _counted("gauge", waiting, rows)
    for kind in ("total", "used"):
        words = f"Pinned memory pool {kind} memory size, in bytes"
        yield _plain(f"nv_pinned_memory_pool_{kind}_bytes", words, 0)  # we keep none
    if report.cache is not None:
        for name, words, of_cache in _KEPT:
            yield _plain(name, words, of_cache(report.cache))
    if report.machine is not None:
        machine = report.machine
        yield _plain("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", machine.cpu)
        yield _plain("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", machine.memory_total)
        yield _plain("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", machine.memory_used)
    for name, kind, words, value in _GPU if report.gpus else ():
        family = ExposedMetric(name, kind, words)
        for gpu in report.gpus:
            told = value(gpu)
            if told is not None:
                family.add(written({"gpu_uuid": gpu.uuid}), told)
        yield family


def first_parts(rows: Sequence[TritonMetric]) -> ExposedMetric:
    """Return the times from requests to the first part of their answers."""
    words = "Duration from request to first response in milliseconds"
    family = ExposedMetric("nv_inference_first_response_histogram_ms", "histogram", words)
    for row in rows:
        counts = row.counts
        family.add_histogram(row.text, counts.first_part.ns / 1e6, counts.first_part_buckets, 1000.0)
    return family


def summaries(rows: Sequence[TritonMetric]) -> Iterator[ExposedMetric]:
    """Quantiles of the last minute, in microseconds."""
    for name, theirs, _, words in _DURATIONS:
        family = ExposedMetric(f"nv_inference_{theirs}_summary_us", "summary", words)
        for row in rows:
            spent = _duration(row, name)
            quantiles = row.counts.quantiles.get(name, ())
            shown = [(quantile, _microseconds(seconds)) for quantile, seconds in quantiles]
            family.add_summary(row.text, spent.count, spent.ns // 1000, shown)
        yield family


def _failures(rows: Sequence[TritonMetric]) -> ExposedMetric:
    family = ExposedMetric(
        "nv_inference_request_failure", "counter", "Number of failed inference requests, all batch sizes"
    )
    for row in rows:
        reasons = dict.fromkeys(("REJECTED", "CANCELED", "BACKEND"), 0)
        for code, count in row.counts.failures.items():
            if code in _REASONS:
                reasons[_REASONS[code]] += count
        reasons["OTHER"] = max(row.counts.fail.count - sum(reasons.values()), 0)  # so that they add up
        for reason, count in reasons.items():
            family.add(written({**row.labels, "reason": reason}), count)
    return family


def _counted(
    kind: str, column: tuple[str, str, Callable[[VersionStatistics], int]], rows: Sequence[TritonMetric]
) -> ExposedMetric:
    name, words, value = column
    family = ExposedMetric(name, kind, words)
    for row in rows:
        family.add(row.text, value(row.counts))
    return family


def _plain(name: str, words: str, value: float) -> ExposedMetric:
    family = ExposedMetric(name, "gauge", words)
    family.add("", value)
    return family


def _duration(row: TritonMetric, name: str) -> Duration:
    spent: Duration = getattr(row.counts, name)
    return spent


def _microseconds(seconds: float) -> float:
    return seconds if seconds != seconds else round(seconds * 1e6)
