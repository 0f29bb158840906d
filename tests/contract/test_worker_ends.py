"""How workers end and items with them, where it is not simple: retired with work in hand, given up with a queue."""

import asyncio
import os
import signal
import time

import pytest
from tests.harness.instances import LEFT, InstanceHarness, scene

from trivium.core.workers import process
from trivium.types.errors import Code
from trivium.types.spec import Limits
from trivium_worker.wire import frames


@pytest.fixture
def hurry(monkeypatch):
    """A worker that was told to stop is soon made to."""
    monkeypatch.setattr(process, "END_SECONDS", 0.2)
    monkeypatch.setattr(process, "TERM_SECONDS", 3.0)


def retire(stage):
    """Close the only instance, as the scaler does with one that is stale; another one is opened."""
    (number,) = stage.model.debug_state().instances
    stage.pieces.pool.retire(number)
    stage.pieces.scaler.review()
    return stage.workers.instances[0]


# -- retired -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["slow", "much later"])
def test_what_a_retired_worker_holds_still_ends(how, hurry):
    async def play(stage):
        item = stage.submit(how)
        await stage.begun(item)
        await asyncio.sleep(0.05)  # what ends later has left user code by now
        worker = retire(stage)
        await stage.until(lambda: stage.ended == [1])
        assert stage.codes() == [None]
        await asyncio.wait_for(worker.gone, 60)
        assert stage.workers.closed() == [worker.pid]
        assert "status 0" in worker.gone.result()

    scene(play)


def test_what_a_retired_worker_answered_last_is_read_though_it_is_written_to_behind_that():
    async def play(stage):
        item = stage.submit("slow")
        await stage.begun(item)
        worker = retire(stage)
        await asyncio.sleep(0.05)  # it has been told
        time.sleep(1.0)  # the loop is busy; it has answered, and would like to end
        worker.write([frames.frame(frames.PING)])
        await stage.until(lambda: stage.ended == [1])
        assert stage.codes() == [None]
        assert "status 0" in await asyncio.wait_for(worker.gone, 60)

    scene(play)


def test_what_a_retired_worker_holds_can_be_cancelled():
    async def play(stage):
        item = stage.submit("wait")
        await stage.begun(item)
        worker = retire(stage)
        item.cancel(LEFT)
        await asyncio.wait_for(worker.gone, 60)
        assert (stage.workers.folder / "cancelled").exists()
        await stage.settle()
        assert stage.codes() == [Code.CANCELLED]

    scene(play)


def test_a_retired_worker_that_works_for_nobody_is_made_to_end(hurry):
    async def play(stage):
        item = stage.submit("hang")
        await stage.begun(item)
        worker = retire(stage)
        await asyncio.sleep(0.5)
        assert not worker.gone.done()
        item.cancel(LEFT)
        await asyncio.wait_for(worker.gone, 60)
        assert "SIGTERM" in worker.gone.result()
        await stage.settle()
        assert stage.codes() == [Code.CANCELLED]

    scene(play)


def test_what_does_not_end_by_sigterm_is_killed_and_says_why(monkeypatch):
    monkeypatch.setattr(process, "END_SECONDS", 0.1)
    monkeypatch.setattr(process, "TERM_SECONDS", 0.15)

    async def play(stage):
        item = stage.submit("stay")
        await stage.until(lambda: (stage.workers.folder / "stays").exists())
        worker = retire(stage)
        item.cancel(LEFT)
        await asyncio.wait_for(worker.gone, 60)
        assert "was killed: it was told to end, and had not 0.25 s later" in worker.gone.result()
        await stage.settle()
        assert stage.codes() == [Code.CANCELLED]

    scene(play)


def test_closing_the_model_tells_those_whose_worker_was_retired(hurry):
    async def play(stage):
        item = stage.submit("hang")
        await stage.begun(item)
        worker = retire(stage)
        await stage.model.close()
        assert stage.codes() == [Code.DRAINING]
        await asyncio.wait_for(worker.gone, 60)
        await stage.settle()

    async def run():
        stage = InstanceHarness("process")
        await stage.model.open()
        await play(stage)
        await stage.workers.close()

    asyncio.run(run())


def test_a_retired_worker_that_dies_gives_back_what_it_had_not_begun():
    async def play(stage):
        stage.shut()
        first, second = stage.submit("hang"), stage.submit()
        await stage.begun(first)
        stage.pieces.pool.start(next(iter(stage.model.debug_state().instances)), [second])
        stage.pieces.queue.take([second])
        worker = retire(stage)
        os.kill(worker.pid, signal.SIGKILL)
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED, None]

    scene(play)


# -- given up ----------------------------------------------------------------------------------------------


def test_a_model_that_is_given_up_leaves_nobody_waiting():
    async def play(stage):
        for _ in range(8):
            stage.submit("kill")
        await stage.until(lambda: len(stage.ended) == 8)
        assert stage.codes() == [Code.WORKER_DIED] * 3 + [Code.NOT_READY] * 5
        assert "given up after 1 failures in a row" in stage.parts[8][0].error.message

    scene(play, limits=Limits(restarts=1))


def test_a_worker_that_answers_by_parts_alone_does_not_die_in_vain():
    async def play(stage):
        for _ in range(4):
            stage.submit("later")
            await stage.settle()
            stage.submit("kill")
            await stage.settle()
        assert stage.codes() == [None, Code.WORKER_DIED] * 4
        assert not stage.model.is_failed

    scene(play, limits=Limits(restarts=0))
