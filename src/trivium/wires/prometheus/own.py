"""Trivium's own families, and the custom metrics of models: seconds and rows, names by Prometheus' conventions."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import inf

from trivium.codecs.exposition import ExposedMetric, written
from trivium.types.metrics import Buckets
from trivium.types.observing import DeathCause
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
        version = row.version
        waited, took = counts.queue.ns / 1e9, counts.success.ns / 1e9
        waits.add_histogram(row.text, waited, counts.queue_wait_buckets, exemplars=version.waits)
        times.add_histogram(row.text, took, counts.success_buckets, exemplars=version.times)
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


def instances(rows: Sequence[TritonMetric]) -> Iterator[ExposedMetric]:
    """Yield how the instances of each version are, how full it is, and how full the fullest one is."""
    counted = ExposedMetric(
        "trivium_instances",
        "gauge",
        "Instances by state: idle, busy, opening, lacking (they should be there)",
    )
    places = ExposedMetric(
        "trivium_places", "gauge", "Executions that the open instances may have in work at once"
    )
    busy = ExposedMetric("trivium_busy_seconds_total", "counter", "Time that executions have taken in all")
    full = ExposedMetric(
        "trivium_saturation",
        "gauge",
        "Used places plus waiting requests, over what fits: 1 is just full, more a queue",
    )
    fullest = ExposedMetric("trivium_server_saturation", "gauge", "The saturation of the fullest model")
    for row in rows:
        load, counts = row.version.load, row.counts
        if load is None:
            continue
        states = (("idle", load.open - load.busy), ("busy", load.busy), ("opening", load.opening))
        for state, count in (*states, ("lacking", load.lack)):
            counted.add(written({**row.labels, "state": state}), count)
        places.add(row.text, load.places)
        spent = (
            batch.compute_input.ns + batch.compute_infer.ns + batch.compute_output.ns
            for batch in counts.batches
        )
        busy.add(row.text, sum(spent) / 1e9)
        full.add(row.text, row.version.saturation)
    fullest.add("", max((row.version.saturation for row in rows), default=0.0))
    yield from (counted, places, busy, full, fullest)


def health(report: MetricsReport) -> Iterator[ExposedMetric]:
    """Yield the state of each version, what its workers died of, and the memory of processes."""
    states = ExposedMetric(
        "trivium_model_state", "gauge", "1 for each version of a model, with its state as a label"
    )
    deaths = ExposedMetric(
        "trivium_worker_deaths_total", "counter", "Worker processes that were lost, by cause"
    )
    memory = ExposedMetric(
        "trivium_resident_bytes", "gauge", "Resident memory of the server, and of each worker process"
    )
    for version in report.health:
        named = {"model": version.model, "version": version.version}
        states.add(written({**named, "state": version.state.value}), 1)
        if version.deaths is not None:
            for cause in DeathCause:
                deaths.add(written({**named, "cause": cause.value}), version.deaths.get(cause, 0))
    for process in report.memory:
        of_worker = {"model": process.model, "version": process.version, "worker": process.instance}
        labels = {"process": "worker", **of_worker} if process.model else {"process": "server"}
        memory.add(written(labels), process.bytes)
    yield from (states, deaths, memory)
    if report.build:
        build = ExposedMetric("trivium_build_info", "gauge", "1, with what this server is made of as labels")
        build.add(written(report.build), 1)
        yield build


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
    if report.loop.delays:
        delays = ExposedMetric(
            "trivium_loop_delay_seconds", "histogram", "How late the event loop was, at ten looks a second"
        )
        delays.add_histogram("", report.loop.delayed, report.loop.delays)
        yield delays


def by_rows(batches: tuple[BatchStatistics, ...]) -> Buckets:
    """Executions by the bucket that their rows fall into."""
    counts = [0] * (len(ROW_BOUNDS) + 1)
    for batch in batches:
        counts[bisect_left(ROW_BOUNDS, batch.rows)] += batch.compute_infer.count
    return tuple(zip((*map(float, ROW_BOUNDS), inf), counts, strict=True))
