"""Rolling batches on the virtual clock: what every request is owed, whatever the load."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.virtual_models import make_spec

from trivium.engines.hf.plan import StepSettings
from trivium.load.steps import StepCost, simulate_steps
from trivium.types.spec import Limits

SPEC = make_spec(inputs=(), outputs=(), limits=Limits(queue_items=10**6))
COST = StepCost(0.01, 0.0005)


def run(requests, slots=4, chunk=64, cost=COST):
    """The steps, and when each request ended."""
    ends = {}
    log = simulate_steps(
        SPEC, requests, StepSettings(slots, chunk), cost, lambda item, part: ends.update({item: part})
    )
    assert sorted(ends) == list(range(1, len(requests) + 1))
    for item, part in ends.items():
        assert part.final
        assert part.error is None
        assert len(part.payload.choices[0].ids) == requests[item - 1][2]
    return log.steps, {item: part.payload.usage for item, part in ends.items()}


@given(
    st.lists(st.tuples(st.floats(0, 2), st.integers(1, 300), st.integers(1, 30)), min_size=1, max_size=40),
    st.integers(1, 8),
    st.integers(1, 128),
)
def test_every_running_request_gets_a_token_in_every_step_and_no_step_computes_too_much(
    requests, slots, chunk
):
    steps, _ = run(requests, slots, chunk)
    for _, view, planned in steps:
        running = {holder.key for holder in view.holders if holder.left == 1}
        assert running <= set(planned.rows)
        assert len(planned.rows) + sum(piece.count for piece in planned.pieces) <= slots + chunk
        assert len(planned.rows) <= slots


def test_a_freed_slot_is_taken_within_two_steps():
    chance = random.Random(3)
    requests = [(0.0, chance.randint(1, 200), chance.randint(1, 20)) for _ in range(200)]
    steps, _ = run(requests)
    joined = left = 0
    for _, view, planned in steps:
        joined += len(planned.joins)
        before, left = left, len(view.free) - len(planned.joins)
        freed = len(view.free) - before  # by the step before
        assert joined == len(requests) or left <= freed


def test_nobody_is_overtaken_within_a_priority():
    chance = random.Random(4)
    requests = [(number * 0.001, chance.randint(1, 100), 5) for number in range(100)]
    _, usages = run(requests)
    firsts = [usages[item].first_at for item in sorted(usages)]
    assert firsts == sorted(firsts)


def test_a_long_prompt_delays_the_others_by_no_more_than_a_chunk():
    short = [(0.0, 1, 200)] * 3
    steps, usages = run([*short, (0.1, 5000, 1)], chunk=64)
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(steps)]
    assert max(gaps) == pytest.approx(COST.fixed + COST.per_token * (3 + 64))
    between = (usages[1].last_at - usages[1].first_at) / 199
    assert between < COST.fixed + COST.per_token * 68


def test_more_slots_make_more_tokens_in_the_same_time():
    requests = [(0.0, 32, 32)] * 64
    alone = run(requests, slots=1)[0][-1][0]
    together = run(requests, slots=16)[0][-1][0]
    assert together < alone / 4
