"""Instances that die: which deaths count, when a model is given up, and that nobody is left waiting then."""

import logging

import pytest
from tests.unit.core.instances.test_scaler import NO_PLACE, ScalerHarness, played

from trivium.types.errors import Code
from trivium.types.running import Dead, Part
from trivium.types.spec import InstanceGroup


class Deathbed(ScalerHarness):
    """One instance at a time, given up after `restarts`."""

    def __init__(self, restarts, group=None, deaths=None, retry_seconds=None):
        group = group or InstanceGroup("m", 1, 1)
        super().__init__(group, restarts=restarts, deaths=deaths, retry_seconds=retry_seconds)
        self.is_mute = False

    async def launch(self, placement, port):
        """While the stage is mute its instances run nothing."""
        instance = await super().launch(placement, port)
        run = instance.start
        instance.start = lambda batch: None if self.is_mute else run(batch)
        return instance

    @property
    def failures(self):
        return self.model.debug_state().failures[0]

    async def die(self, why="It was killed."):
        """The instance dies; the next one opens when its time has come."""
        self.ports["m_0"].push((Dead(why),))
        await self.turns()
        if not self.opening and not self.model.is_failed:
            await self.run(self.clock.now() + 60)
        await self.let()

    async def serve(self):
        """It answers a request."""
        before = len(self.answered)
        self.submit()
        await self.run(self.clock.now() + 1)
        assert len(self.answered) == before + 1

    async def answer_by_part(self, error=None):
        """It answers a request by a part of its own, apart from the execution that began it."""
        self.is_mute = True
        item = self.submit()
        await self.turns()
        self.ports["m_0"].push((Part(item.item, None, error),))
        await self.turns()
        self.is_mute = False
        assert self.answered[-1].final


DEATHS = {
    "the first in vain is forgiven": ("d", 0),
    "the second is not": ("dd", 1),
    "nor the third": ("ddd", 2),
    "to have served makes up for it": ("ddsd", 0),
    "and then it begins anew": ("dddsddd", 1),
    "whoever serves may die as often as it likes": ("sdsdsdsd", 0),
    "to answer by parts is to serve": ("pdpdpdpd", 0),
    "to fail by parts is not": ("fdfdfd", 2),
}


@pytest.mark.parametrize("name", DEATHS)
def test_which_deaths_count(name):
    course, failures = DEATHS[name]

    async def scene():
        stage = Deathbed(10)
        await stage.start()
        for step in course:
            if step == "d":
                await stage.die()
            elif step == "s":
                await stage.serve()
            else:
                await stage.answer_by_part(NO_PLACE if step == "f" else None)
        assert stage.failures == failures
        await stage.model.close()

    played(scene())


def test_a_model_whose_instances_die_in_vain_is_given_up():
    async def scene():
        stage = Deathbed(1)
        await stage.start()
        for _ in range(3):
            assert not stage.model.is_failed
            await stage.die()
        assert stage.model.is_failed
        stage.submit()
        error = stage.answered[-1].error
        assert error.code is Code.NOT_READY
        assert error.message == (
            "Model 'm' was given up after 1 failures in a row. It was killed. Mend it and load it again."
        )
        await stage.run(999.0)
        assert not stage.opening
        await stage.model.close()

    played(scene())


@pytest.mark.parametrize(("deaths", "course"), [(0, "d"), (0, "sd"), (1, "sdsd"), (2, "ddd"), (2, "sdsdsd")])
def test_a_model_may_be_given_up_after_so_many_deaths_whatever_is_done_between(deaths, course):
    """Sharp edge 5: with the original's own threshold one crash is enough."""

    async def scene():
        stage = Deathbed(10, deaths=deaths)
        await stage.start()
        for step in course:
            assert not stage.model.is_failed
            await (stage.die() if step == "d" else stage.serve())
        assert stage.model.is_failed
        assert f"given up after {deaths + 1} deaths" in stage.model.failure().message
        await stage.model.close()

    played(scene())


@pytest.mark.parametrize(("seconds", "course"), [(0, "dd"), (59, "ddd"), (121, "ddddd"), (121, "dddsdddddd")])
def test_a_model_may_be_given_up_by_time(seconds, course):
    """A minute passes with each death. The first one in vain is forgiven, and to serve begins a new row."""

    async def scene():
        stage = Deathbed(1, retry_seconds=seconds)
        await stage.start()
        for step in course:
            assert not stage.model.is_failed
            await (stage.die() if step == "d" else stage.serve())
        assert stage.model.is_failed
        assert (
            f"given up after {seconds} s of failures in a row. It was killed."
            in stage.model.failure().message
        )
        await stage.model.close()

    played(scene())


def test_those_who_wait_are_told_when_it_is():
    async def scene():
        stage = Deathbed(0)
        await stage.start()
        await stage.die()
        for _ in range(3):
            stage.submit()
        await stage.turns()
        stage.ports["m_0"].push((Dead("It was killed."),))
        await stage.turns()
        assert [part.error.code for part in stage.answered] == [Code.NOT_READY] * 3
        assert stage.model.is_failed
        await stage.model.idle()
        await stage.model.close()

    played(scene())


def test_openings_that_fail_count_and_one_that_serves_makes_up_for_them(caplog):
    async def scene():
        stage = Deathbed(2)
        await stage.start()
        stage.ports["m_0"].push((Dead("It was killed."),))
        await stage.turns()
        for failures in (1, 2):
            await stage.let(NO_PLACE)
            assert stage.failures == failures
            await stage.run(stage.clock.now() + 60)
        await stage.let()
        assert (stage.failures, stage.model.debug_state().can_grow) == (2, False)
        await stage.serve()
        stage.model.stale()  # the scaler looks at its instances
        assert stage.failures == 0
        stage.ports["m_0"].push((Dead("It was killed."),))
        await stage.turns()
        for _ in range(3):
            await stage.let(NO_PLACE)
            await stage.run(stage.clock.now() + 60)
        assert stage.model.is_failed
        await stage.model.close()

    with caplog.at_level(logging.CRITICAL):
        played(scene())


def test_a_fault_of_our_own_is_tried_again_later_as_well(caplog):
    async def scene():
        stage = Deathbed(10)
        await stage.start()
        stage.ports["m_0"].push((Dead("It was killed."),))
        await stage.turns()
        stage.submit()
        await stage.let(RuntimeError("odd"))
        assert not stage.opening, "not at once, and for ever"
        assert stage.failures == 1
        (part,) = stage.answered
        assert part.error.code is Code.INTERNAL
        assert part.error.message == "Opening m_0 failed: RuntimeError: odd"
        await stage.run(1.0)
        assert await stage.let() == ["m_0"]
        await stage.serve()
        await stage.model.close()

    with caplog.at_level(logging.CRITICAL):
        played(scene())


def test_a_group_that_is_given_up_leaves_the_others_at_work():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 1, 1), InstanceGroup("n", 1, 1), restarts=0)
        await stage.start()
        stage.ports["m_0"].push((Dead("It was killed."),))
        await stage.turns()
        assert await stage.let() == ["m_0"], "the first death in vain is forgiven"
        stage.ports["m_0"].push((Dead("It was killed."),))
        await stage.run(stage.clock.now() + 60)
        assert stage.model.debug_state().failures == (1, 0)
        assert not stage.opening
        assert not stage.model.is_failed
        stage.submit()
        await stage.run(stage.clock.now() + 1)
        assert [part.error for part in stage.answered] == [None]
        await stage.model.close()

    played(scene())
