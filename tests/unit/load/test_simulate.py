"""The core on a virtual clock against queueing theory, and the clock itself."""

import random
from itertools import accumulate

import pytest
from tests.harness.virtual_models import make_spec

from trivium.load.simulate import VirtualClock, simulate
from trivium.types.datatype import DataType
from trivium.types.schedules import Sequence, Strategy
from trivium.types.spec import Batching, Dynamic, InstanceGroup, Limits, TensorSpec
from trivium.types.statistics import Duration

ENDLESS = Limits(queue_items=10**6)


def poisson(rate, count, seed=1):
    """Arrival times."""
    dice = random.Random(seed)
    return list(accumulate(dice.expovariate(rate) for _ in range(count)))


def mean_wait(report):
    return report.queue.ns / report.queue.count / 1e9


MANY = pytest.param(40_000, 0.05, marks=pytest.mark.slow)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.75])
@pytest.mark.parametrize(("count", "error"), [(6_000, 0.1), MANY])
def test_the_mean_wait_of_one_server_with_constant_service_is_the_textbooks(load, count, error):
    """M/D/1 (Pollaczek and Khinchine): rho s / (2 (1 - rho))."""
    service = 1.0
    report = simulate(make_spec(limits=ENDLESS), poisson(load / service, count), lambda rows: service)
    assert report.success.count == count
    assert mean_wait(report) == pytest.approx(load * service / (2 * (1 - load)), rel=error)


@pytest.mark.parametrize(("count", "error"), [(6_000, 0.05), MANY])
def test_the_mean_wait_of_two_servers_is_about_half_of_erlangs(count, error):
    """M/M/2 at 75 % waits 1.286 service times (Erlang's C over 2 mu - lambda); constant service, about half."""
    spec = make_spec(groups=(InstanceGroup("m", 2, 2),), limits=ENDLESS)
    report = simulate(spec, poisson(1.5, count), lambda rows: 1.0)
    assert mean_wait(report) == pytest.approx(1.286 / 2, rel=2 * error)


def test_batches_grow_with_the_load_beyond_the_capacity_of_single_runs():
    spec = make_spec(Batching(True, 8, merge=True), limits=ENDLESS)
    report = simulate(spec, poisson(1.5, 5_000), lambda rows: 0.9 + 0.1 * rows)
    assert report.success.count == 5_000
    assert report.executions < 3_500
    assert mean_wait(report) < 2.0
    assert max(batch.rows for batch in report.batches) <= 8


def test_a_delay_is_waited_for_when_alone():
    spec = make_spec(Batching(True, 4, merge=True), Dynamic(max_delay=0.25))
    report = simulate(spec, [1.0, 5.0], lambda rows: 1.0)
    assert report.queue == Duration(2, 500_000_000)
    report = simulate(spec, [1.0, 1.1, 1.15, 1.2], lambda rows: 1.0)
    assert (report.executions, report.queue.ns) == (1, round(1e9 * (0.2 + 0.1 + 0.05)))


def test_a_full_queue_refuses_here_as_well():
    report = simulate(make_spec(limits=Limits(queue_items=2)), [0.0, 0.1, 0.2, 0.3, 0.4], lambda rows: 9.0)
    assert (report.success.count, report.failures) == (3, {"queue full": 2})


def test_dims_of_any_size_are_one():
    spec = make_spec(Batching(True, 2), inputs=(TensorSpec("x", DataType.FP32, (-1, 3)),))
    assert simulate(spec, [0.0], lambda rows: 1.0).success.count == 1


@pytest.mark.parametrize("strategy", Strategy)
def test_sequences_share_executions_by_their_slots(strategy):
    rules = Sequence(strategy, candidates=4)
    spec = make_spec(Batching(True, 4, merge=True), rules, limits=ENDLESS)
    report = simulate(spec, [0.0] * 4 + [0.5] * 6, lambda rows: 1.0)
    assert [(row.rows, row.compute_infer.count) for row in report.batches] == [(2, 1), (4, 2)]
    assert (report.success.count, report.fail.count) == (10, 0)


def test_the_clock_calls_in_order_of_time_then_of_asking():
    clock, calls = VirtualClock(), []

    def later():
        calls.append(("later", clock.now()))
        clock.call_soon(lambda: calls.append(("soon", clock.now())))
        clock.call_at(0.5, lambda: calls.append(("past", clock.now())))

    clock.call_at(2.0, lambda: calls.append(("last", clock.now())))
    clock.call_at(1.0, later)
    clock.call_at(1.0, lambda: calls.append(("second", clock.now())))
    clock.call_at(1.0, lambda: calls.append(("never", 0))).cancel()
    clock.run(1.5)
    assert calls == [("later", 1.0), ("second", 1.0), ("soon", 1.0), ("past", 1.0)]
    assert clock.now() == 1.5
    clock.run()
    assert calls[-1] == ("last", 2.0)
