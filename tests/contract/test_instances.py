"""What every kind of instance owes to the items it is given, behind a real pool and model."""

import asyncio

import pytest
from tests.harness.instances import BAD, HELD_UP, KINDS, LEFT, MERGED, RUNNERS, InstanceHarness, Recorder

from trivium.types.errors import Code
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Credit, Executed, Placement
from trivium.types.spec import Isolation, Limits

every_kind = pytest.mark.parametrize("kind", KINDS)
every_runner = pytest.mark.parametrize("kind", RUNNERS)


@every_kind
@pytest.mark.parametrize("instances", [1, 3])
@pytest.mark.parametrize("batching", [None, MERGED])
def test_every_item_ends_once_and_gets_its_own_answer(kind, instances, batching):
    async def scene():
        async with InstanceHarness(kind, batching, instances) as stage:
            for number in range(1, 31):
                stage.submit()
                stage.leases[-1].view[:4] = number.to_bytes(4, "little")
                if number % 7 == 0:
                    await asyncio.sleep(0)
            await stage.settle()
            for number, (part,) in stage.parts.items():
                assert part.payload["x"].tobytes()[:4] == number.to_bytes(4, "little")
            assert stage.model.report().wasted == 0

    asyncio.run(scene())


@every_kind
def test_cancel_while_queued(kind):
    async def scene():
        async with InstanceHarness(kind) as stage:
            items = [stage.submit() for _ in range(3)]
            items[1].cancel(LEFT)
            assert stage.ended == [2]
            await stage.settle()
            assert stage.codes() == [None, Code.CANCELLED, None]
            assert stage.model.report().executions == 2

    asyncio.run(scene())


@every_kind
def test_cancel_one_of_two_that_run_together(kind):
    async def scene():
        async with InstanceHarness(kind, MERGED) as stage:
            stage.shut()
            items = [stage.submit(), stage.submit()]
            await stage.begun(items[0])
            items[0].cancel(LEFT)
            assert stage.ended == [1]
            await stage.settle()
            assert stage.codes() == [Code.CANCELLED, None]
            report = stage.model.report()
            assert (report.executions, report.wasted, report.batches[0].rows) == (1, 1, 2)

    asyncio.run(scene())


@every_kind
def test_a_late_answer_is_dropped_and_counted(kind):
    async def scene():
        async with InstanceHarness(kind) as stage:
            stage.shut()
            item = stage.submit()
            await stage.begun(item)
            for _ in range(2):
                item.cancel(LEFT)
            stage.submit()
            await stage.settle()
            assert stage.codes() == [Code.CANCELLED, None]
            assert stage.model.report().wasted == 1

    asyncio.run(scene())


@pytest.mark.parametrize("kind", [*HELD_UP, "virtual"])
def test_cancel_while_in_the_lead(kind):
    async def scene():
        async with InstanceHarness(kind, seconds=0.0001) as stage:
            stage.submit()
            await stage.settle()  # short runs: from now on some are handed over in advance
            stage.shut()
            if kind in ("process", "thread"):
                stage.pieces.pool.observe(0.00001)  # its run was as long as this machine is busy
            items = [stage.submit() for _ in range(3)]
            await stage.begun(items[0])
            assert stage.model.debug_state().ahead == 2
            items[1].cancel(LEFT)
            assert stage.ended == [1, 3]
            if kind == "process":
                await asyncio.sleep(0.1)  # a worker that computes reads what has come every few milliseconds
            await stage.settle()
            assert stage.codes() == [None, None, Code.CANCELLED, None]
            report = stage.model.report()
            if kind == "process":
                assert stage.workers.ran() == ["2", "4"]
            if kind == "thread":
                assert stage.script.ran == [1, 2, 4]
            if kind in HELD_UP:
                assert report.wasted == 0
            else:
                assert report.wasted == 1

    asyncio.run(scene())


@every_kind
def test_a_receiver_that_raises_hurts_no_neighbour(kind, caplog):
    def fail(part):
        raise ValueError("the receiver is broken")

    async def scene():
        async with InstanceHarness(kind, MERGED) as stage:
            stage.submit(then=fail)
            stage.submit()
            await stage.settle()
            assert stage.codes() == [None, None]
            stage.submit(then=fail).cancel(LEFT)
        assert caplog.text.count("the receiver of an answer of model 'm' failed") == 2

    asyncio.run(scene())


@every_kind
def test_a_receiver_may_cancel_and_submit_at_once(kind):
    async def scene():
        async with InstanceHarness(kind, MERGED) as stage:
            items = []

            def then(part):
                items[1].cancel(LEFT)
                stage.submit()

            items += [stage.submit(then=then), stage.submit()]
            await stage.settle()
            assert stage.codes() == [None, Code.CANCELLED, None]
            assert stage.model.report().wasted == 1

    asyncio.run(scene())


