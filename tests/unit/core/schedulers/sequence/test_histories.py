"""Many interleaved sequences with gaps, ends, drops and a killed instance, by both strategies, on the virtual
clock: every sum right, every broken sequence told so, every decision checked.
"""

import random
from functools import partial

import pytest
from tests.harness.virtual_sequences import CONTROLS, SequenceHarness, spec

from trivium.core.schedulers.sequence import scheduler as sequence
from trivium.core.schedulers.sequence.policy import decide
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.schedules import Sequence, Strategy
from trivium.types.spec import Limits

INSTANCES = 4
IDLE = 1.0
LEFT = ServeError(Code.CANCELLED, "by the test")
STRATEGIES = {
    "direct": Sequence(Strategy.DIRECT, IDLE, 1, CONTROLS),
    "direct, patient": Sequence(Strategy.DIRECT, IDLE, 1, CONTROLS, max_delay=0.02, utilization=0.5),
    "oldest": Sequence(Strategy.OLDEST, IDLE, 24, CONTROLS),
    "oldest, patient": Sequence(Strategy.OLDEST, IDLE, 24, CONTROLS, max_delay=0.02, preferred_rows=(4, 8)),
}


def watched(view, settings, now):
    """Stands in for `decide`, and checks what it decides."""
    before = {record.id: record for record in view.records()}
    waiting = {entry.item: entry for entry in view.entries()}
    places = {(t.instance, t.slot) for t in before.values() if t.instance in view.instances()}
    decision = decide(view, settings, now)
    gone = {release.sequence for release in decision.release} | set(decision.unbind)
    places -= {(before[each].instance, before[each].slot) for each in gone}
    for bind in decision.bind:
        assert (bind.instance, bind.slot) not in places
        places.add((bind.instance, bind.slot))
        assert bind.instance in view.instances()
        assert 0 <= bind.slot < settings.slots
        assert before[bind.sequence].instance == 0 or bind.sequence in gone
    bound = {bind.sequence: bind.instance for bind in decision.bind}
    assert not gone & {release.sequence for release in decision.release} & bound.keys()
    for cut in decision.cuts:
        assert cut.instance in view.free()
        ids = [entry.sequence.id for entry in cut.entries]
        assert len(set(ids)) == len(ids) <= settings.max_rows
        for entry in cut.entries:
            record = before[entry.sequence.id]
            assert bound.get(record.id, record.instance) == cut.instance
            assert not record.in_work
            first = next(
                e for e in waiting.values() if e.sequence.id == record.id and (e, 0) not in refused(decision)
            )
            assert first.item == entry.item
            assert entry.sequence.starts or (record.has_begun and record.id not in gone)
    assert len({cut.instance for cut in decision.cuts}) == len(decision.cuts)
    assert decision.wake_at is None or decision.wake_at > now
    return decision


def refused(decision):
    return [(entry, 0) for entry, _ in decision.reject]


class Client:
    """Sends one sequence after the other and waits for each answer, or sends ahead; it notes what it expects."""

    def __init__(self, bench, dice, name):
        self.bench, self.dice, self.name = bench, dice, name
        self.left = dice.randrange(1, 9)
        self.is_dropped = dice.random() < 0.1
        self.sends_ahead = dice.random() < 0.3
        self.sent = []  # number, value, starts
        self.longest_gap = 0.0

    def go_on(self):
        clock, dice = self.bench.clock, self.dice
        self.left -= 1
        value = float(dice.randrange(1, 100))
        starts = not self.sent
        number = self.bench.send(self.name, value, starts=starts, ends=not self.left and not self.is_dropped)
        self.sent.append((number, value))
        if self.left:
            gap = dice.choice([0.0, 0.001, 0.05, 0.4, 1.5 if dice.random() < 0.05 else 0.01])
            clock.call_at(clock.now() + gap, self.go_on if self.sends_ahead else self.when_answered)

    def when_answered(self):
        clock = self.bench.clock
        if self.bench.parts[self.sent[-1][0]]:
            self.go_on()
        else:
            clock.call_at(clock.now() + 0.01, self.when_answered)

    def check(self, outcomes):
        """The first error, if any; before it all sums are right, after it all are errors that say the same."""
        total, broken = 0.0, None
        for number, value in self.sent:
            (part,) = self.bench.parts[number]
            if broken is None and part.error is None:
                total += value
                assert part.payload["x"][0, 0] == total
                continue
            assert part.error is not None, f"sequence {self.name} went on after it was broken"
            assert part.error.code in (Code.WORKER_DIED, Code.INVALID)
            broken = broken or part.error.code
            is_told = part.error.reason == reasons.UNSTARTED or part.error.message.endswith("that starts it.")
            assert is_told or "by the test" in part.error.message
        outcomes[broken] = outcomes.get(broken, 0) + 1
        return broken


