"""The run deadline: what the policy says of a run, and what becomes of an instance whose run never ends."""

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.harness.virtual_models import make_infer, make_spec

from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.run_watch import GRACE, RunVerdict, RunView, judge_run
from trivium.core.instances.scaler import MOST_LOST
from trivium.core.models.served_model import ServedModel
from trivium.core.request import Item
from trivium.load.simulate import VirtualClock, VirtualInstance
from trivium.types.errors import Code
from trivium.types.spec import InstanceGroup, Isolation, Limits
from trivium.types.state import ItemState

WAIT, INTERRUPT, ABANDON = RunVerdict.WAIT, RunVerdict.INTERRUPT, RunVerdict.ABANDON

CASES = {
    "within its time": (RunView(10.0), 12.0, (WAIT, 15.0)),
    "at its deadline": (RunView(10.0), 15.0, (INTERRUPT, 15.0 + GRACE)),
    "seen late": (RunView(10.0), 99.0, (INTERRUPT, 99.0 + GRACE)),
    "interrupted": (RunView(10.0, 15.0), 16.0, (WAIT, 15.0 + GRACE)),
    "interrupted in vain": (RunView(10.0, 15.0), 15.0 + GRACE, (ABANDON, 15.0 + GRACE)),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name):
    view, now, said = CASES[name]
    assert judge_run(view, 5.0, now) == said


class Hung(VirtualInstance):
    """Never ends a run; keeps what it was asked."""

    def __init__(self, clock, port):
        super().__init__(clock, port, lambda rows: 1e9)
        self.interrupts = self.abandoned = 0

    def interrupt(self, why):
        self.interrupts += 1
        return super().interrupt(why)

    def abandon(self, why):
        self.abandoned += 1
        super().abandon(why)


class Stage:
    """A model with a run deadline of 2 s: its first `hung` instances hang, later ones take 1 s."""

    def __init__(self, hung):
        self.clock, self.hung, self.later, self.parts = VirtualClock(), [], 0, {}
        self._most = hung
        spec = make_spec(groups=(InstanceGroup("m", 1, 1),), limits=Limits(run_deadline=2.0, restarts=3))
        self.model = ServedModel(
            spec, Isolation.THREAD, self._launch, Mailbox(self.clock.call_soon), self.clock
        )

    async def _launch(self, placement, port):
        if len(self.hung) < self._most:
            self.hung.append(Hung(self.clock, port))
            return self.hung[-1]
        self.later += 1
        return VirtualInstance(self.clock, port, lambda rows: 1.0)

    def submit(self):
        number = len(self.parts) + 1
        self.parts[number] = []
        self.model.submit(number, make_infer(), self.parts[number].append)

    async def until(self, when):
        """Time passes, and instances open."""
        while self.clock.now() < when:
            self.clock.run(min(self.clock.now() + 0.5, when))
            for _ in range(6):
                await asyncio.sleep(0)

    def codes(self):
        return [
            parts[-1].error and parts[-1].error.code if parts else "waits" for parts in self.parts.values()
        ]


def staged(hung, play):
    async def scene():
        stage = Stage(hung)
        await stage.model.open()
        await play(stage)
        assert stage.model.debug_state().active == 0
        await stage.model.close()

    asyncio.run(scene())


def test_who_waits_behind_a_run_that_hangs_is_served_by_the_successor():
    async def play(stage):
        stage.submit()
        stage.submit()
        await stage.until(1.9)
        assert stage.codes() == ["waits", "waits"]
        await stage.until(2.5)
        assert stage.codes() == [Code.EXPIRED, "waits"]
        assert "the model's run deadline of 2 s" in stage.parts[1][0].error.message
        await stage.until(2 + GRACE + 3)
        assert stage.codes() == [Code.EXPIRED, None]
        assert (stage.hung[0].interrupts, stage.hung[0].abandoned, stage.later) == (1, 1, 1)
        assert stage.model.obstacle() == ""

    staged(1, play)


TENTHS = st.integers(0, 200).map(lambda tenths: tenths / 10)


@given(st.lists(TENTHS, min_size=1, max_size=8), st.integers(5, 100).map(lambda tenths: tenths / 10))
@example([0.0, 2.5], 2.0)
@settings(deadline=None, max_examples=60)
def test_every_run_is_ended_at_its_own_deadline_whatever_graces_there_are(begins, limit):
    """Each begins on an instance of its own, some while an earlier one has its time of grace."""
    ended = {}

    async def scene():
        clock = VirtualClock()
        groups = (InstanceGroup("m", len(begins), len(begins)),)
        spec = make_spec(groups=groups, limits=Limits(run_deadline=limit))

        async def launch(placement, port):
            return Hung(clock, port)

        model = ServedModel(spec, Isolation.THREAD, launch, Mailbox(clock.call_soon), clock)
        await model.open()
        for number, begin in enumerate(sorted(begins), 1):
            clock.run(begin)
            model.submit(
                number,
                make_infer(),
                lambda part, number=number, begin=begin: ended.update({number: clock.now() - begin}),
            )
        clock.run(max(begins) + limit)
        await model.close()

    asyncio.run(scene())
    assert ended == pytest.approx(dict.fromkeys(range(1, len(begins) + 1), limit))


def test_after_so_many_the_version_fails_with_the_reason():
    async def play(stage):
        for _ in range(MOST_LOST + 1):
            stage.submit()
        await stage.until((MOST_LOST + 1) * (2 + GRACE + 2))
        assert len(stage.hung) == MOST_LOST + 1
        assert set(stage.codes()) == {Code.EXPIRED}
        assert "was given up after 3 runs that did not end" in stage.model.obstacle()
        assert "Instance m_0 was given up" in stage.model.obstacle()
        stage.submit()
        assert stage.codes()[-1] is Code.NOT_READY

    staged(99, play)


def test_runs_in_time_are_left_alone_and_nothing_is_left_to_wake():
    async def play(stage):
        for _ in range(5):
            stage.submit()
        await stage.until(20.0)
        assert stage.codes() == [None] * 5
        stage.clock.run()  # ends only if no timer goes on by itself

    staged(0, play)


@pytest.mark.parametrize("number", [1, 0, -1])
def test_a_requests_own_deadline_counts_from_receipt(number):
    class Owner:
        ended = None

        def cancel(self, item, why):
            item.state, self.ended = ItemState.ENDED, why

    clock, owner = VirtualClock(), Owner()
    clock.run(10.0)
    item = Item(1, make_infer(), lambda part: None, clock.now(), owner)
    item.keep_deadline(float(number), clock)
    assert owner.ended is None
    clock.run(10.0 + max(number - 0.1, 0))
    assert (owner.ended is None) == (number > 0)
    clock.run(11.1)
    assert owner.ended.code is Code.EXPIRED
    assert owner.ended.message == f"The request to model 'm' ran out of time: its deadline of {number} s."
