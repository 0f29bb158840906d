"""The counters of a version add up: over batch sizes, codes, and the buckets of the wait."""

import asyncio
import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.virtual_models import VirtualModelHarness, make_infer, make_spec

from trivium.core.observability.statistics import TIME_BUCKETS, WAIT_BUCKETS, VersionCounters
from trivium.core.queueing.admission import remaining
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.metrics import Measurements
from trivium.types.running import Executed
from trivium.types.spec import Batching, Limits
from trivium.types.statistics import Duration

GONE = ServeError(Code.CANCELLED, "by the test")


def item(at, rows=1, item=1):
    return Item(item, make_infer(), print, at, None, rows=rows)


def run(began, ready, output, ended):
    return Executed([], [], began, ready, output, ended)


def test_nothing_happened():
    report = VersionCounters().report("m", "1", 3)
    assert (report.model, report.version, report.queued_items) == ("m", "1", 3)
    assert report.success == report.fail == report.queue == Duration()
    assert (report.executions, report.rows, report.wasted, report.last) == (0, 0, 0, 0)
    assert report.batches == ()
    assert report.queue_wait_buckets == tuple((bound, 0) for bound in (*WAIT_BUCKETS, math.inf))


def test_each_item_is_charged_its_batchs_whole_time():
    counters = VersionCounters()
    counters.executed(run(2.0, 3.0, 6.0, 8.0), 3, [item(1.0), item(1.5, rows=2)], 8.5)
    report = counters.report("m", "1", 0)
    seconds = 10**9
    assert report.success == Duration(2, int(14.5 * seconds))
    assert report.queue == Duration(2, int(1.5 * seconds))
    assert report.compute_input == Duration(2, 2 * seconds)
    assert report.compute_infer == Duration(2, 6 * seconds)
    assert report.compute_output == Duration(2, 4 * seconds)
    (batch,) = report.batches
    assert (batch.rows, batch.compute_input.ns, batch.compute_infer.ns, batch.compute_output.ns) == (
        3,
        seconds,
        3 * seconds,
        2 * seconds,
    )
    assert (report.executions, report.rows) == (1, 3)
    assert report.last > 1_600_000_000_000


def test_a_failed_batch_is_an_execution_without_success():
    counters = VersionCounters()
    counters.executed(run(0.0, 0.0, 1.0, 1.0), 2, [], 1.0)
    report = counters.report("m", "1", 0)
    assert (report.executions, report.success.count, report.rows, report.last) == (1, 0, 0, 0)
    assert report.compute_infer == Duration()
    assert report.batches[0].compute_infer == Duration(1, 10**9)


@pytest.mark.parametrize(("waited", "bucket"), [(0.0, 0), (0.0001, 0), (0.00011, 1), (10.0, 14), (11.0, 15)])
def test_a_wait_falls_into_the_bucket_that_it_does_not_exceed(waited, bucket):
    counters = VersionCounters()
    counters.executed(run(waited, waited, waited, waited), 1, [item(0.0)], waited)
    counts = [count for _, count in counters.report("m", "1", 0).queue_wait_buckets]
    assert counts == [int(i == bucket) for i in range(len(WAIT_BUCKETS) + 1)]


def test_failures_are_counted_by_code():
    counters = VersionCounters()
    for code in (Code.EXPIRED, Code.INVALID, Code.EXPIRED):
        counters.failed(item(1.0), ServeError(code, "It failed."), 3.0)
    report = counters.report("m", "1", 0)
    assert report.fail == Duration(3, 6 * 10**9)
    assert report.failures == {"expired": 2, "invalid": 1}