def check_nothing_is_left(bench):
    state = bench.model.debug_state()
    assert state.sequences.open == state.sequences.running == ()
    assert (state.active, state.queued) == (0, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_interleaved_sequences(strategy, count, monkeypatch):
    monkeypatch.setattr(sequence, "decide", watched)
    dice, span = random.Random(1), count / 50
    made = spec(
        rows=16, instances=INSTANCES, scheduling=STRATEGIES[strategy], limits=Limits(queue_items=100_000)
    )
    bench = SequenceHarness(made, lambda rows: 0.002 + 0.0005 * rows)
    clients = [Client(bench, dice, name) for name in range(1, count + 1)]
    for client in clients:
        bench.clock.call_at(dice.random() * span, client.go_on)
    victim = bench.adders[dice.randrange(INSTANCES)]
    state = {}

    def kill():
        state.update(victim.sums)
        victim.die()

    bench.clock.call_at(span / 2, kill)
    bench.clock.run()
    outcomes = {}
    for client in clients:
        broken = client.check(outcomes)
        if broken is Code.WORKER_DIED:  # they were the dead one's, or would have begun in its last batch
            assert client.name in state or client.name in victim.begun
    assert outcomes[None] > 0.8 * count
    assert outcomes[Code.WORKER_DIED] >= 1
    check_nothing_is_left(bench)
    report = bench.model.report()
    assert report.success.count + report.fail.count == len(bench.parts)
    assert report.wasted == 0


@pytest.mark.parametrize("seed", range(20))
def test_cancellations_never_break_another_sequence(seed, monkeypatch):
    """Requests cancelled at any time: whatever is answered is a sum of what that sequence was sent since its start."""
    monkeypatch.setattr(sequence, "decide", watched)
    dice = random.Random(seed)
    strategy = STRATEGIES[dice.choice(list(STRATEGIES))]
    bench = SequenceHarness(
        spec(rows=dice.choice([1, 3]), instances=2, scheduling=strategy), lambda rows: 0.05
    )
    sent = {}
    for _ in range(60):
        name, value = dice.randrange(1, 9), 2.0 ** dice.randrange(10)
        starts, ends = dice.random() < 0.4, dice.random() < 0.2
        number = bench.send(name, value, starts=starts, ends=ends)
        sent.setdefault(name, []).append((number, value))
        if dice.random() < 0.2:
            victim = dice.randrange(1, number + 1)
            bench.clock.call_at(
                bench.clock.now() + dice.random() * 0.2, partial(bench.tickets[victim].cancel, LEFT)
            )
        bench.clock.run(bench.clock.now() + dice.choice([0.0, 0.01, 0.3]))
    bench.clock.run()
    for name, requests in sent.items():
        values = 0.0
        for number, value in requests:
            values += value
            (part,) = bench.parts[number]
            if part.error is None:
                assert value <= part.payload["x"][0, 0] <= values, name
    check_nothing_is_left(bench)
