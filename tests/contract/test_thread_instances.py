"""What threads alone can get wrong: lost wake-ups, kept buffers, two workers on one queue."""

import asyncio
import gc
import threading
import weakref

import numpy as np
from tests.harness.instances import LEFT, InstanceHarness, Recorder, Script
from tests.harness.virtual_models import make_infer

from trivium.core.instances.thread import ThreadInstance
from trivium.types.datatype import DataType
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch, Executed
from trivium.types.spec import Batching, Limits

MANY = 20_000


def test_twenty_thousand_items_over_two_instances_end_once_each():
    async def scene():
        limits = Limits(queue_items=MANY)
        async with InstanceHarness("thread", Batching(True, 16, merge=True), 2, limits=limits) as stage:
            infer, ends = make_infer(1), []
            for number in range(1, MANY + 1):
                stage.model.submit(number, infer, lambda part, n=number: ends.append((n, part.error)))
                if number % 50 == 0:
                    await asyncio.sleep(0)
            await stage.settle()
            assert sorted(ends) == [(number, None) for number in range(1, MANY + 1)]
            assert len(stage.script.ran) == MANY
            assert stage.model.report().success.count == MANY
            assert stage.has_all_back()
            stage.check = lambda: None

    asyncio.run(scene())


def test_one_by_one_with_a_lead_and_cancellations():
    async def scene():
        async with InstanceHarness("thread", instances=2) as stage:
            for number in range(1, 2001):
                item = stage.submit()
                if number % 5 == 0:
                    item.cancel(LEFT)
                if number % 3 == 0:
                    await asyncio.sleep(0)
                    item.cancel(LEFT)
            await stage.settle()
            report = stage.model.report()
            assert report.fail.count >= 400
            assert report.wasted + report.success.count == len(stage.script.ran)

    asyncio.run(scene())


def test_a_sleeping_thread_is_woken_once_for_all_that_is_handed_over():
    async def scene():
        script, port, calls = Script(), Recorder(), []
        instance = ThreadInstance(script, port, "t", calls.append)
        stage = InstanceHarness("thread")
        await stage.until(lambda: instance.sleeps)
        for number in range(3):
            instance.start(Batch([number], [make_infer()], [1]))
        assert len(calls) == 1
        assert port.events == []
        calls.pop()()
        await stage.until(lambda: len(script.ran) == 3)
        await stage.until(lambda: instance.sleeps)
        assert [event.items for event in port.events if isinstance(event, Executed)] == [[0], [1], [2]]
        instance.close()
        await stage.until(lambda: script.closes)
        assert calls == []

    asyncio.run(scene())


def test_a_sleeping_thread_holds_no_buffer():
    async def scene():
        async with InstanceHarness("thread") as stage:
            array = np.zeros((1, 2), "<f4")
            kept = weakref.ref(array)
            tensors = Tensors((Tensor("x", DataType.FP32, (1, 2), array),))
            stage.model.submit(1, Infer(model="m", payload=tensors), lambda part: None)
            del array, tensors
            await stage.settle()
            await stage.until(lambda: gc.collect() is not None and kept() is None)
            stage.check = lambda: None

    asyncio.run(scene())


def test_a_runner_that_cannot_close_is_only_logged(caplog):
    async def scene():
        script = Script()
        stage = InstanceHarness("thread")

        def close():
            script.closes.append("tried")
            raise OSError("busy")

        script.close = close
        instance = ThreadInstance(script, Recorder(), "t", asyncio.get_running_loop().call_soon)
        instance.close()
        await stage.until(lambda: "t" not in [thread.name for thread in threading.enumerate()])
        assert script.closes == ["tried"]
        assert "closing a model failed in thread t" in caplog.text
        assert stage.ended == []

    asyncio.run(scene())
