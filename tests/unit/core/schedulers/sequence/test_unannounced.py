"""Sequences that nobody announces, on the virtual clock: ids that are invented, bounds, ends by each side, overlap."""

import random

import pytest
from tests.harness.virtual_sequences import LEFT, SequenceHarness, infer, spec

from trivium.core.schedulers.sequence.unannounced import place_of
from trivium.types.errors import Code
from trivium.types.operations import DESCRIBE, Infer, SequenceRef
from trivium.types.payload import Raw
from trivium.types.running import Begun, Credit, Dead, Executed, Part
from trivium.types.schedules import Sequence, SequenceProperties, Strategy, Unannounced

NAMES = SequenceProperties("seq-id", "seq-start", "seq-end")


def rules(most=3, most_waiting=1, **fields):
    return Unannounced(NAMES, "own-", most, most_waiting, **fields)


def scheduling(overlaps=False, idle_seconds=1.0, max_delay=0.0, **fields):
    return Sequence(
        Strategy.OLDEST,
        idle_seconds,
        100,
        max_delay=max_delay,
        unannounced=rules(**fields),
        overlaps=overlaps,
    )


class Noter:
    """Notes which sequences it runs, and answers what `ends` says of the value that it was sent."""

    running_since = None
    in_flight = 0

    def __init__(self, bench, port):
        self.bench, self.port, self.ran, self.is_dead, self.free_at = bench, port, [], False, 0.0

    def start(self, batch):
        clock = self.bench.clock
        began = max(clock.now(), self.free_at)
        self.free_at = began + 0.01
        self.ran.append([operation.sequence.id for operation in batch.operations])
        clock.call_at(self.free_at, lambda: None if self.is_dead else self.finish(batch, began))
        self.port.push((Begun(tuple(batch.items)),))

    def finish(self, batch, began):
        now = self.bench.clock.now()
        answers = [self.answer(operation) for operation in batch.operations]
        self.port.push((Executed(batch.items, answers, began, began, now, now), Credit(1)))

    def answer(self, operation):
        value = operation.payload.items[0].array.ravel()[0].item()
        ends = self.bench.ends.get(value)
        return Raw((), {} if ends is None else {"Seq-End": ends})

    def cancel(self, item):
        pass

    def close(self):
        pass

    def die(self):
        self.is_dead = True
        self.port.push((Dead("It was killed, by the test."),))


class SteppingNoter(Noter):
    in_flight = 3

    def start(self, batch):
        self.ran.append([operation.sequence.id for operation in batch.operations])
        self.port.push((Begun(tuple(batch.items)),))
        for item, operation in zip(batch.items, batch.operations, strict=True):
            self.bench.clock.call_at(self.bench.clock.now() + 1.0, self.finisher(item, operation))

    def finisher(self, item, operation):
        return lambda: self.port.push((Part(item, self.answer(operation)), Credit(1)))


class Bench(SequenceHarness):
    make = Noter
    ends = {}  # noqa: RUF012 - a test's own, where it has any

    def codes(self):
        return [parts[0].error.code if parts[0].error else None for parts in self.parts.values()]


class SteppingBench(Bench):
    make = SteppingNoter


def test_a_sequence_begins_with_any_request_and_stays_where_it_began():
    bench = Bench(spec(rows=1, instances=2, scheduling=scheduling(most_waiting=9)))
    for _ in range(3):
        bench.send("a")
        bench.send("b")
    bench.clock.run(0.5)
    assert sorted(noter.ran for noter in bench.adders) == [[["a"]] * 3, [["b"]] * 3]
    assert set(bench.codes()) == {None}


def test_a_request_without_an_id_gets_one_of_its_own():
    bench = Bench(spec(rows=1, scheduling=scheduling()))
    bench.send(None)
    bench.send(None)
    bench.clock.run(0.5)
    ((first,), (second,)) = bench.adders[0].ran
    assert first != second
    assert first.startswith("own-")
    assert bench.model.debug_state().sequences.open == (first, second)


