"""What an instance with many items in work owes to each of them: real workers, and virtual ones where time counts."""

import asyncio
import os
import signal

import pytest
from tests.harness.instances import LEFT, MERGED, InstanceHarness, scene

from trivium.core.workers.wire import BatchWriter
from trivium.types.errors import Code
from trivium.types.spec import Limits
from trivium_worker.wire import frames

KINDS = ("process", "virtual")


def only_finals(stage):
    """Of items that had many parts only the end, for the stage's own check; how many parts each had."""
    counts = []
    for parts in stage.parts.values():
        counts.append(len(parts))
        assert [part.final for part in parts].count(True) == 1
        assert parts[-1].final
        parts[:] = parts[-1:]
    return counts


def credits(stage):
    return [each.credits for each in stage.model.debug_state().instances.values()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_flight", [1, 4, 100])
@pytest.mark.parametrize("instances", [1, 3])
@pytest.mark.parametrize("batching", [None, MERGED])
def test_every_item_ends_once_and_is_an_execution_of_its_own(kind, in_flight, instances, batching):
    async def run():
        async with InstanceHarness(kind, batching, instances, in_flight=in_flight) as stage:
            for number in range(1, 51):
                stage.submit()
                stage.leases[-1].view[:4] = number.to_bytes(4, "little")
                if number % 7 == 0:
                    await asyncio.sleep(0)
            await stage.settle()
            for number, (part,) in stage.parts.items():
                assert part.payload["x"].tobytes()[:4] == number.to_bytes(4, "little")
            await stage.until(lambda: stage.model.report().executions == 50)
            report = stage.model.report()
            assert (report.wasted, report.rows, report.queue.count, report.compute_infer.count) == (
                0,
                50,
                50,
                50,
            )
            assert sum(count for _, count in report.queue_wait_buckets) == 50
            assert [(batch.rows, batch.compute_infer.count) for batch in report.batches] == [(1, 50)]
            assert stage.model.debug_state().lead == 0

    asyncio.run(run())


@pytest.mark.parametrize("instances", [1, 2])
def test_as_many_are_in_work_as_there_are_credits_and_the_rest_wait(instances):
    async def play(stage):
        stage.shut()
        for _ in range(11):
            stage.submit()
        await stage.until(lambda: len(stage.workers.ran()) == 4 * instances)
        await asyncio.sleep(0.05)
        state = stage.model.debug_state()
        assert (state.queued, state.ahead, credits(stage)) == (11 - 4 * instances, 0, [0] * instances)
        assert len(stage.workers.ran()) == 4 * instances
        await stage.settle()
        assert stage.codes() == [None] * 11

    scene(play, in_flight=4, instances=instances)


def test_one_that_is_cancelled_gives_its_credit_back_and_the_others_go_on():
    async def play(stage):
        stage.shut()
        items = [stage.submit() for _ in range(3)]
        await stage.until(lambda: len(stage.workers.ran()) == 2)
        items[0].cancel(LEFT)
        await stage.begun(items[2])  # in the place of the first
        assert stage.ended == [1]
        await stage.settle()
        assert stage.codes() == [Code.CANCELLED, None, None]

    scene(play, in_flight=2)


@pytest.mark.parametrize("why", ["client", "deadline"])
def test_the_task_of_who_left_is_cancelled(why):
    async def play(stage):
        stage.submit()
        item = stage.submit("wait", deadline=0.2 if why == "deadline" else None)
        await stage.until(lambda: stage.workers.ran() == ["1", "2"])
        if why == "client":
            item.cancel(LEFT)
        await stage.until((stage.workers.folder / "cancelled").exists)
        await stage.settle()
        assert stage.codes() == [None, Code.CANCELLED if why == "client" else Code.EXPIRED]

    scene(play, in_flight=8)


def test_one_that_heeds_no_cancellation_keeps_its_credit_while_it_goes_on():
    async def play(stage):
        item = stage.submit("deaf")
        await stage.begun(item)
        item.cancel(LEFT)
        stage.submit()
        await stage.until(lambda: stage.ended == [1, 2])
        await asyncio.sleep(0.05)
        assert credits(stage) == [1]
        (stage.workers.folder / "enough").touch()
        await stage.settle()
        assert stage.codes() == [Code.CANCELLED, None]
        assert stage.model.report().wasted == 0

    scene(play, in_flight=2)


@pytest.mark.parametrize("id", ["raise", "bad", "give up", "nothing", "base exception"])
def test_an_error_is_its_items_own(id):
    async def play(stage):
        for each in ("", id, ""):
            stage.submit(each)
        await stage.settle()
        errors = [parts[0].error for parts in stage.parts.values()]
        assert errors[0] is errors[2] is None
        codes = {"bad": Code.INVALID, "nothing": None}
        assert (errors[1] and errors[1].code) == codes.get(id, Code.MODEL_FAILED)
        assert not stage.model.deaths

    scene(play, in_flight=3)


def test_one_that_is_cancelled_before_it_has_begun_never_runs():
    async def play(stage):
        await stage.begun(stage.submit("block"))
        await stage.until((stage.workers.folder / "blocks").exists)
        item = stage.submit()
        await stage.until(lambda: credits(stage) == [6])
        item.cancel(LEFT)
        stage.submit()
        await asyncio.sleep(0.1)  # the frames reach the worker
        (stage.workers.folder / "enough").touch()
        await stage.settle()
        assert stage.codes() == [None, Code.CANCELLED, None]
        assert "2" not in stage.workers.ran()

    scene(play, in_flight=8)


# -- a worker that dies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "exit", "sys exit"])
def test_a_death_takes_what_had_begun_and_the_rest_runs_elsewhere(how):
    async def play(stage):
        stage.shut()
        for id in ("", how, "", "", "", ""):
            stage.submit(id)
        await stage.until(lambda: len(stage.workers.ran()) == 4)
        await stage.settle()
        assert stage.codes()[4:] == [None, None]  # they were in the queue
        assert Code.WORKER_DIED in stage.codes()[:4]
        assert set(stage.codes()) == {None, Code.WORKER_DIED}
        await stage.until(lambda: len(stage.workers.instances) == 2)  # the rest may have run before the death
        error = stage.parts[2][0].error
        told = {"model": "m", "killed": how == "kill"}
        assert (error.reason, error.metadata) == ("died_with_many", told)

    scene(play, in_flight=4)


def test_what_user_code_had_not_begun_runs_elsewhere():
    """The first item holds the loop up, so that the others stand in the worker and have not begun."""

    async def play(stage):
        await stage.begun(stage.submit("block"))
        await stage.until((stage.workers.folder / "blocks").exists)
        for _ in range(5):
            stage.submit()
        await stage.until(lambda: credits(stage) == [2])
        await asyncio.sleep(0.1)  # the frames reach the worker
        os.kill(stage.workers.instances[0].pid, signal.SIGKILL)
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED, None, None, None, None, None]
        assert stage.workers.ran() == ["1", "2", "3", "4", "5", "6"]

    scene(play, in_flight=8)


