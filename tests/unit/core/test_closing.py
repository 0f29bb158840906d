"""Going down: what is in flight finishes or is told, and nothing stays open."""

import asyncio
import threading

import pytest
from tests.harness.fake_models import ServerHarness, serving, spec
from tests.harness.virtual_models import make_infer

from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Load, Unload
from trivium.types.payload import Tensors
from trivium.types.spec import InstanceGroup
from trivium.types.state import ServerState


async def refusal(awaitable):
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


def test_what_is_in_flight_is_answered_before_the_end():
    async def scene():
        async with serving(spec()) as stage:
            gate = stage.gate("run", "1")
            items = [stage.later() for _ in range(3)]
            await gate.reached()
            closing = asyncio.ensure_future(stage.server.close())
            await asyncio.sleep(0)
            assert not closing.done()
            assert stage.server.state is ServerState.DRAINING
            gate.open()
            await closing
            assert await asyncio.gather(*items) == [1, 1, 1]
            await stage.until(lambda: stage.engine.closed == ["1"])

    asyncio.run(scene())


def test_what_outlasts_the_grace_is_told_and_its_thread_ends_in_peace():
    gates = []

    async def scene():
        async with serving(spec()) as stage:
            gates.append(stage.gate("run", "1"))
            items = [stage.later() for _ in range(3)]
            await gates[0].reached()
            await stage.server.close(grace=0.0)
            async with asyncio.timeout(5):
                told = await asyncio.gather(*items, return_exceptions=True)
            assert [error.code for error in told] == [Code.DRAINING] * 3
            assert len(told[0].message) > 20
            return stage.engine

    engine = asyncio.run(scene())
    gates[0].open()
    assert engine.ended.wait(5)
    for thread in threading.enumerate():
        if thread.name == "m_0":
            thread.join(5)


def test_a_model_that_still_drains_is_given_up_as_well():
    gates = []

    async def scene():
        async with serving(spec()) as stage:
            gates.append(stage.gate("run", "1"))
            item = stage.later()
            await gates[0].reached()
            await stage.server.execute(Unload("m"))
            await stage.server.close(grace=0.0)
            async with asyncio.timeout(5):
                assert (await refusal(item)).code is Code.DRAINING
            return stage.engine

    engine = asyncio.run(scene())
    gates[0].open()
    assert engine.ended.wait(5)


def test_a_load_that_has_not_ended_is_given_up_and_leaves_nothing_open():
    async def scene():
        async with serving(spec()) as stage:
            gate = stage.gate("open", "2")
            stage.form.specs = [spec(stamp="2")]
            loading = asyncio.ensure_future(stage.server.execute(Load("m")))
            await gate.reached()
            closing = asyncio.ensure_future(stage.server.close())
            await asyncio.sleep(0)
            gate.open()
            async with asyncio.timeout(5):
                await closing
                assert (await refusal(loading)).code is Code.DRAINING
            await stage.until(lambda: sorted(stage.engine.closed) == ["1", "2"])
            assert stage.states() == {("m", "1"): "unloaded"}

    asyncio.run(scene())


def test_a_start_that_is_cancelled_leaves_nothing_open():
    async def scene():
        stage = ServerHarness(spec("a"), spec("b", stamp="2"))
        two = spec("a")
        object.__setattr__(two, "groups", (InstanceGroup("a", 2, 2),))
        stage.form.specs = [two]
        first, opened, count = stage.engine.open, [], threading.Semaphore(1)
        gate = stage.gate("open", "late")

        def opening(spec, placement):
            if not count.acquire(blocking=False):
                gate.enter()
            opened.append(placement.name)
            return first(spec, placement)

        stage.engine.open = opening
        async with stage.server:
            starting = asyncio.ensure_future(stage.start())
            await gate.reached()
            await stage.until(lambda: len(opened) == 1)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            gate.open()
        await stage.until(lambda: stage.engine.closed == ["1", "1"])

    asyncio.run(scene())


def test_after_the_end_requests_are_told_so():
    async def scene():
        async with serving(spec()) as stage:
            await stage.server.close()
            await stage.server.close()
            assert stage.server.state is ServerState.STOPPED
            error = await refusal(stage.stamp())
            assert error.message == "Model 'm' version 1 does not serve; it is unloaded: unloaded"
            assert (await refusal(stage.server.execute(Load("m")))).code is Code.DRAINING
            parts = []
            stage.server.submit(Infer(model="x", payload=Tensors(())), parts.append)
            stage.server.submit(make_infer(), parts.append)
            assert [part.error.code for part in parts] == [Code.NOT_FOUND, Code.NOT_READY]

    asyncio.run(scene())


def test_a_server_that_never_started_closes():
    async def scene():
        async with ServerHarness(spec()).server as server:
            pass
        assert server.state is ServerState.STOPPED

    asyncio.run(scene())
