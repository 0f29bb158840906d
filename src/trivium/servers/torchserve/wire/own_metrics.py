"""Metrics under the original's own names, which stand with ours, from what the server counts anyway.

Decides names, labels and units. What needs a look at each request, as that of the last one's time in the queue, is not
here: the command `torchserve` keeps it. Source: spec sheet `torchserve`, section 6.1. Pure.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from trivium.servers.torchserve.words.machine_metrics import MachineMetric, machine_metrics
from trivium.servers.torchserve.words.meter import HOST
from trivium.servers.torchserve.words.metrics_config import DEFAULTS
from trivium.types.metrics import MetricFamily, MetricSeries
from trivium.types.protocol_context import AnswerCounts, ProtocolContext
from trivium.types.statistics import MetricsReport


def own_metrics(context: ProtocolContext) -> Callable[[MetricsReport], tuple[MetricFamily, ...]]:
    """Return what makes the families of a report, for the server of a listener."""
    return partial(families, context.states.of(AnswerCounts).by_digit, context.host)


def families(answers: Sequence[int], host: str, report: MetricsReport) -> tuple[MetricFamily, ...]:
    """Return all of them, sorted by name. `answers` counts those over HTTP by the first digit of their status."""
    series: defaultdict[str, list[MetricSeries]] = defaultdict(list)
    machine = machine_metrics(report.machine, report.gpus)
    for name, values, value in (*_answered(answers), *_requests(report), *machine):
        labels = zip(DEFAULTS.server[name].dimensions, (*values, host), strict=True)
        series[name].append(MetricSeries(tuple(sorted(labels)), value))
    return tuple(_family(name, tuple(found)) for name, found in sorted(series.items()))


def _family(name: str, series: tuple[MetricSeries, ...]) -> MetricFamily:
    metric = DEFAULTS.server[name]
    words = f"Torchserve prometheus {metric.kind} metric with unit: {metric.unit}"
    return MetricFamily(name, metric.kind, words, series)


def _answered(answers: Sequence[int]) -> Iterator[MachineMetric]:
    """Yield the answers by status; as in the original all that are no others count with the server's faults."""
    for digit in (2, 4):
        yield f"Requests{digit}XX", (HOST,), float(answers[digit])
    yield "Requests5XX", (HOST,), float(sum(answers) - answers[2] - answers[4])


def _requests(report: MetricsReport) -> Iterator[MachineMetric]:
    for counts in (version.statistics for version in report.versions):
        place = counts.model, counts.version
        yield "ts_inference_requests_total", place, float(counts.success.count + counts.fail.count)
        yield "ts_inference_latency_microseconds", place, counts.success.ns / 1000
        yield "ts_queue_latency_microseconds", place, counts.queue.ns / 1000