def test_a_hit_is_a_success_and_no_inference():
    counters = VersionCounters()
    counters.missed(0.25)
    counters.executed(run(1.0, 1.0, 2.0, 2.0), 1, [item(0.0)], 2.0)
    counters.kept(0.5)
    counters.cached(item(3.0), 0.125, 4.0)
    report = counters.report("m", "1", 0)
    assert (report.executions, report.rows) == (1, 1)
    assert (report.success, report.queue) == (Duration(2, 3 * 10**9), Duration(2, 10**9))
    assert report.compute_infer == Duration(1, 10**9)
    assert (report.cache_hit, report.cache_miss) == (Duration(1, 125 * 10**6), Duration(1, 75 * 10**7))
    assert sum(count for _, count in report.queue_wait_buckets) == report.queue.count


def test_an_execution_whose_items_end_by_parts_counts_whole():
    counters = VersionCounters()
    counters.executed(run(0.0, 0.0, 2.0, 2.0), 8, [item(0.0)], 2.0)
    early, late = item(1.0, item=7), item(1.5, item=8)
    counters.streamed(early, 2.25)
    late.run = Executed([], [], 2.0, 2.0, 2.5, 2.5, 3, [7, 8, 9])
    counters.executed(late.run, 3, [], 2.5)
    counters.streamed(late, 4.0)
    report = counters.report("m", "1", 0)
    assert {batch.rows: batch.compute_infer.count for batch in report.batches} == {3: 1, 8: 1}
    assert (report.executions, report.success.count) == (2, 3)
    assert report.queue == Duration(3, 15 * 10**8)
    assert report.compute_infer == Duration(3, (2000 + 250 + 500) * 10**6)
    assert report.success.ns == (2000 + 1250 + 2500) * 10**6
    assert (counters.mean_run, counters.mean_rows) == (2.0, 8.0)  # when its items end nobody knows


def test_the_first_run_counts_whole_in_the_means():
    counters = VersionCounters()
    counters.executed(run(0.0, 0.0, 2.0, 2.0), 8, [item(0.0)], 2.0)
    assert (counters.mean_run, counters.mean_rows) == (2.0, 8.0)
    counters.executed(run(0.0, 0.0, 3.0, 3.0), 18, [item(0.0)], 3.0)
    assert counters.mean_run == pytest.approx(2.1)
    assert counters.mean_rows == pytest.approx(9.0)


def mixed_history():
    """Batches of several sizes, a refusal, cancellations in the queue and at work, an expiry."""
    bench = VirtualModelHarness(make_spec(Batching(True, 4, merge=True)), lambda rows: float(rows))
    submitted = [bench.submit(make_infer(1)) for _ in range(3)]
    bench.clock.run(0.5)  # three rows run until 3.0
    submitted += [bench.submit(make_infer(rows)) for rows in (2, 1, 1, 4, 5)]
    submitted[0].cancel(GONE)
    submitted[4].cancel(GONE)
    submitted.append(bench.submit(make_infer(1, deadline=1.0)))
    bench.clock.run()
    return bench, submitted


def test_a_history_adds_up():
    bench, submitted = mixed_history()
    report = bench.model.report()
    assert report.success.count + report.fail.count == len(submitted)
    assert report.failures == {"cancelled": 2, "invalid": 1, "expired": 1}
    assert sum(report.failures.values()) == report.fail.count
    assert report.wasted == 1
    sizes = {batch.rows: batch.compute_infer for batch in report.batches}
    assert sizes == {3: Duration(2, 6 * 10**9), 4: Duration(1, 4 * 10**9)}
    assert report.executions == sum(batch.compute_infer.count for batch in report.batches)
    assert report.rows == 2 + 3 + 4
    assert report.compute_infer == Duration(5, (2 * 3 + 2 * 3 + 4) * 10**9)
    assert sum(count for _, count in report.queue_wait_buckets) == report.success.count == report.queue.count
    assert report.queue.ns + report.compute_infer.ns == report.success.ns
    assert report.queued_items == 0


def test_what_waits_is_in_the_report():
    bench = VirtualModelHarness(make_spec())
    for _ in range(3):
        bench.submit()
    bench.clock.run(0.5)
    assert bench.model.report().queued_items == 2