def test_a_worker_whose_loop_is_held_up_gives_signs_of_life():
    async def play(stage):
        await stage.begun(stage.submit("block"))
        await stage.until((stage.workers.folder / "blocks").exists)
        (worker,) = stage.workers.instances
        heard_at = worker.connection.heard_at
        worker.write([frames.frame(frames.PING)])
        await stage.until(lambda: worker.connection.heard_at > heard_at)
        assert stage.ended == []
        (stage.workers.folder / "enough").touch()
        await stage.settle()

    scene(play, in_flight=8)


# -- the run deadline --------------------------------------------------------------------------------------


def test_one_that_hangs_among_others_costs_the_worker_at_its_own_deadline():
    async def play(stage):
        stage.submit("hang")
        async with asyncio.timeout(60):
            while not stage.model.deaths:
                stage.submit()
                await asyncio.sleep(0.01)
        assert "not done with a request after 1 s, the run deadline" in stage.model.deaths[0]
        await stage.settle()
        stage.submit()
        await stage.settle()
        assert stage.codes()[0] is Code.WORKER_DIED
        assert set(stage.codes()[1:]) <= {None, Code.WORKER_DIED}
        assert stage.codes().count(Code.WORKER_DIED) <= 8
        assert stage.codes()[-1] is None

    scene(play, in_flight=8, limits=Limits(run_deadline=1.0))


def test_an_item_that_sends_parts_is_at_work():
    async def play(stage):
        stage.submit("drip")
        await stage.until(lambda: len(stage.parts[1]) > 3)
        (worker,) = stage.workers.instances
        for _ in range(3):
            seen = worker.running_since
            assert seen is not None
            await stage.until(lambda seen=seen: worker.running_since > seen)
        (stage.workers.folder / "enough").touch()
        await stage.settle()
        assert only_finals(stage)[0] > 3

    scene(play, in_flight=8)


