"""Ten thousand random histories through the core on a virtual clock, every decision checked.

Arrivals of several priorities, shapes and sizes, expiry, demotion and cancellation, with two instances.
"""

import asyncio
import random

import pytest
from tests.harness.virtual_models import VirtualModelHarness, make_infer, make_spec

from trivium.core.schedulers import dynamic
from trivium.core.schedulers.policy import decide
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Batching, Dynamic, InstanceGroup, OnExpiry, QueuePolicy

HISTORIES = 10_000
PARTS = 40
CANCELLED = ServeError(Code.CANCELLED, "by the test")


class Watch:
    """Stands in for `decide`, checks what it decides, and notes what was started in which order."""

    def __init__(self):
        self.started, self.demoted = [], set()

    def __call__(self, view, settings, now):
        waiting = [entry.item for entry in view.entries()]
        decision = decide(view, settings, now)
        cut = [entry for cut in decision.cuts for entry in cut.entries]
        refused = [entry for entry, _ in decision.reject]
        named = [entry.item for entry in cut + refused]
        assert len(named) == len(set(named))
        assert set(named) <= set(waiting)
        free = list(view.free())
        for one in decision.cuts:
            free.remove(one.instance)
            assert len({entry.shape_key for entry in one.entries}) == 1
            rows = sum(entry.rows for entry in one.entries)
            assert len(one.entries) == 1 or (settings.merge and rows <= settings.max_rows)
            assert len(one.entries) == 1 or not any(entry.operation.alone for entry in one.entries)
        left = len(waiting) - len(named)
        first = next((entry for entry in view.entries() if entry.item not in named), None)
        assert first is None or not first.operation.alone or not free
        assert decision.wake_at is None or decision.wake_at > now
        assert decision.wake_at is not None or not left or not free
        for entry in [*refused, *decision.demote]:
            assert entry.queue_deadline <= now
        self.demoted.update(entry.item for entry in decision.demote)
        self.started.extend(cut)
        return decision


def random_spec(dice):
    merge = dice.random() < 0.7
    policies = {
        level: QueuePolicy(
            dice.choice(list(OnExpiry)),
            dice.choice([None, 0.3, 2.0]),
            dice.random() < 0.5,
            dice.choice([None, None, 4]),
        )
        for level in (1, 2)
    }
    rules = Dynamic(
        max_delay=dice.choice([0.0, 0.0, 0.5]),
        preferred_rows=dice.choice([(), (2,), (2, 3)]),
        levels=3,
        default_level=2,
        level_policies=policies,
    )
    group = InstanceGroup("m", 2, 2)
    return make_spec(Batching(True, dice.choice([1, 4]), merge), rules, groups=(group,))


def live(dice, run):
    """One history; returns its bench and the tickets of what was submitted."""
    bench = VirtualModelHarness(random_spec(dice), lambda rows: 0.2 + 0.1 * rows, run)
    tickets = []
    for _ in range(dice.randrange(3, 14)):
        rows = dice.choice([1, 1, 1, 2, bench.model.spec.batching.max_rows])
        wish = dice.choice([None, None, 0.1])
        infer = make_infer(
            min(rows, bench.model.spec.batching.max_rows),
            priority=dice.randrange(4),
            queue_timeout=wish,
            alone=dice.random() < 0.1,
        )
        tickets.append(bench.submit(infer))
        if dice.random() < 0.2:
            dice.choice(tickets).cancel(CANCELLED)
        if dice.random() < 0.5:
            bench.clock.run(bench.clock.now() + dice.choice([0.0, 0.05, 0.4]))
    bench.clock.run()
    return bench, tickets


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))]
)
def test_nothing_is_lost_nothing_comes_twice_and_order_is_kept(part, monkeypatch):
    with asyncio.Runner() as runner:
        check_histories(part, monkeypatch, runner.run)


def check_histories(part, monkeypatch, run):
    for seed in range(part * HISTORIES // PARTS, (part + 1) * HISTORIES // PARTS):
        watch = Watch()
        monkeypatch.setattr(dynamic, "decide", watch)
        bench, tickets = live(random.Random(seed), run)
        for number, parts in bench.parts.items():
            assert len(parts) == 1, f"seed {seed}: item {number} got {len(parts)} parts"
            assert parts[0].final
        started = [entry.item for entry in watch.started]
        assert len(started) == len(set(started)), f"seed {seed}: started twice"
        for level in (1, 2, 3):
            order = [e.item for e in watch.started if e.level == level and e.item not in watch.demoted]
            assert order == sorted(order), f"seed {seed}: level {level} out of order"
        answered = {n for n, parts in bench.parts.items() if parts[0].error is None}
        assert answered <= set(started)
        report = bench.model.report()
        assert report.success.count == len(answered)
        assert report.success.count + report.fail.count == len(tickets)
        assert report.queued_items == 0
