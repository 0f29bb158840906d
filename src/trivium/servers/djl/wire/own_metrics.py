"""Metrics under the original's own names, from what the server counts anyway.

Source: spec sheet `djl`, section 5.3: times are microseconds, and the first dimension of each is its label. Pure.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from trivium.servers.djl.wire.meter import DjlMeter
from trivium.servers.djl.wire.options import meter_of
from trivium.servers.djl.words.error_rate_policy import ErrorKind
from trivium.types.metrics import Buckets, MetricFamily, MetricSeries
from trivium.types.protocol_context import ProtocolContext
from trivium.types.statistics import MetricsReport, VersionStatistics

_MICROSECONDS = 1e6
_DURATIONS: Mapping[str, str] = {
    "Preprocess": "compute_input",
    "Inference": "compute_infer",
    "Postprocess": "compute_output",
    "Prediction": "success",
}
"""The original's name of a duration -> ours."""

_SHOWN = {0.5: "p50", 0.9: "p90"}
_WITH_UNITS = "in microseconds"
OwnMetrics = Callable[[MetricsReport], tuple[MetricFamily, ...]]


def own_metrics(context: ProtocolContext) -> OwnMetrics:
    """Return what makes the families of a report, for the server of a listener."""
    return partial(families, meter_of(context), context.host)


def families(meter: DjlMeter, host: str, report: MetricsReport) -> tuple[MetricFamily, ...]:
    """Return all of them, sorted by name."""
    counts = [version.statistics for version in report.versions]
    found = [*_counters(meter, host), *_histograms(counts), *_gauges(counts), *_gpus(report, host)]
    return tuple(sorted(found, key=lambda family: family.name))


def _counters(meter: DjlMeter, host: str) -> Iterable[MetricFamily]:
    values = {f"Response_{digit}XX": meter.answers[digit] for digit in (2, 4, 5)}
    values["WlmError"] = meter.errors[ErrorKind.WLM]
    values["ServerError"] = meter.errors[ErrorKind.SERVER]
    for name, value in values.items():
        series = MetricSeries((("Host", host),), float(value))
        yield MetricFamily(f"{name}_total", "counter", f"{name} of predictions", (series,))


def _histograms(counts: Iterable[VersionStatistics]) -> Iterable[MetricFamily]:
    waits: defaultdict[str, list[tuple[int, Buckets]]] = defaultdict(list)
    times: defaultdict[str, list[tuple[int, Buckets]]] = defaultdict(list)
    for each in counts:
        waits[each.model].append((each.queue.ns, each.queue_wait_buckets))
        times[each.model].append((each.success.ns, each.success_buckets))
    for name, models, text in (
        ("QueueTime", waits, "Time in the queue"),
        ("RequestLatency", times, "Whole time of a request that succeeded"),
    ):
        series = tuple(_histogram(model, parts) for model, parts in sorted(models.items()))
        yield MetricFamily(name, "histogram", f"{text}, {_WITH_UNITS}", series)


def _histogram(model: str, parts: Iterable[tuple[int, Buckets]]) -> MetricSeries:
    """Return the series of a model, over all its versions."""
    total, summed = 0.0, dict[float, int]()
    for ns, buckets in parts:
        total += ns / 1000
        for bound, inside in buckets:
            summed[bound * _MICROSECONDS] = summed.get(bound * _MICROSECONDS, 0) + inside
    return MetricSeries((("Model", model),), total, sum(summed.values()), tuple(sorted(summed.items())))


def _gauges(counts: Iterable[VersionStatistics]) -> Iterable[MetricFamily]:
    sizes, spent = [], defaultdict[str, list[MetricSeries]](list)
    for each in counts:
        labels = (("Model", each.model), ("Version", each.version))
        runs = sum(batch.compute_infer.count for batch in each.batches)
        if runs:
            rows = sum(batch.rows * batch.compute_infer.count for batch in each.batches)
            sizes.append(MetricSeries(labels, rows / runs))
        for name, ours in _DURATIONS.items():
            for quantile, seconds in each.quantiles.get(ours, ()):
                if quantile in _SHOWN and seconds == seconds:  # nothing happened: not a number
                    shown = f"{name}_{_SHOWN[quantile]}"
                    spent[shown].append(MetricSeries(labels, seconds * _MICROSECONDS))
    yield MetricFamily("DynamicBatchSize", "gauge", "Mean of the sizes of batches", tuple(sizes))
    for name, series in spent.items():
        yield MetricFamily(name, "gauge", f"Of the last minute, {_WITH_UNITS}", tuple(series))


def _gpus(report: MetricsReport, host: str) -> Iterable[MetricFamily]:
    for gpu in report.gpus:
        if gpu.memory_used is not None:
            series = MetricSeries((("Host", host),), float(gpu.memory_used))
            yield MetricFamily(f"GPUMemory_{gpu.index}", "gauge", "Memory in use, in bytes", (series,))