@pytest.mark.parametrize(
    ("ref", "properties", "expected"),
    [
        (None, {"seq-id": "s"}, SequenceRef("s")),
        (None, {"Seq-ID": "s", "SEQ-START": "True", "seq-end": " true"}, SequenceRef("s", True, True)),
        (None, {"seq-id": "s", "seq-start": "1", "seq-end": "false"}, SequenceRef("s")),
        (SequenceRef(7, False, True), {"seq-id": "s"}, SequenceRef("7", False, True)),
    ],
)
def test_the_wire_or_a_property_names_the_sequence(ref, properties, expected):
    assert place_of(Infer("m", Raw((), properties), sequence=ref), rules()) == expected


@pytest.mark.parametrize("properties", [{}, {"seq-id": ""}, {"seq-end": "true"}])
def test_who_names_none_gets_a_new_one(properties):
    ref = place_of(Infer("m", Raw((), properties)), rules())
    assert (ref.id[:4], ref.starts, ref.ends) == ("own-", True, "seq-end" in properties)
    assert place_of(Infer("m", Raw((), properties), method=DESCRIBE), rules()).ends


def test_no_more_sequences_are_open_than_may_be_until_one_ends():
    bench = Bench(spec(rows=1, scheduling=scheduling(most=2)))
    for name in "abc":
        bench.send(name)
    bench.submit(infer(None, method=DESCRIBE))
    bench.clock.run(0.1)
    assert bench.codes() == [None, None, Code.QUEUE_FULL, None]
    assert "2 are open, as many as may be" in bench.error(3).message
    bench.send("a", ends=True)
    bench.send("c")  # a is not over before its last request has run
    bench.clock.run(0.2)
    bench.send("c")
    bench.clock.run(0.3)
    assert bench.codes()[4:] == [None, Code.QUEUE_FULL, None]
    assert bench.model.debug_state().sequences.open == ("b", "c")


def test_no_more_requests_of_a_sequence_wait_than_may():
    bench = Bench(spec(rows=1, scheduling=scheduling(most_waiting=2)))
    for _ in range(4):
        bench.send("a")
    bench.send("b")
    bench.clock.run(0.5)
    assert bench.codes() == [None, None, None, Code.QUEUE_FULL, None]
    assert "2 requests wait" not in bench.error(4).message  # one of the three will run at once
    assert "sequence 'a' of model 'm'" in bench.error(4).message


def test_an_idle_sequence_is_over_and_begins_anew():
    bench = Bench(spec(rows=1, scheduling=scheduling(most=1)))
    bench.send("a")
    bench.clock.run(0.9)
    bench.send("b")
    bench.clock.run(1.05)
    bench.send("b")
    bench.send("a")
    bench.clock.run(1.2)
    assert bench.codes() == [None, Code.QUEUE_FULL, None, Code.QUEUE_FULL]
    bench.clock.run(3)
    assert bench.model.debug_state().sequences.open == ()
    bench.send("a")
    bench.clock.run(3.5)
    assert bench.codes()[-1] is None


def test_a_sequence_is_over_at_its_age_however_busy_it_is():
    bench = Bench(spec(rows=1, scheduling=scheduling(idle_seconds=1.0, life_seconds=2.5)))
    for i in range(5):
        bench.clock.run(i * 0.6)
        bench.send("a")
    bench.clock.run(2.45)
    assert bench.model.debug_state().sequences.open == ("a",)
    bench.clock.run(2.55)
    assert bench.model.debug_state().sequences.open == ()


def test_who_runs_it_says_which_sequences_are_over():
    bench = Bench(spec(rows=1, scheduling=scheduling()))
    bench.ends = {5.0: "a; b;nobody"}
    for name in "ab":
        bench.send(name)
    bench.clock.run(0.1)
    bench.send("a", 5.0)
    bench.send("b")  # it waits meanwhile: it begins b anew
    bench.clock.run(0.2)
    assert bench.codes() == [None] * 4
    assert bench.model.debug_state().sequences.open == ("b",)


def test_a_lost_instance_takes_what_it_ran_and_the_rest_begins_anew():
    bench = Bench(spec(rows=1, scheduling=scheduling(most_waiting=5)))
    bench.send("a")
    bench.clock.run(0.1)
    bench.send("a")
    bench.send("a")
    bench.clock.run(0.105)
    bench.adders[0].die()
    bench.clock.run(0.5)
    bench.send("a")
    bench.clock.run(0.6)
    assert bench.codes() == [None, Code.WORKER_DIED, None, None]
    assert bench.adders[1].ran == [["a"], ["a"]]


