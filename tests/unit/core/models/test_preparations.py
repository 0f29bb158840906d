"""Loads that an engine prepares: when it does, what becomes of one that fails or takes too long, how it is undone."""

import asyncio
import threading
from dataclasses import replace

import pytest
from tests.harness.fake_models import ServerHarness, serving, spec

from trivium.types.errors import Code, ServeError
from trivium.types.operations import Load, Unload
from trivium.types.running import Prepared
from trivium.types.spec import Limits

SHORT = Limits(startup_deadline=0.05)
BROKEN = ServeError(Code.LOAD_FAILED, "The file is damaged.")


class FakePreparation:
    """Prepares by changing the stamp; waits until it is stopped if it `hangs`."""

    def __init__(self, spec, warning="", hangs=False, fault=None):
        self.spec, self.warning, self.hangs, self.fault = spec, warning, hangs, fault
        self.stopped, self.calls = threading.Event(), []
        self.began = threading.Event()

    def run(self):
        self.calls.append("run")
        self.began.set()
        if self.hangs:
            assert self.stopped.wait(60), "nobody has stopped it"
        if self.fault:
            raise self.fault
        return Prepared(replace(self.spec, parameters={"stamp": "7"}, limits=Limits()), self.warning)

    def stop(self):
        self.stopped.set()

    def undo(self):
        self.calls.append("undo")


def preparing(stage, **options):
    """Have the engine prepare every load so; returns the list of what it makes."""
    made = []

    def preparation(spec, scratch, guard):
        made.append(FakePreparation(spec, **options))
        return made[-1]

    stage.engine.preparation = preparation
    return made


async def failing(awaitable) -> ServeError:
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


def test_the_instances_get_the_spec_that_was_prepared_and_it_is_undone_at_unload():
    async def scene():
        stage = ServerHarness(spec())
        async with stage.server:
            made = preparing(stage)
            await stage.start()
            assert await stage.stamp() == 7
            assert made[0].calls == ["run"]
            await stage.server.execute(Load("m"))
            await stage.until(lambda: made[0].calls == ["run", "undo"])
            assert made[1].calls == ["run"]
            await stage.server.execute(Unload("m"))
            await stage.until(lambda: made[1].calls == ["run", "undo"])
            assert len(made) == 2

    asyncio.run(scene())


def test_what_still_serves_is_undone_when_the_server_ends():
    async def scene():
        stage = ServerHarness(spec())
        async with stage.server:
            made = preparing(stage)
            await stage.start()
        assert made[0].calls == ["run", "undo"]

    asyncio.run(scene())


def test_an_engine_with_nothing_to_prepare_is_asked_and_left_alone():
    async def scene():
        async with serving(spec()) as stage:
            stage.engine.preparation = lambda spec, scratch, guard: None
            await stage.server.execute(Load("m"))
            assert await stage.stamp() == 1

    asyncio.run(scene())


def test_a_warning_is_part_of_the_reason_of_a_load_that_fails():
    async def scene():
        async with serving(spec()) as stage:
            made = preparing(stage, warning="A part was not there.")
            await stage.server.execute(Load("m"))
            assert await stage.stamp() == 7
            stage.engine.faults["7"] = BROKEN
            error = await failing(stage.server.execute(Load("m")))
            assert error.message == "The file is damaged. Before that: A part was not there."
            await stage.until(lambda: made[1].calls == ["run", "undo"])
            assert await stage.stamp() == 7

    asyncio.run(scene())


def test_one_that_fails_fails_the_load_and_what_served_serves_on():
    async def scene():
        async with serving(spec()) as stage:
            made = preparing(stage, fault=BROKEN)
            assert (await failing(stage.server.execute(Load("m")))).message == BROKEN.message
            assert await stage.stamp() == 1
            await stage.until(lambda: made[0].calls == ["run", "undo"])

    asyncio.run(scene())


def test_one_that_takes_too_long_is_stopped_and_the_load_goes_on_with_what_there_is():
    async def scene():
        stage = ServerHarness(spec(limits=SHORT))
        async with stage.server:
            made = preparing(stage, hangs=True)
            await stage.start()
            assert made[0].stopped.is_set()
            assert await stage.stamp() == 7
            assert made[0].calls == ["run"]

    asyncio.run(scene())


def test_neighbours_load_and_answer_while_one_prepares_and_a_server_that_ends_stops_it():
    async def scene():
        stage = ServerHarness(spec("m"), spec("n"))
        async with stage.server:
            made = []

            def preparation(of, scratch, guard):
                if of.name == "n":
                    return None
                made.append(FakePreparation(of, hangs=True))
                return made[-1]

            stage.engine.preparation = preparation
            starting = asyncio.ensure_future(stage.start())
            await stage.until(lambda: made and made[0].began.is_set())
            await stage.until(lambda: stage.states("n") == {("n", "1"): "ready"})
            assert await stage.stamp("n") == 1
            assert stage.states("m") == {("m", "1"): "loading"}
            starting.cancel()
            await asyncio.wait({starting})
        assert made[0].calls == ["run", "undo"]

    asyncio.run(scene())