def test_retry_after_is_the_time_to_empty_the_queue():
    bench = VirtualModelHarness(make_spec(limits=Limits(queue_items=3)), lambda rows: 10.0)
    bench.submit()
    bench.clock.run()
    for _ in range(5):  # one runs, three wait, and the last one is refused
        bench.submit()
        bench.clock.run(10.5)
    assert bench.error(6).retry_after == pytest.approx(30.0)
    asyncio.run(bench.model.close())


@pytest.mark.parametrize(("age", "limit", "seconds"), [
    (0.0, math.inf, 0.0), (40.0, math.inf, 40.0), (40.0, 300.0, 40.0), (200.0, 300.0, 100.0), (301.0, 300.0, 0.0),
])  # fmt: skip
def test_a_run_may_take_as_long_again_but_not_beyond_its_limit(age, limit, seconds):
    assert remaining(age, limit) == seconds


def test_retry_after_follows_a_run_that_hangs():
    bench = VirtualModelHarness(make_spec(limits=Limits(queue_items=1)), lambda rows: 1e6)
    bench.submit()
    bench.clock.run(1.0)
    bench.submit()
    bench.clock.run(70.0)
    bench.submit()
    assert bench.error(3).retry_after == pytest.approx(70.0)
    assert bench.model.oldest_run() == pytest.approx(70.0)
    asyncio.run(bench.model.close())


@pytest.mark.parametrize(("took", "bucket"), [(0.0, 0), (0.001, 0), (0.0011, 1), (60.0, 14), (61.0, 15)])
def test_a_whole_request_falls_into_a_bucket_whether_it_answers_once_or_in_parts(took, bucket):
    counters = VersionCounters()
    counters.executed(run(0.0, 0.0, took, took), 1, [item(0.0)], took)
    counters.streamed(item(0.0), took)
    report = counters.report("m", "1", 0)
    assert [count for _, count in report.success_buckets] == [
        2 * int(i == bucket) for i in range(len(TIME_BUCKETS) + 1)
    ]
    assert sum(count for _, count in report.success_buckets) == report.success.count


def test_quantiles_of_each_duration_are_kept_where_they_are_asked_for():
    counters = VersionCounters(Measurements(quantiles=(0.5, 1.0)), lambda: 9.0)
    counters.executed(run(2.0, 3.0, 6.0, 8.0), 3, [item(1.0), item(1.5, rows=2)], 8.5)
    report = counters.report("m", "1", 0)
    highest = {name: values[1][1] for name, values in report.quantiles.items()}
    assert highest == {
        "success": pytest.approx(7.5, rel=0.01),
        "queue": pytest.approx(1.0, rel=0.01),
        "compute_input": pytest.approx(1.0, rel=0.01),
        "compute_infer": pytest.approx(3.0, rel=0.01),
        "compute_output": pytest.approx(2.0, rel=0.01),
    }
    assert report.quantiles["success"][0][1] == pytest.approx(7.0, rel=0.01)


def test_else_there_are_none():
    assert VersionCounters().report("m", "1", 0).quantiles == {}


@given(st.lists(st.one_of(st.sampled_from([*WAIT_BUCKETS, *TIME_BUCKETS]), st.floats(0, 100)), max_size=30))
def test_every_wait_and_time_falls_into_its_bucket_whatever_came_before(times):
    """The bucket of the one before is looked at first."""
    counters = VersionCounters()
    for time in times:
        counters.executed(run(time, time, time, time), 1, [item(0.0)], time)
    report = counters.report("m", "1", 0)
    for found, bounds in (
        (report.queue_wait_buckets, WAIT_BUCKETS),
        (report.success_buckets, TIME_BUCKETS),
    ):
        expected = [0] * (len(bounds) + 1)
        for time in times:
            expected[bisect_left(bounds, time)] += 1
        assert [count for _, count in found] == expected
