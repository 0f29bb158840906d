"""What user code in a worker process can do to its server: whatever it is, others are answered and nothing is left."""

import asyncio
import contextlib
import os
import signal

import numpy as np
import psutil
import pytest
from tests.harness.instances import LEFT, MERGED, InstanceHarness, scene
from tests.harness.virtual_models import make_spec

from trivium.core.workers.process_launcher import WorkerServices
from trivium.types.core_config import CoreConfig
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors
from trivium.types.spec import Limits
from trivium.types.state import ItemState

DEATHS = {
    "kill": "was killed by SIGKILL",
    "exit": "ended by itself with status 3. Its last words: I leave",
    "sys exit": "ended by itself with status 4",
    "close": "perhaps because user code had closed its connection",
    "garbage": "it sent what cannot be understood",
    "truncate": "ended by itself with status 9",
}


@pytest.mark.parametrize("how", DEATHS)
def test_a_death_is_told_with_its_post_mortem_and_the_next_one_serves(how):
    async def play(stage):
        stage.submit(how)
        stage.submit()
        await stage.settle()
        stage.submit()
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED, None, None]
        assert DEATHS[how] in stage.parts[1][0].error.message
        assert DEATHS[how] in stage.model.deaths[-1]
        assert len(stage.workers.instances) == 2

    scene(play)


def test_a_death_takes_the_items_of_its_batch_and_no_others():
    async def play(stage):
        stage.shut()
        first = stage.submit()
        await stage.begun(first)
        for id in ("", "kill", "", ""):
            stage.submit(id)
        await asyncio.sleep(0.01)
        stage.workers.open()
        await stage.settle()
        died = [code for code in stage.codes() if code is Code.WORKER_DIED]
        assert stage.codes()[0] is None
        assert len(died) == 4  # they were one batch

    scene(play, batching=MERGED)


@pytest.mark.parametrize("how", ["flood", "close output", "fork", "leave child"])
def test_bad_manners_hurt_nobody(how):
    async def play(stage):
        for id in (how, "", how, ""):
            stage.submit(id)
        await stage.settle()
        assert stage.codes() == [None] * 4

    scene(play)


def test_what_it_started_ends_with_it():
    async def play(stage):
        stage.submit("leave child")
        await stage.settle()
        (worker,) = stage.workers.instances
        (left,) = [p for p in psutil.Process(worker.pid).children() if p.name() == "sleep"]
        os.kill(worker.pid, signal.SIGKILL)
        await asyncio.wait_for(worker.gone, 60)
        left.wait(60)

    scene(play)


def test_what_hangs_is_ended_by_the_run_deadline_and_named():
    async def play(stage):
        stage.submit("hang")
        stage.submit()
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED, None]
        assert "not done with a batch after 1 s" in stage.parts[1][0].error.message

    scene(play, limits=Limits(run_deadline=1.0))


@pytest.mark.parametrize(("opening", "said"), [
    ("raise", "RuntimeError: it cannot be opened, as told"),
    ("exit", "ended by itself with status 7. Its last words: last words"),
    ("hang", "was not ready after 0.3 s"),
])  # fmt: skip
def test_what_does_not_open_says_why(opening, said):
    async def run():
        limits = Limits(startup_deadline=0.3 if opening == "hang" else 20)
        stage = InstanceHarness("process", parameters={"open": opening}, limits=limits)
        with pytest.raises(ServeError) as caught:
            await stage.model.open()
        assert caught.value.code is Code.LOAD_FAILED
        assert said in caught.value.message
        await stage.model.close()
        await stage.workers.close()

    asyncio.run(run())


def test_a_model_whose_workers_die_at_once_is_given_up_and_says_so():
    async def play(stage):
        for _ in range(4):
            stage.submit("kill")
            await stage.until(lambda: len(stage.ended) == len(stage.parts))
        stage.submit()
        await stage.until(lambda: len(stage.ended) == 5)
        assert stage.codes()[-1] is Code.NOT_READY
        assert "given up after 1 failures in a row" in stage.parts[5][0].error.message
        assert "SIGKILL" in stage.parts[5][0].error.message

    scene(play, limits=Limits(restarts=1))


def test_a_worker_is_replaced_after_so_many_items_and_nothing_is_lost():
    async def play(stage):
        for _ in range(40):
            stage.submit()
            await asyncio.sleep(0.05)
        await stage.settle()
        assert stage.codes() == [None] * 40
        assert len(stage.workers.instances) >= 2
        await stage.until(lambda: len(stage.workers.closed()) >= 1)

    scene(play, limits=Limits(recycle_items=10))


