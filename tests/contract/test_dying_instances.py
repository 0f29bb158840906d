"""An instance that dies: what had begun is told, the rest is run elsewhere, in front and in order."""

import asyncio

from tests.harness.instances import LEFT, MERGED, InstanceHarness

from trivium.load.simulate import VirtualInstance
from trivium.types.errors import Code
from trivium.types.payload import Tensors
from trivium.types.running import Begun, Credit, Dead, Executed, Part
from trivium.types.spec import Dynamic, Limits, OnExpiry, QueuePolicy
from trivium.types.state import ItemState


def ended(item):
    """An execution of one item that gave nothing."""
    return Executed([item], [Tensors(())], 0.0, 0.0, 0.0, 0.0)


class Mortal:
    """Does nothing by itself: the test pushes its events."""

    in_flight = 0

    def __init__(self, port):
        self.push, self.batches, self.cancelled = port.push, [], []

    def start(self, batch):
        self.batches.append(list(batch.items))

    def cancel(self, item):
        self.cancelled.append(item)

    def hold(self, item):
        pass

    def resume(self, item):
        pass

    def close(self):
        pass


class Deathbed(InstanceHarness):
    """The first `mortals` instances are mortal, those opened later virtual."""

    def __init__(self, batching=None, mortals=1, **fields):
        super().__init__("virtual", batching, mortals, **fields)
        self.mortals, self.later = [], []

    async def launch(self, placement, port):
        if len(self.mortals) < len(self.model.spec.groups) * self.model.spec.groups[0].minimum:
            self.mortals.append(Mortal(port))
            return self.mortals[-1]
        self.later.append(placement.name)
        return VirtualInstance(self.clock, port, lambda rows: self.seconds)

    async def run(self, until=None):
        """Let the virtual clock, and the tasks that open instances, go on."""
        self.clock.run(self.clock.now() if until is None else until)
        for _ in range(6):
            await asyncio.sleep(0)
        self.clock.run(self.clock.now())

    async def settle(self):
        await self.run()
        await super().settle()


def test_what_had_begun_is_told_and_the_rest_runs_elsewhere():
    async def scene():
        async with Deathbed(MERGED) as stage:
            for _ in range(4):
                stage.submit()
            await stage.run()
            (mortal,) = stage.mortals
            assert mortal.batches == [[1, 2, 3, 4]]
            stage.submit()
            mortal.push((Begun((1, 3)),))
            mortal.push((Dead("It was killed by SIGKILL."),))
            await stage.settle()
            died = Code.WORKER_DIED
            assert stage.codes() == [died, None, died, None, None]
            error = stage.parts[1][0].error
            assert error.message == "An instance of model 'm' died. It was killed by SIGKILL."
            assert stage.later == ["m_0"]
            assert [batch.rows for batch in stage.model.report().batches] == [3]

    asyncio.run(scene())


def test_the_recalled_run_in_front_and_in_order():
    async def scene():
        async with Deathbed() as stage:
            stage.submit()
            await stage.run()
            for _ in range(3):
                stage.submit()
            await stage.run()
            stage.mortals[0].push((Dead("gone"),))
            await stage.settle()
            assert stage.codes() == [None] * 4
            assert stage.ended == [1, 2, 3, 4]

    asyncio.run(scene())


def test_another_instance_takes_what_was_recalled():
    async def scene():
        async with Deathbed(mortals=2) as stage:
            for _ in range(2):
                stage.submit()
            await stage.run()
            first, second = stage.mortals
            first.push((Dead("gone"),))
            second.push((Begun((2,)), ended(2), Credit(1)))
            stage.clock.run(stage.clock.now())
            assert stage.ended == [2]
            assert second.batches == [[2], [1]]
            second.push((ended(1), Credit(1)))
            await stage.settle()

    asyncio.run(scene())


def test_an_item_ends_with_its_final_part_and_no_earlier():
    async def scene():
        async with Deathbed() as stage:
            item = stage.submit()
            await stage.run()
            payload, mortal = item.operation.payload, stage.mortals[0]
            mortal.push((Begun((1,)), Part(1, payload, final=False)))
            await stage.run()
            (first,) = stage.parts[1]
            assert (first.payload, first.final, stage.ended) == (payload, False, [])
            stage.parts[1].clear()
            mortal.push((Part(1, payload, parameters={"a": 1}), Credit(1)))
            await stage.settle()
            (last,) = stage.parts[1]
            assert (last.payload, last.parameters) == (payload, {"a": 1})
            stage.check_books = lambda: None  # answers that come in parts are in no count yet

    asyncio.run(scene())


def test_parts_for_one_who_left_are_dropped():
    async def scene():
        async with Deathbed() as stage:
            item = stage.submit()
            await stage.run()
            item.cancel(LEFT)
            payload, mortal = item.operation.payload, stage.mortals[0]
            mortal.push((Part(1, payload, final=False), Part(1, None, LEFT), Credit(1)))
            await stage.settle()
            assert stage.codes() == [Code.CANCELLED]
            assert stage.model.report().wasted == 1

    asyncio.run(scene())


def test_those_cancelled_before_it_died_are_not_run_again():
    async def scene():
        async with Deathbed(MERGED) as stage:
            items = [stage.submit() for _ in range(3)]
            await stage.run()
            (mortal,) = stage.mortals
            items[0].cancel(LEFT)
            mortal.push((Begun((1, 2)),))
            await stage.run()
            assert items[0].state is ItemState.ENDED
            items[1].cancel(LEFT)
            assert mortal.cancelled == [1, 2]
            mortal.push((Dead("gone"),))
            await stage.settle()
            assert stage.codes() == [Code.CANCELLED, Code.CANCELLED, None]

    asyncio.run(scene())


def test_one_that_is_cancelled_by_the_news_of_the_death_ends_once():
    async def scene():
        async with Deathbed(MERGED) as stage:
            items = [stage.submit(then=lambda part: items[1].cancel(LEFT))]
            items += [stage.submit(), stage.submit()]
            await stage.run()
            stage.mortals[0].push((Begun((1,)), Dead("gone")))
            await stage.settle()
            assert stage.codes() == [Code.WORKER_DIED, Code.CANCELLED, None]

    asyncio.run(scene())


def test_the_recalled_start_their_run_deadline_anew():
    async def scene():
        async with Deathbed(limits=Limits(run_deadline=1.5)) as stage:
            stage.submit()
            await stage.run(1.4)
            stage.mortals[0].push((Dead("gone"),))
            await stage.settle()
            assert stage.codes() == [None]

    asyncio.run(scene())


def test_a_requests_own_deadline_outlasts_the_death():
    async def scene():
        async with Deathbed(limits=Limits(run_deadline=1.5)) as stage:
            stage.submit(deadline=2.0)
            await stage.run(1.4)
            stage.mortals[0].push((Dead("gone"),))
            await stage.settle()
            assert stage.codes() == [Code.EXPIRED]
            assert "its deadline of 2 s" in stage.parts[1][0].error.message

    asyncio.run(scene())


def test_the_recalled_have_no_time_in_the_queue_to_lose():
    rules = Dynamic(default_policy=QueuePolicy(OnExpiry.REJECT, timeout=1.0))

    async def scene():
        async with Deathbed(scheduling=rules) as stage:
            stage.submit()
            await stage.run(0.5)
            stage.mortals[0].push((Dead("gone"),))
            stage.clock.run(5.0)
            await stage.settle()
            assert stage.codes() == [None]

    asyncio.run(scene())
