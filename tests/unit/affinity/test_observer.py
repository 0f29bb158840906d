"""Who is put where, on a machine that only writes down what it is told."""

import os

import pytest
from tests.harness.virtual_models import VirtualClock

from trivium.affinity.observer import LOOK_SECONDS, AffinityObserver
from trivium.affinity.policy import FIRST_PAUSE, LONGEST_PAUSE
from trivium.affinity.processors import ThreadPlace, ticks_by_processor

ALL = frozenset({0, 1, 2})
HOME = ThreadPlace(ALL, os.SCHED_OTHER)
LOOP, BRIEF, OTHER, STRAY = 1, 2, 3, 4
WORKER, HELPER, SISTER = 5, 6, 7
APART = (WORKER, HELPER, SISTER)  # processes of their own
SHARED = 1  # the processor on which the loop happens to be
BESIDE_LOOP = ThreadPlace(frozenset({SHARED}), os.SCHED_BATCH)


class Machine:
    """Places by thread. Every thread belongs to one process."""

    def __init__(self, *threads):
        self.places = dict.fromkeys((LOOP, *threads), HOME)
        self.busy = dict.fromkeys(ALL, 0)
        self.every = 0
        self.refusal = None
        self.families = {}  # processes, each of one thread, by the thread that started them

    def here(self):
        return SHARED

    def place(self, thread):
        return self.places.get(thread)

    def put(self, thread, place):
        if self.refusal is not None and place.processors != ALL:
            raise self.refusal
        if thread in self.places:
            self.places[thread] = place

    def threads(self, thread):
        return [thread] if thread in APART else [one for one in self.places if one not in APART]

    def children(self, thread):
        return self.families.get(thread, [])

    def ticks(self):
        return {number: (busy, self.every) for number, busy in self.busy.items()}

    def pass_a_second(self, *shares):
        self.every += 100
        for number, share in enumerate(shares):
            self.busy[number] += int(share * 100)


class Brief:
    def __init__(self, *threads):
        self.ids = set(threads)

    def threads(self):
        return self.ids


class Clock(VirtualClock):
    """Counts how often a later call was asked for."""

    asked = 0

    def call_at(self, when, callback):
        self.asked += 1
        return super().call_at(when, callback)


class AffinityHarness:
    """An observer whose loop's thread is LOOP."""

    def __init__(self, monkeypatch, *threads):
        monkeypatch.setattr("threading.get_native_id", lambda: LOOP)
        self.machine, self.clock = Machine(*threads), Clock()
        self.observer = AffinityObserver(self.clock, self.machine)

    def run(self, seconds, *who, rate=1000, mean=0.00001):
        """So many hand-overs a second of each, of runs that take so long in the mean."""
        for _ in range(round(seconds / LOOK_SECONDS)):
            for one in who:
                for _ in range(round(rate * LOOK_SECONDS)):
                    self.observer.ran(one, mean)
            self.clock.run(self.clock.now() + LOOK_SECONDS * 1.0001)

    def places(self, *threads):
        return [self.machine.places[thread] for thread in threads]


def test_shares_while_there_are_brief_runs(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF, OTHER)
    stage.run(0.2, Brief(BRIEF))
    assert stage.places(LOOP, BRIEF, OTHER) == [ThreadPlace({SHARED}, os.SCHED_OTHER), BESIDE_LOOP, HOME]
    stage.run(0.2)
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]
    asked = stage.clock.asked
    stage.run(1.0)
    assert stage.clock.asked == asked, "nobody looks while nothing runs"


def test_few_runs_are_left_where_they_are(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(1.0, Brief(BRIEF), rate=40)
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]


def test_shares_with_those_alone_whose_runs_are_brief_now(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF, OTHER)
    stage.run(0.1, Brief(BRIEF))
    stage.run(0.1, Brief(OTHER))
    assert stage.places(BRIEF, OTHER) == [HOME, BESIDE_LOOP]


def test_longer_runs_stay_where_they_are(monkeypatch):
    """Beside a run of milliseconds the loop has time for other requests."""
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(5.0, Brief(BRIEF), rate=120, mean=0.007)
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]
    assert stage.clock.asked == 0, "nobody looks because of them"


def test_nothing_is_shared_while_an_instance_is_opened(monkeypatch):
    """A thread, or a process, is born with the place of whoever starts it."""
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(0.1, Brief(BRIEF))
    with stage.observer.opening():
        assert stage.places(LOOP, BRIEF) == [HOME, HOME]
        stage.run(0.5, Brief(BRIEF))
        assert stage.places(LOOP, BRIEF) == [HOME, HOME]
    stage.run(0.1, Brief(BRIEF))
    assert stage.places(BRIEF) == [BESIDE_LOOP]


