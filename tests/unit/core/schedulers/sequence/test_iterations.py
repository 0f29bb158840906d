"""Requests that come back from their instance until it has had enough of them, on the virtual clock."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples
from tests.harness.virtual_sequences import CONTROLS, LEFT, Adder, SequenceHarness, spec

from trivium.core.schedulers.sequence.scheduler import FIRST_OWN
from trivium.types.datatype import DataType
from trivium.types.errors import Code, RunAgain
from trivium.types.payload import Tensor, Tensors
from trivium.types.schedules import Sequence, Strategy

KINDS = {
    "direct": Sequence(Strategy.DIRECT, 5.0, 1, CONTROLS, is_iterative=True),
    "oldest": Sequence(Strategy.OLDEST, 5.0, 6, CONTROLS, is_iterative=True),
}


class Repeater(Adder):
    """Wants each request as often as its value says; answers how often it had it."""

    def add(self, operation):
        told = self.of(operation)
        if not told["ready"]:
            return operation.payload
        key = told["id"]
        assert key >= FIRST_OWN or operation.sequence.id == key
        assert bool(told["start"]) == operation.sequence.starts
        if told["start"]:
            self.sums[key] = 0
        self.sums[key] += 1
        if self.sums[key] < told["x"]:
            return RunAgain(Code.MODEL_FAILED, "not yet")
        array = np.full((1, 2), self.sums[key], "<f4")
        self.sums[key] = 0
        return Tensors((Tensor("x", DataType.FP32, array.shape, array),))


class RepeaterHarness(SequenceHarness):
    make = Repeater


def bench(kind, instances=2):
    return RepeaterHarness(spec(rows=4, instances=instances, scheduling=KINDS[kind]))


@settings(max_examples=examples(40))
@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.tuples(st.integers(1, 6), st.floats(0, 0.05)), min_size=1, max_size=25),
    st.integers(0, 999),
)
def test_each_is_run_as_often_as_it_is_wanted_and_ends_once(kind, plan, seed):
    made, dice = bench(kind), random.Random(seed)
    wanted, left = {}, set()
    for runs, gap in plan:
        number = made.send(None, float(runs))
        wanted[number] = float(runs)
        made.clock.run(gap)
        if dice.random() < 0.15:
            victim = dice.choice(list(wanted))
            made.tickets[victim].cancel(LEFT)
            left.add(victim)
        if dice.random() < 0.03:
            made.adders[dice.randrange(len(made.adders))].die()
    made.clock.run(30.0)
    died = {Code.WORKER_DIED}
    for number, runs in wanted.items():
        told = made.sum(number)
        assert told == runs or (told is Code.CANCELLED and number in left) or told in died
    report = made.model.report()
    assert report.success.count + report.fail.count == len(wanted)
    assert report.rows == report.success.count
    assert made.model.debug_state().sequences.open == ()
    assert made.model.debug_state().is_at_rest
    assert sum(batch.compute_infer.count for batch in report.batches) == report.executions


def test_one_that_comes_back_lets_others_by():
    made = bench("oldest", 1)
    first = made.send(None, 50.0)
    made.clock.run(0.1)
    others = [made.send(None, 1.0) for _ in range(8)]
    made.clock.run(0.2)
    assert [made.sum(number) for number in others] == [1.0] * 8
    assert made.parts[first] == []
    made.clock.run(5)
    assert made.sum(first) == 50.0


@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_in_a_clients_sequence_waits_until_it_is_answered(kind):
    made = bench(kind, 1)
    first = made.send(7, 5.0, starts=True)
    second = made.send(7, 1.0, ends=True)
    made.clock.run(0.03)
    assert (made.parts[first], made.parts[second]) == ([], [])
    made.clock.run(5)
    assert (made.sum(first), made.sum(second)) == (5.0, 1.0)
    assert made.ended == [first, second]
    assert made.model.debug_state().sequences.open == ()
