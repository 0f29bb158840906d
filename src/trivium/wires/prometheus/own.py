"""Trivium's own families, and the custom metrics of models: seconds and rows, names by Prometheus' conventions."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import inf

from trivium.codecs.exposition import ExposedMetric, written
from trivium.types.metrics import Buckets
from trivium.types.statistics import BatchStatistics, MetricsReport
from trivium.wires.prometheus.triton import TritonMetric

ROW_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds of the histogram of executions by rows."""


def histograms(rows: Sequence[TritonMetric]) -> Iterator[ExposedMetric]:
    """Per version: how long requests waited and took, and how many rows ran together."""
    waits = ExposedMetric(
        "trivium_queue_wait_seconds", "histogram", "Time in the queue of requests that succeeded"
    )
    times = ExposedMetric("trivium_request_seconds", "histogram", "Whole time of requests that succeeded")
    sizes = ExposedMetric("trivium_batch_rows", "histogram", "Rows of an execution, failed ones included")
    for row in rows:
        counts = row.counts
        waits.add_histogram(row.text, counts.queue.ns / 1e9, counts.queue_wait_buckets)
        times.add_histogram(row.text, counts.success.ns / 1e9, counts.success_buckets)
        total = sum(batch.rows * batch.compute_infer.count for batch in counts.batches)
        sizes.add_histogram(row.text, total, by_rows(counts.batches))
    yield from (waits, times, sizes)


def counters(rows: Sequence[TritonMetric]) -> Iterator[ExposedMetric]:
    """Per version: failures by our own codes, and what was computed for nobody."""
    failures = ExposedMetric("trivium_request_failures_total", "counter", "Failed requests, by code")
    wasted = ExposedMetric(
        "trivium_wasted_items_total", "counter", "Requests that were computed though nobody waited any more"
    )
    for row in rows:
        for code, count in sorted(row.counts.failures.items()):
            failures.add(written({**row.labels, "code": code.replace(" ", "_")}), count)
        wasted.add(row.text, row.counts.wasted)
    yield from (failures, wasted)


def gauges(rows: Sequence[TritonMetric]) -> Iterator[ExposedMetric]:
    """Per version: how long the oldest run in hand has taken."""
    oldest = ExposedMetric(
        "trivium_oldest_run_seconds", "gauge", "Time that the oldest run in hand has taken"
    )
    for row in rows:
        oldest.add(row.text, row.version.oldest_run)
    yield oldest


def loops(report: MetricsReport) -> Iterator[ExposedMetric]:
    """Yield the metrics of what has held up the server's event loop."""
    if report.loop is None:
        return
    stalls = ExposedMetric(
        "trivium_loop_stalls_total", "counter", "Times that work held up the event loop for 250 ms or longer"
    )
    longest = ExposedMetric(
        "trivium_loop_longest_stall_seconds", "gauge", "Longest time that work has held up the event loop"
    )
    turn = ExposedMetric(
        "trivium_loop_longest_turn_seconds",
        "gauge",
        "Longest time that the event loop's own thread has computed while other work was due",
    )
    stalls.add("", report.loop.stalls)
    longest.add("", report.loop.longest)
    turn.add("", report.loop.longest_turn)
    yield from (stalls, longest, turn)


def by_rows(batches: tuple[BatchStatistics, ...]) -> Buckets:
    """Executions by the bucket that their rows fall into."""
    counts = [0] * (len(ROW_BOUNDS) + 1)
    for batch in batches:
        counts[bisect_left(ROW_BOUNDS, batch.rows)] += batch.compute_infer.count
    return tuple(zip((*map(float, ROW_BOUNDS), inf), counts, strict=True))