def test_threads_born_on_the_shared_processor_are_let_go(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(0.2, Brief(BRIEF))
    stage.machine.places[STRAY] = BESIDE_LOOP
    stage.machine.pass_a_second(0.1, 0.5, 0.1)
    stage.run(1.1, Brief(BRIEF))
    assert stage.places(STRAY, BRIEF) == [HOME, BESIDE_LOOP]


def test_processes_that_a_handler_starts_meanwhile_are_let_go(monkeypatch):
    """Its own, not those of the server: they were started while nothing was shared."""
    stage = AffinityHarness(monkeypatch, WORKER)
    one = Brief(WORKER)
    stage.run(0.2, one)
    stage.machine.places[HELPER] = stage.machine.places[SISTER] = BESIDE_LOOP
    stage.machine.families = {WORKER: [HELPER], LOOP: [WORKER, SISTER]}
    stage.machine.pass_a_second(0.1, 0.5, 0.1)
    stage.run(2.0, one)
    assert stage.places(WORKER, HELPER, SISTER) == [BESIDE_LOOP, HOME, BESIDE_LOOP]


def test_one_that_somebody_has_placed_stays_there(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF, OTHER)
    placed = stage.machine.places[OTHER] = ThreadPlace(frozenset({2}), os.SCHED_OTHER)
    stage.run(0.2, Brief(BRIEF, OTHER))
    assert stage.places(BRIEF, OTHER) == [BESIDE_LOOP, placed]


def test_one_that_somebody_moves_meanwhile_stays_there(monkeypatch):
    """A handler may choose its processors at its first request."""
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(0.2, Brief(BRIEF))
    stage.machine.places[BRIEF] = ThreadPlace(frozenset({0, 2}), os.SCHED_BATCH)
    stage.run(0.2, Brief(BRIEF))
    stage.run(0.2)
    assert stage.places(LOOP, BRIEF) == [HOME, ThreadPlace(frozenset({0, 2}), os.SCHED_OTHER)]


def test_a_policy_that_somebody_has_chosen_stays(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.machine.places[BRIEF] = ThreadPlace(ALL, os.SCHED_IDLE)
    stage.run(0.2, Brief(BRIEF))
    assert stage.places(BRIEF) == [ThreadPlace(frozenset({SHARED}), os.SCHED_IDLE)]


def test_a_full_processor_beside_an_idle_one_is_not_shared(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(0.2, Brief(BRIEF))
    stage.machine.pass_a_second(0.5, 1.0, 0.02)
    stage.run(1.0, Brief(BRIEF))
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]
    stage.run(FIRST_PAUSE - 0.2, Brief(BRIEF))
    assert stage.places(BRIEF) == [HOME], "not before the pause is over"
    stage.run(0.5, Brief(BRIEF))
    assert stage.places(BRIEF) == [BESIDE_LOOP]


def test_a_full_processor_is_shared_where_none_is_idle(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(0.2, Brief(BRIEF))
    stage.machine.pass_a_second(0.5, 1.0, 0.6)
    stage.run(1.2, Brief(BRIEF))
    assert stage.places(BRIEF) == [BESIDE_LOOP]


def test_one_processor_is_nothing_to_share(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF)
    only = stage.machine.places[LOOP] = stage.machine.places[BRIEF] = ThreadPlace({SHARED}, os.SCHED_OTHER)
    stage.run(0.5, Brief(BRIEF))
    assert stage.places(LOOP, BRIEF) == [only, only]


def test_a_thread_that_is_gone_is_nobodys_loss(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF, OTHER)
    stage.run(0.2, Brief(BRIEF, OTHER))
    del stage.machine.places[OTHER]
    stage.run(0.2, Brief(BRIEF, OTHER))
    stage.run(0.2)
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]


@pytest.mark.parametrize("refusal", [PermissionError(1, "no"), OSError(22, "not there")])
def test_a_system_that_refuses_is_left_alone_for_a_while(monkeypatch, refusal):
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.machine.refusal = refusal
    stage.run(0.3, Brief(BRIEF))
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]
    stage.machine.refusal = None
    stage.run(0.5, Brief(BRIEF))
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]
    stage.run(LONGEST_PAUSE, Brief(BRIEF), rate=200)
    assert stage.places(BRIEF) == [BESIDE_LOOP]


def test_what_a_process_may_use_has_changed_meanwhile(monkeypatch):
    """The place that a thread had is none any more: it may use whatever there is."""
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(0.2, Brief(BRIEF))
    put, machine = stage.machine.put, stage.machine

    def refuse_old(thread, place):
        if place == HOME:
            raise OSError(22, "Invalid argument")
        put(thread, place)

    monkeypatch.setattr(machine, "put", refuse_old)
    stage.run(0.2)
    everywhere = frozenset(range(os.cpu_count()))
    assert [place.processors for place in stage.places(LOOP, BRIEF)] == [everywhere, everywhere]


def test_closed_it_leaves_everything_as_it_was(monkeypatch):
    stage = AffinityHarness(monkeypatch, BRIEF)
    stage.run(0.2, Brief(BRIEF))
    stage.observer.close()
    asked = stage.clock.asked
    stage.run(0.5, Brief(BRIEF))
    assert stage.places(LOOP, BRIEF) == [HOME, HOME]
    assert stage.clock.asked == asked


def test_ticks_of_each_processor():
    stat = "cpu  100 0 10 50 5 0 0 0 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 10 0 0 80 10 0 0 0 0 0\nintr 1 2\n"
    assert ticks_by_processor(stat) == {0: (27, 36), 12: (10, 100)}