def test_a_client_that_leaves_before_the_first_request_ran_leaves_nothing():
    bench = Bench(spec(rows=1, scheduling=scheduling(most=2)))
    bench.send("a")
    bench.send("b")
    bench.tickets[2].cancel(LEFT)
    bench.clock.run(0.1)
    assert bench.model.debug_state().sequences.open == ("a",)


def test_a_batch_has_one_request_of_a_sequence_and_waits_for_others():
    bench = Bench(spec(rows=2, scheduling=scheduling(max_delay=0.1, most_waiting=5)))
    bench.send("a")
    bench.send("a")
    bench.clock.run(0.05)
    assert bench.adders[0].ran == []
    bench.send("b")
    bench.clock.run(1.0)
    assert bench.adders[0].ran == [["a", "b"], ["a"]]


def test_one_that_runs_alone_shares_no_batch_and_waits_for_nobody():
    bench = Bench(spec(rows=3, scheduling=scheduling(max_delay=0.1, most_waiting=5)))
    for name in "abc":
        bench.send(name, alone=name == "b")
    bench.clock.run(0.05)
    assert bench.adders[0].ran == [["a"], ["b"]]
    bench.clock.run(1.0)
    assert bench.adders[0].ran == [["a"], ["b"], ["c"]]


def test_requests_that_overlap_are_handed_over_in_order_as_far_as_there_is_room():
    bench = SteppingBench(spec(rows=0, instances=2, scheduling=scheduling(overlaps=True, most_waiting=9)))
    for name in "aaaab":
        bench.send(name, rows=0)
    bench.clock.run(0.5)
    assert sorted(noter.ran for noter in bench.adders) == [[["a"]] * 3, [["b"]]]
    bench.clock.run(1.5)
    assert sorted(noter.ran for noter in bench.adders) == [[["a"]] * 4, [["b"]]]
    assert sorted(bench.ended) == [1, 2, 3, 5]


def test_of_requests_that_overlap_the_last_one_ends_their_sequence():
    bench = SteppingBench(spec(rows=0, scheduling=scheduling(overlaps=True, most_waiting=9)))
    for ends in (False, True, False):
        bench.send("a", rows=0, ends=ends)
    bench.clock.run(0.5)
    assert len(bench.adders[0].ran) == 2  # the third one begins it anew
    bench.clock.run(1.1)
    assert len(bench.adders[0].ran) == 3
    assert bench.model.debug_state().sequences.open == ("a",)


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_each_request_ends_once_and_sequences_keep_their_order(seed, overlaps):
    """Clients of a few names send, leave and end, and instances die: between two losses a sequence has one instance."""
    dice = random.Random(seed)
    make = SteppingBench if overlaps else Bench
    bench = make(
        spec(
            rows=0 if overlaps else 3,
            instances=3,
            scheduling=scheduling(
                overlaps, 0.3, 0.0 if overlaps else 0.005, most=5, most_waiting=3, life_seconds=2.0
            ),
        )
    )
    bench.ends = {9.0: "a;b"}
    sent = []
    for _ in range(300):
        bench.clock.run(bench.clock.now() + dice.choice([0.0, 0.001, 0.02, 0.1]))
        what = dice.random()
        if what < 0.04:
            alive = [noter for noter in bench.adders if not noter.is_dead]
            dice.choice(alive).die()
        elif what < 0.12 and sent:
            bench.tickets[dice.choice(sent)].cancel(LEFT)
        else:
            name = dice.choice(["a", "b", "c", "d", "e", "f", "g", None])
            value = dice.choice([1.0, 1.0, 1.0, 9.0])
            rows = 0 if overlaps else 1
            sent.append(bench.send(name, value, ends=dice.random() < 0.1, rows=rows))
    bench.clock.run(bench.clock.now() + 30)
    assert sorted(bench.ended) == sent
    assert all(len([part for part in bench.parts[number] if part.final]) == 1 for number in sent)
    assert bench.model.debug_state().sequences.open == ()
    assert bench.model.debug_state().active == bench.model.debug_state().queued == 0
    assert {code for code in bench.codes() if code} <= {Code.QUEUE_FULL, Code.WORKER_DIED, Code.CANCELLED}
    if not overlaps:
        ran = [batch for noter in bench.adders for batch in noter.ran]
        assert all(len(set(batch)) == len(batch) for batch in ran)
        assert any(len(batch) > 1 for batch in ran)