def test_a_slow_reader_holds_its_own_item_which_is_not_computing_then():
    async def play(stage):
        item = stage.submit("parts")
        item.hold()
        (worker,) = stage.workers.instances
        await stage.until(lambda: stage.model.debug_state().unread and worker.running_since is None)
        other = stage.submit("parts")
        await stage.until(lambda: 2 in stage.ended)
        assert not stage.parts[1], "who is full gets nothing"
        assert other.item == 2
        item.resume()
        await stage.settle()
        assert only_finals(stage) == [41, 41]

    scene(play, in_flight=8)


def test_one_large_part_fills_a_reader_as_well():
    async def play(stage):
        item = stage.submit("large parts")
        item.hold()
        (worker,) = stage.workers.instances
        await stage.until(lambda: stage.model.debug_state().unread and worker.running_since is None)
        assert not stage.parts[1]
        item.resume()
        await stage.settle()
        assert only_finals(stage) == [7]

    scene(play, in_flight=8)


def test_who_waits_for_its_reader_hears_that_it_has_left():
    async def play(stage):
        item = stage.submit("drip")
        item.hold()
        await stage.until(lambda: stage.model.debug_state().unread)
        item.cancel(LEFT)
        await stage.settle()
        assert only_finals(stage) == [1]
        assert stage.codes() == [Code.CANCELLED]

    scene(play, in_flight=8)


# -- the frames --------------------------------------------------------------------------------------------


def test_what_cannot_be_written_ends_there_and_costs_no_credit(monkeypatch):
    write = BatchWriter.write

    def failing(writer, number, batch):
        if batch.operations[0].id == "unwritable":
            raise ValueError("as told")
        return write(writer, number, batch)

    monkeypatch.setattr(BatchWriter, "write", failing)

    async def play(stage):
        for id in ("", "unwritable", ""):
            stage.submit(id)
        await stage.settle()
        assert stage.codes() == [None, Code.INTERNAL, None]
        assert stage.model.debug_state().lead == 0

    scene(play, in_flight=2)


@pytest.mark.parametrize("in_flight", [0, 4])
@pytest.mark.parametrize(
    "stray",
    [
        frames.frame(frames.CREDIT, frames.CREDIT_BODY.pack(1, 1, 0.0, 0.0)),  # it has not ended
        frames.frame(frames.CREDIT, frames.CREDIT_BODY.pack(999, 1, 0.0, 0.0)),
        frames.frame(frames.CREDIT, b"short"),
        frames.frame(frames.CREDIT, frames.CREDIT_BODY.pack(1, 1, 0.0, 0.0) + b"long"),
        frames.frame(frames.DONE, frames.DONE_HEAD.pack(2, 0, 0.0, 0.0, 0)),
    ],
)
def test_a_credit_that_is_not_owed_ends_the_worker(stray, in_flight):
    async def play(stage):
        stage.shut()
        await stage.begun(stage.submit())
        (worker,) = stage.workers.instances
        worker.connection.data_received(stray)
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED]
        assert "it sent what cannot be understood" in stage.parts[1][0].error.message

    scene(play, in_flight=in_flight)


def test_a_credit_comes_back_once():
    async def play(stage):
        stage.submit()
        await stage.settle()
        stage.shut()
        await stage.begun(stage.submit())
        (worker,) = stage.workers.instances
        worker.connection.data_received(frames.frame(frames.CREDIT, frames.CREDIT_BODY.pack(1, 1, 0.0, 0.0)))
        await stage.settle()
        assert stage.codes() == [None, Code.WORKER_DIED]

    scene(play, in_flight=4)


def test_a_worker_that_is_told_to_stop_ends_what_it_has():
    async def play(stage):
        stage.shut()
        for _ in range(3):
            stage.submit()
        await stage.until(lambda: len(stage.workers.ran()) == 3)
        (number,) = stage.model.debug_state().instances
        stage.pieces.pool.retire(number)
        await stage.settle()
        assert stage.codes() == [None] * 3
        (worker,) = stage.workers.instances
        await stage.until(worker.gone.done)
        assert stage.workers.closed() == [worker.pid]
        assert not worker.was_killed

    scene(play, in_flight=4)
