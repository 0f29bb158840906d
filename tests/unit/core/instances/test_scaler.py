"""Instances come and go as the policy says: an elastic model on a virtual clock."""

import asyncio
import itertools
import logging
from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_infer, make_spec

from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.model_context import PLAIN
from trivium.core.models.served_model import ServedModel
from trivium.load.simulate import VirtualClock, VirtualInstance
from trivium.types.errors import Code, ServeError
from trivium.types.running import Dead
from trivium.types.spec import Device, InstanceGroup, Isolation, Limits

NO_PLACE = ServeError(Code.LOAD_FAILED, "no memory")


class ScalerHarness:
    """One model; every opening waits until `let` says how it goes."""

    def __init__(
        self, *groups, restarts=10, deaths=None, retry_seconds=None, recorder=None, is_patient=False
    ):
        self.clock = VirtualClock()
        self.opening, self.open, self.ports, self.answered = [], [], {}, []
        self.numbers = itertools.count(1)
        mailbox = Mailbox(self.clock.call_soon)
        spec = make_spec(
            groups=groups, limits=Limits(restarts=restarts, deaths=deaths, retry_seconds=retry_seconds)
        )
        context = replace(PLAIN, recorder=recorder, is_patient=lambda: is_patient)
        self.model = ServedModel(spec, Isolation.THREAD, self.launch, mailbox, self.clock, context)

    async def launch(self, placement, port):
        answer = asyncio.get_running_loop().create_future()
        self.opening.append((placement, answer))
        await answer
        instance = VirtualInstance(self.clock, port, lambda rows: 1.0)
        instance.close = lambda: self.open.remove(placement.name)
        self.open.append(placement.name)
        self.ports[placement.name] = port
        return instance

    async def let(self, error=None):
        """Every opening succeeds, or fails with `error`; returns their names."""
        opening, self.opening = self.opening, []
        for _, answer in opening:
            answer.set_exception(error) if error else answer.set_result(None)
        await self.turns()
        return [placement.name for placement, _ in opening]

    async def turns(self):
        for _ in range(6):
            self.clock.run(self.clock.now())
            await asyncio.sleep(0)

    async def run(self, until):
        self.clock.run(until)
        await self.turns()

    def submit(self):
        return self.model.submit(next(self.numbers), make_infer(), self.answered.append)

    async def start(self):
        task = asyncio.ensure_future(self.model.open())
        await self.turns()
        names = await self.let()
        await task
        return names


class Replacements:
    """A recorder of what is replaced: the numbers of instances, and in how many seconds."""

    def __init__(self):
        self.heard = []

    def replacing(self, instance, seconds):
        self.heard.append((instance.number, round(seconds, 6)))


def played(scene):
    asyncio.run(scene)


def test_groups_open_their_minimum_where_they_belong():
    async def scene():
        gpu = InstanceGroup("gpu", 3, 3, device=Device.GPU, device_ids=(4, 7), isolation=Isolation.INLINE)
        stage = ScalerHarness(InstanceGroup("cpu", 1, 1), gpu)
        task = asyncio.ensure_future(stage.model.open())
        await stage.turns()
        places = [placement for placement, _ in stage.opening]
        assert [(p.name, p.isolation, p.device, p.device_id, p.index) for p in places] == [
            ("cpu_0", Isolation.THREAD, Device.CPU, 0, 0),
            ("gpu_0", Isolation.INLINE, Device.GPU, 4, 0),
            ("gpu_1", Isolation.INLINE, Device.GPU, 7, 1),
            ("gpu_2", Isolation.INLINE, Device.GPU, 4, 2),
        ]
        await stage.let()
        await task
        await stage.model.close()
        assert stage.open == []

    played(scene())


def test_if_one_does_not_open_none_stays_open():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 2, 2))
        task = asyncio.ensure_future(stage.model.open())
        await stage.turns()
        (_, first), (_, second) = stage.opening
        first.set_result(None)
        second.set_exception(NO_PLACE)
        with pytest.raises(ServeError, match="no memory"):
            await task
        assert stage.open == []

    played(scene())


def test_an_elastic_model_grows_with_its_queue_and_shrinks_when_idle():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 0, 2, idle_seconds=10.0))
        assert await stage.start() == []
        for _ in range(2):
            stage.submit()
        await stage.turns()
        assert await stage.let() == ["m_0"]
        await stage.run(0.5)
        for _ in range(3):
            stage.submit()
        await stage.turns()
        assert await stage.let() == ["m_1"]
        await stage.run(5.0)
        assert [part.error for part in stage.answered] == [None] * 5
        assert not stage.opening
        await stage.run(13.5)
        assert stage.open == []
        stage.submit()
        await stage.turns()
        assert await stage.let() == ["m_0"]
        await stage.run(15.0)
        assert len(stage.answered) == 6
        await stage.model.close()

    played(scene())


def test_a_burst_alone_makes_an_elastic_model_grow():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 0, 2))
        await stage.start()
        for _ in range(5):
            stage.submit()
        await stage.turns()
        assert await stage.let() == ["m_0"]
        await stage.run(0.5)
        assert await stage.let() == ["m_1"]
        await stage.run(9.0)
        await stage.model.close()

    played(scene())


def test_failed_openings_are_tried_again_after_a_back_off(caplog):
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 0, 1))
        await stage.start()
        stage.submit()
        await stage.turns()
        with caplog.at_level(logging.ERROR):
            assert await stage.let(NO_PLACE) == ["m_0"]
        assert "instance m_0 did not open: no memory" in caplog.text
        assert [part.error for part in stage.answered] == [NO_PLACE]  # nobody waits for what may never open
        stage.submit()
        await stage.run(0.9)
        assert not stage.opening
        await stage.run(1.0)
        await stage.let(NO_PLACE)
        stage.submit()
        await stage.run(2.9)
        assert not stage.opening
        await stage.run(3.0)
        await stage.let()
        await stage.run(5.0)
        assert [part.error for part in stage.answered] == [NO_PLACE, NO_PLACE, None]
        await stage.model.close()

    played(scene())