def test_the_servers_bounds_hold_where_a_model_sets_none():
    around = WorkerServices(None, None, None, CoreConfig(recycle_items=5, recycle_bytes=7))
    assert around.limits(make_spec()) == Limits(recycle_items=5, recycle_bytes=7)
    own = make_spec(limits=Limits(recycle_items=1))
    assert around.limits(own) == Limits(recycle_items=1, recycle_bytes=7)


def test_a_worker_whose_memory_grows_is_replaced():
    async def play(stage):
        for _ in range(6):
            stage.submit("leak")
            await stage.settle()
            await asyncio.sleep(0.3)
        assert stage.codes() == [None] * 6
        await stage.until(lambda: len(stage.workers.instances) >= 2)

    scene(play, limits=Limits(recycle_bytes=100 * 2**20))


def test_parts_come_one_by_one_and_items_may_end_later():
    async def play(stage):
        numbers = [stage.submit("parts"), stage.submit("later")]
        await stage.until(lambda: len(stage.ended) == 2)
        assert [part.final for part in stage.parts[1]] == [False, False, False, True]
        assert stage.parts[1][-1].payload is None
        assert [part.final for part in stage.parts[2]] == [True]
        assert stage.model.report().success.count == 2
        stage.parts[1][:] = [stage.parts[1][-1]]
        del numbers

    scene(play)


def test_a_stream_to_a_client_that_has_left_is_stopped():
    async def play(stage):
        item = stage.submit("endless")
        await stage.until(lambda: len(stage.parts[1]) > 40)
        item.cancel(LEFT)
        await stage.until(lambda: (stage.workers.folder / "stopped").exists())
        stage.submit()
        await stage.settle()
        assert stage.codes() == [Code.CANCELLED, None]
        stage.parts[1][:] = [stage.parts[1][-1]]

    scene(play)


def test_a_long_run_behind_many_brief_ones_hears_that_its_client_has_left():
    """The thread that reads meanwhile looks more seldom after brief runs, and still looks."""

    async def play(stage):
        brief = 0
        until = asyncio.get_running_loop().time() + 1
        while asyncio.get_running_loop().time() < until:
            stage.submit()
            await stage.settle()
            brief += 1
        item = stage.submit("wait")
        await stage.begun(item)
        item.cancel(LEFT)
        await stage.until(lambda: (stage.workers.folder / "cancelled").exists())
        await stage.settle()
        assert stage.codes() == [None] * brief + [Code.CANCELLED]

    scene(play)


@pytest.mark.parametrize("size", [16, 2**13, 600_000, 2**22])
def test_tensors_of_every_size_come_back_as_they_went(size):
    async def play(stage):
        arrays = [np.random.default_rng(i).random((1, size // 4), np.float32) for i in range(3)]
        parts = []
        lease = stage.model.lend(size)
        lease.view[:] = arrays[0].data.cast("B")
        received = np.frombuffer(lease.view, "<f4").reshape(1, -1)
        for number, array in enumerate([received, *arrays[1:]], 100):
            payload = Tensors(
                (Tensor("x", DataType.FP32, array.shape, array),), lease if number == 100 else None
            )
            stage.model.submit(number, Infer(model="m", payload=payload), parts.append)
        lease.release()
        await stage.until(lambda: len(parts) == 3)
        for part, array in zip(parts, arrays, strict=True):
            assert part.payload["x"].tobytes() == array.tobytes()

    async def run():
        stage = InstanceHarness("process", inputs=(), outputs=())
        async with contextlib.AsyncExitStack() as stack:
            await stage.model.open()
            stack.push_async_callback(stage.workers.close)
            stack.push_async_callback(stage.model.close)
            await play(stage)

    asyncio.run(run())


def test_begun_is_told_by_the_marks():
    async def play(stage):
        stage.shut()
        items = [stage.submit() for _ in range(3)]
        await stage.begun(items[0])
        os.kill(stage.workers.instances[0].pid, signal.SIGKILL)
        await stage.until(lambda: stage.ended == [1])
        assert items[1].state in (ItemState.QUEUED, ItemState.STARTED)
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED, None, None]

    scene(play)


def test_one_that_is_cancelled_while_it_is_held_in_advance_is_not_run():
    async def play(stage):
        for _ in range(
            8
        ):  # until the worker's main thread reads, and the next one is in its hand while it runs one
            stage.submit()
            await stage.settle()
        stage.shut()
        first, second = stage.submit(), stage.submit()  # which the worker reads at once
        await stage.begun(first)
        assert stage.model.debug_state().ahead == 1
        second.cancel(LEFT)
        await asyncio.sleep(0.005)
        stage.workers.open()
        await stage.settle()
        assert stage.codes() == [None] * 9 + [Code.CANCELLED]
        report = stage.model.report()
        assert (report.executions, report.wasted) == (9, 0)

    scene(play)
