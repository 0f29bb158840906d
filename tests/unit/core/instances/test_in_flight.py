"""A model whose instances have many items in work, on a virtual clock: nothing is reckoned by batches."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.model_parts import kept_parts
from tests.harness.virtual_models import VirtualModelHarness, make_infer, make_spec

from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.pool import InstanceSlot, by_turns, least_busy_first
from trivium.core.instances.rate_limiter import RateLimiter
from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.load.simulate import VirtualClock, VirtualInstance
from trivium.types.errors import Code, ServeError
from trivium.types.resources import EVERYWHERE, ResourceLimits, ResourceNeed, ResourceRequest
from trivium.types.running import Placement
from trivium.types.spec import InstanceGroup, Isolation, Limits

LEFT = ServeError(Code.CANCELLED, "by the test")


def stage(in_flight, instances=1, queue=1000, seconds=1.0):
    groups = (InstanceGroup("m", instances, instances),)
    spec = make_spec(groups=groups, limits=Limits(queue_items=queue))
    return VirtualModelHarness(spec, lambda rows: seconds, in_flight=in_flight)


@pytest.mark.parametrize(
    ("in_flight", "instances", "items", "seconds"),
    [
        (1, 1, 10, 10.0),
        (10, 1, 10, 1.0),
        (10, 1, 100, 10.0),
        (10, 3, 90, 3.0),
        (1000, 1, 100, 1.0),
        (4, 2, 9, 2.0),
    ],
)
def test_as_many_run_at_once_as_there_are_places(in_flight, instances, items, seconds):
    bench = stage(in_flight, instances)
    for _ in range(items):
        bench.submit()
    bench.clock.run()
    assert bench.clock.now() == pytest.approx(seconds)
    assert sorted(bench.ended) == list(range(1, items + 1))
    report = bench.model.report()
    assert (report.executions, report.success.count, report.wasted) == (items, items, 0)
    waits = [i // (in_flight * instances) * 1.0 for i in range(items)]
    assert report.queue.ns == pytest.approx(1e9 * sum(waits))
    assert report.compute_infer.ns == pytest.approx(1e9 * items)


def test_neither_the_mean_run_nor_the_lead_is_fed():
    bench = stage(4, seconds=0.0001)
    for _ in range(40):
        bench.submit()
    bench.clock.run()
    state = bench.model.debug_state()
    assert (state.lead, state.ahead) == (0, 0)
    for _ in range(9):
        bench.submit()
    bench.clock.run(bench.clock.now() + 0.00005)
    state = bench.model.debug_state()
    (only,) = state.instances.values()
    assert (state.lead, state.ahead, state.queued, only.credits, len(only.held)) == (0, 0, 5, 0, 4)
    bench.clock.run()


@pytest.mark.parametrize(
    ("in_flight", "instances", "seconds"), [(4, 1, 2.5), (4, 2, 1.25), (1, 1, 10.0), (100, 1, 0.1)]
)
def test_retry_after_is_reckoned_from_all_places(in_flight, instances, seconds):
    bench = stage(in_flight, instances, queue=10)
    bench.submit()
    bench.clock.run()
    places = in_flight * instances
    for _ in range(places):
        bench.submit()
    bench.clock.run(bench.clock.now() + 0.1)
    for _ in range(11):
        bench.submit()
    error = bench.error(places + 12)
    assert error.code is Code.QUEUE_FULL
    assert error.retry_after == pytest.approx(seconds)
    bench.clock.run()


def test_a_place_that_is_left_over_does_not_make_the_next_one_wait():
    bench = stage(3)
    first, *_ = (bench.submit() for _ in range(2))
    bench.clock.run(0.5)
    bench.submit()
    bench.clock.run(0.6)
    assert bench.model.debug_state().queued == 0
    first.cancel(LEFT)  # it is answered at once, and keeps its place until its instance is done with it
    bench.submit()
    bench.clock.run(0.7)
    assert (bench.ended, bench.model.debug_state().queued) == ([1], 1)
    bench.clock.run()
    assert bench.clock.now() == pytest.approx(2.0)
    assert bench.model.report().wasted == 1


@given(st.dictionaries(st.integers(0, 9), st.integers(-2, 6)))
def test_the_least_busy_one_goes_first(credits):
    assert list(least_busy_first(credits)) == by_turns(credits, 0)


@pytest.mark.parametrize(
    ("in_flight", "credits", "groups"),
    [(0, 1, [[]]), (0, 0, [[1, 2]]), (0, -1, [[1, 2]]), (3, 1, [[]]), (2, 0, [[1], [2]])],
)
def test_whoever_waits_for_a_full_instance_waits_for_any_one_of_many(in_flight, credits, groups):
    slot = InstanceSlot(Placement("m_0", Isolation.PROCESS), 0.0)
    slot.in_flight, slot.credits, slot.held = in_flight, credits, {1: None, 2: None}
    assert [list(group) for group in slot.blockers()] == groups


def test_one_of_many_ends_by_itself_also_where_its_instance_is_full():
    with kept_parts() as parts:
        bench = stage(2)
    for _ in range(3):
        bench.submit()
    bench.clock.run(0.5)
    assert [list(parts.pool.beside(number)) for number in (1, 2, 3)] == [[1], [2], []]
    bench.clock.run()


def test_within_the_rate_limits_an_instance_has_what_it_needs_while_anything_is_in_work():
    clock, ended = VirtualClock(), []
    limiter = RateLimiter(ResourceLimits({("R", EVERYWHERE): 1}))
    claim = ResourceRequest((ResourceNeed("R", 1, is_shared=True),))
    spec = make_spec(groups=(InstanceGroup("m", 2, 2, claim=claim),))

    async def launch(placement, port):
        return VirtualInstance(clock, port, lambda rows: 1.0, 4)

    context = ModelContext(limiter=limiter)
    model = ServedModel(spec, Isolation.INLINE, launch, Mailbox(clock.call_soon), clock, context)
    asyncio.run(model.open())
    for number in range(1, 9):
        model.submit(number, make_infer(), lambda part, number=number: ended.append((number, clock.now())))
    clock.run(0.5)
    held = sorted(len(each.held) for each in model.debug_state().instances.values())
    assert held == [0, 4]
    assert list(limiter.free().values()) == [0]
    clock.run()
    assert [when for _, when in ended] == pytest.approx([1.0] * 4 + [2.0] * 4)
    assert list(limiter.free().values()) == [1]
    assert all(each.is_at_rest for each in model.debug_state().instances.values())