def test_what_waits_for_a_patient_model_waits_until_one_opens_or_it_is_given_up():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 0, 1), restarts=1, is_patient=True)
        await stage.start()
        stage.submit()
        await stage.turns()
        await stage.let(NO_PLACE)
        stage.submit()
        assert not stage.answered
        await stage.run(1.0)
        await stage.let()
        await stage.run(5.0)
        assert [part.error for part in stage.answered] == [None, None]
        stage.answered.clear()
        stage.ports["m_0"].push((Dead("killed"),))
        stage.submit()
        await stage.turns()
        await stage.let(NO_PLACE)
        await stage.run(6.0)
        assert not stage.answered
        await stage.let(NO_PLACE)
        assert [part.error for part in stage.answered] == [NO_PLACE]
        await stage.model.close()

    played(scene())


def test_one_that_died_is_opened_anew_under_its_name():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 2, 2))
        await stage.start()
        stage.ports["m_0"].push((Dead("killed"),))
        await stage.run(0.0)
        assert await stage.let() == ["m_0"]
        await stage.model.close()

    played(scene())


def test_it_is_told_when_one_that_is_gone_is_replaced():
    async def scene():
        recorder = Replacements()
        stage = ScalerHarness(InstanceGroup("m", 1, 2), recorder=recorder)
        await stage.start()
        stage.ports["m_0"].push((Dead("killed"),))
        await stage.run(0.0)
        assert recorder.heard == [(1, 0.0)]
        await stage.let(NO_PLACE)
        assert recorder.heard[1:] == [(2, 1.0)]
        await stage.run(1.0)
        await stage.let(NO_PLACE)
        assert recorder.heard[2:] == [(3, 2.0)]
        await stage.run(3.0)
        await stage.let()
        await stage.model.close()
        assert len(recorder.heard) == 3

    played(scene())


def test_one_that_is_given_up_is_not_replaced():
    async def scene():
        recorder = Replacements()
        stage = ScalerHarness(InstanceGroup("m", 1, 1), restarts=0, recorder=recorder)
        await stage.start()
        stage.ports["m_0"].push((Dead("killed"),))
        await stage.run(0.0)
        await stage.let(NO_PLACE)
        assert recorder.heard == [(1, 0.0)]
        await stage.model.close()

    played(scene())


def test_closing_gives_up_what_is_being_opened_and_what_waits_for_it():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 0, 1))
        await stage.start()
        stage.submit()
        await stage.turns()
        assert len(stage.opening) == 1
        await stage.model.close()
        assert [part.error.code for part in stage.answered] == [Code.DRAINING]
        assert stage.opening[0][1].cancelled()
        await stage.run(99.0)
        assert (stage.open, len(stage.opening)) == ([], 1)

    played(scene())


ENDINGS = {
    "unloaded": lambda stage: stage.model.end_waits(ServeError(Code.NOT_READY, "it was unloaded")),
    "scaled otherwise": lambda stage: stage.model.scale(1, 1, None),
    "scaled to nothing": lambda stage: stage.model.scale(0, 0, None),
    "one did not open": lambda stage: stage.opening[0][1].set_exception(NO_PLACE),
}
TOLD = {"unloaded": "it was unloaded", "one did not open": "no memory"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_who_waits_until_it_is_scaled_is_told_whatever_becomes_of_it(ending):
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 1, 1))
        await stage.start()
        stage.model.scale(2, 2, None)
        waiting = asyncio.gather(*(stage.model.scaled() for _ in range(3)), return_exceptions=True)
        await stage.turns()
        assert len(stage.opening) == 1
        assert not waiting.done()
        ENDINGS[ending](stage)
        await stage.turns()
        told = [error and error.message for error in await waiting]
        assert told == [TOLD.get(ending)] * 3
        await stage.model.close()

    played(scene())


def test_who_waits_until_it_is_scaled_is_told_when_it_is_closed_or_was():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 1, 1))
        await stage.start()
        stage.model.scale(2, 2, None)
        waiting = asyncio.ensure_future(stage.model.scaled())
        await stage.turns()
        await stage.model.close(ServeError(Code.DRAINING, "it went down"))
        for wait in (waiting, stage.model.scaled()):
            with pytest.raises(ServeError, match="it went down"):
                await wait

    played(scene())


def test_who_waits_until_it_is_scaled_is_told_when_instances_die_again_and_again():
    async def scene():
        stage = ScalerHarness(InstanceGroup("m", 1, 1), restarts=1)
        await stage.start()
        stage.model.scale(2, 2, None)
        waiting = asyncio.ensure_future(stage.model.scaled())
        await stage.turns()
        for _ in range(6):  # one of two opens, and is killed before the other does
            for name in list(stage.ports):
                stage.ports.pop(name).deliver([Dead("it was killed")])
                stage.open.remove(name)
            await stage.run(stage.clock.now() + 100)
            if len(stage.opening) > 1:
                stage.opening.pop(0)[1].set_result(None)
                await stage.turns()
        while stage.opening and not waiting.done():
            stage.opening.pop()[1].cancel()
            await stage.turns()
        assert waiting.done()
        with pytest.raises(ServeError, match=r"given up after .* it was killed"):
            await waiting
        await stage.model.close()

    played(scene())