@every_runner
def test_a_runner_that_raises_fails_that_batch_only(kind):
    async def scene():
        async with InstanceHarness(kind, MERGED) as stage:
            stage.submit("raise")
            stage.submit()
            await stage.settle()
            stage.submit()
            await stage.settle()
            assert stage.codes() == [Code.MODEL_FAILED, Code.MODEL_FAILED, None]
            assert stage.parts[2][0].error.message.startswith("The model raised RuntimeError: as told")

    asyncio.run(scene())


@every_runner
def test_an_error_for_one_item_touches_that_item_alone(kind):
    async def scene():
        async with InstanceHarness(kind, MERGED) as stage:
            for id in ("", "bad", ""):
                stage.submit(id)
            await stage.settle()
            assert stage.codes() == [None, BAD.code, None]
            assert stage.model.report().rows == 2

    asyncio.run(scene())


@every_runner
def test_a_wrong_number_of_outcomes_fails_the_batch(kind):
    async def scene():
        async with InstanceHarness(kind, MERGED) as stage:
            stage.submit("short")
            stage.submit()
            await stage.settle()
            stage.submit()
            await stage.settle()
            assert stage.codes() == [Code.MODEL_FAILED, Code.MODEL_FAILED, None]
            assert "1" in stage.parts[1][0].error.message

    asyncio.run(scene())


@every_kind
def test_closing_ends_what_was_started(kind):
    async def scene():
        stage, port = InstanceHarness(kind), Recorder()
        instance = await stage.launch(Placement("m_0", Isolation.THREAD), port)
        infer = type(stage.submit().operation)(model="m", payload=Tensors(()))
        stage.shut()
        for number in range(3):
            instance.start(Batch([number], [infer], [1]))
        instance.close()
        stage.script.gate.set()
        if stage.workers:
            stage.workers.open()
        if kind == "virtual":
            stage.clock.run()
        else:
            await stage.until(lambda: instance.gone.done() if kind == "process" else stage.script.closes)
            assert len(stage.workers.closed() if kind == "process" else stage.script.closes) == 1
        runs = [event.items for event in port.events if isinstance(event, Executed)]
        assert runs == [[0], [1], [2]]
        assert sum(event.count for event in port.events if isinstance(event, Credit)) == 3
        if stage.workers:
            await stage.workers.close()

    asyncio.run(scene())


@pytest.mark.parametrize("kind", [*HELD_UP, "virtual"])
@pytest.mark.parametrize("limit", ["run", "request"])
def test_what_runs_too_long_is_told_at_once(kind, limit):
    async def scene():
        limits = Limits(run_deadline=0.02) if limit == "run" else Limits()
        async with InstanceHarness(kind, limits=limits) as stage:
            stage.shut()
            item = stage.submit(deadline=None if limit == "run" else 0.02)
            if kind == "virtual":
                stage.clock.run(0.1)
            await stage.until(lambda: stage.ended)
            error = stage.parts[1][0].error
            if kind == "process" and limit == "run":  # nothing else ends what user code does
                assert error.code is Code.WORKER_DIED
                assert "not done with a batch after 0.02 s, the run deadline" in error.message
                return
            assert error.code is Code.EXPIRED
            assert ("run deadline of 0.02 s" if limit == "run" else "its deadline of 0.02 s") in error.message
            item.cancel(LEFT)
            await stage.settle()
            # It has not begun where the machine stood still for as long as its deadline.
            assert stage.model.report().wasted == stage.runs()

    asyncio.run(scene())


def test_the_run_deadline_counts_from_the_start_and_the_requests_from_receipt():
    async def scene():
        async with InstanceHarness("virtual", limits=Limits(run_deadline=1.5)) as stage:
            stage.submit()
            stage.submit()  # starts at 1, ends at 2
            stage.submit(deadline=0.5)  # ends in the queue
            stage.submit(deadline=2.5)  # would start at 2 and end at 3
            stage.clock.run(0.6)
            assert stage.ended == [3]
            stage.clock.run(2.6)
            assert stage.ended == [3, 1, 2, 4]
            await stage.settle()
            assert stage.codes() == [None, None, Code.EXPIRED, Code.EXPIRED]

    asyncio.run(scene())


@every_kind
def test_closing_the_model_tells_what_is_left(kind):
    async def scene():
        stage = InstanceHarness(kind)
        await stage.model.open()
        stage.shut()
        items = [stage.submit() for _ in range(3)]
        await stage.begun(items[0])
        await stage.model.close()
        assert sorted(stage.ended) == [1, 2, 3]
        await stage.settle()
        if stage.workers:
            await stage.workers.close()
        assert set(stage.codes()) == {Code.DRAINING}
        for lease in stage.leases:
            lease.check()

    asyncio.run(scene())
