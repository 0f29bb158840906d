"""Every operation through the core's face; cancelling; other threads."""

import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest
from tests.harness.fake_models import PATH, ServerHarness, serving, spec
from tests.harness.virtual_models import make_infer

from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.operations import (
    Describe,
    Infer,
    List,
    Live,
    Load,
    ModelDescription,
    Readiness,
    Ready,
    ServerDescription,
    Statistics,
    Unload,
    WantedOutput,
)
from trivium.types.payload import Generate, Raw, Tensor, Tensors
from trivium.types.spec import All
from trivium.types.state import ServerState


async def answer(stage, operation):
    return (await stage.server.execute(operation)).answer


async def refusal(awaitable):
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


def test_infer_is_answered_by_the_version_that_served_it():
    async def scene():
        async with serving(spec(version="1", policy=All()), spec(version="2", policy=All())) as stage:
            part = await stage.server.execute(make_infer())
            assert (part.model, part.version, part.final, part.error) == ("m", "2", True, None)
            outputs = await stage.server.infer("m", {"x": np.zeros(2, "f4")}, version="1")
            assert outputs["x"].tolist() == [1.0]

    asyncio.run(scene())


def test_only_the_wanted_outputs_come():
    async def scene():
        async with serving(spec()) as stage:
            part = await stage.server.execute(make_infer(outputs=(WantedOutput("x"),)))
            assert [tensor.name for tensor in part.payload.items] == ["x"]
            error = await refusal(stage.server.execute(make_infer(outputs=(WantedOutput("y"),))))
            assert error.code is Code.INVALID

    asyncio.run(scene())


def test_health_follows_the_server_and_its_models():
    async def scene():
        stage = ServerHarness(spec("a"), spec("b", stamp="9"))
        stage.engine.faults["9"] = ServeError(Code.LOAD_FAILED, "Damaged.")
        async with stage.server:
            assert await answer(stage, Live()) == Readiness(True)
            assert await answer(stage, Ready()) == Readiness(
                False, "The server is starting.", is_passing=True
            )
            await stage.start()
            assert await answer(stage, Ready()) == Readiness(False, "Model 'b' is failed. Damaged.")
            assert await answer(stage, Ready("a")) == Readiness(True)
            assert await answer(stage, Ready("a", "1")) == Readiness(True)
            assert (await answer(stage, Ready("b"))).reason.endswith("it is failed: Damaged.")
            assert (await answer(stage, Ready("c"))).reason.startswith("There is no model 'c'.")
            stage.engine.faults.clear()
            await answer(stage, Load("b"))
            assert await answer(stage, Ready()) == Readiness(True)
            stage.server.begin_drain()
            assert await answer(stage, Ready()) == Readiness(
                False, "The server is draining.", is_passing=True
            )
            assert await stage.stamp("a") == 1
            stage.server.begin_drain()
        assert stage.server.state is ServerState.STOPPED
        assert await answer(stage, Live()) == Readiness(False)

    asyncio.run(scene())


def test_descriptions():
    async def scene():
        async with serving(spec(version="1", policy=All()), spec(version="2", policy=All())) as stage:
            assert await answer(stage, Describe()) == ServerDescription("trivium", "0", ServerState.SERVING)
            newest, oldest = await answer(stage, Describe("m")), await answer(stage, Describe("m", "1"))
            assert isinstance(newest, ModelDescription)
            assert (newest.spec.version, newest.versions) == ("2", ("1", "2"))
            assert (oldest.spec.version, oldest.versions) == ("1", ("1", "2"))

    asyncio.run(scene())


def test_a_listing_and_statistics_are_of_all_or_of_one():
    async def scene():
        both = [spec("b", number, All()) for number in ("10", "9")]
        async with serving(*both, spec("a")) as stage:
            await stage.stamp("b", "9")
            rows = (await answer(stage, List())).versions
            assert [(row.model, row.version) for row in rows] == [("a", "1"), ("b", "9"), ("b", "10")]
            every = (await answer(stage, Statistics())).versions
            assert [(row.model, row.version, row.success.count) for row in every] == [
                ("a", "1", 0),
                ("b", "9", 1),
                ("b", "10", 0),
            ]
            assert [r.version for r in (await answer(stage, Statistics("b"))).versions] == ["9", "10"]
            assert [r.version for r in (await answer(stage, Statistics("b", "9"))).versions] == ["9"]
            assert stage.server.statistics("b", "9").success.count == 1

    asyncio.run(scene())


WRONG = {
    "no such model": (Infer(model="x", payload=Tensors(())), Code.NOT_FOUND),
    "no such version": (Infer(model="m", version="7", payload=Tensors(())), Code.NOT_FOUND),
    "no input": (Infer(model="m", payload=Tensors(())), Code.INVALID),
    "raw bytes": (Infer(model="m", payload=Raw(())), Code.INVALID),
    "a prompt": (Infer(model="m", payload=Generate(prompts=("hi",))), Code.UNSUPPORTED_MEDIA),
    "a deadline that has passed": (make_infer(deadline=-1.0), Code.EXPIRED),
    "describe what is not there": (Describe("x"), Code.NOT_FOUND),
    "describe a version that is not there": (Describe("m", "7"), Code.NOT_FOUND),
    "statistics of what is not there": (Statistics("x"), Code.NOT_FOUND),
    "statistics of a version that is not there": (Statistics("m", "7"), Code.NOT_FOUND),
    "load what is not there": (Load("x"), Code.NOT_FOUND),
    "unload what is not there": (Unload("x"), Code.NOT_FOUND),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_clients_fault_comes_through_the_sink_once(name):
    operation, code = WRONG[name]

    async def scene():
        async with serving(spec()) as stage:
            gate = stage.gate("run", "1")
            parts = []
            stage.server.submit(operation, parts.append)
            await stage.until(lambda: parts)
            gate.open()
            assert await stage.stamp() == 1
            (part,) = parts
            assert (part.final, part.error.code) == (True, code)

    asyncio.run(scene())


def test_unloading_twice_is_told():
    async def scene():
        async with serving(spec()) as stage:
            await answer(stage, Unload("m"))
            await stage.until(lambda: stage.states() == {("m", "1"): "unloaded"})
            assert (await refusal(stage.server.execute(Unload("m")))).code is Code.NOT_READY
            assert "it is unloaded" in (await refusal(stage.stamp())).message

    asyncio.run(scene())


def test_a_ticket_cancels_and_only_once():
    async def scene():
        async with serving(spec()) as stage:
            gate, parts = stage.gate("run", "1"), []
            ticket = stage.server.submit(make_infer(), parts.append)
            await gate.reached()
            why = ServeError(Code.CANCELLED, "left")
            ticket.cancel(why)
            ticket.cancel(ServeError(Code.CANCELLED, "again"))
            assert [part.error for part in parts] == [why]
            gate.open()
            assert await stage.stamp() == 1
            assert len(parts) == 1
            assert stage.server.statistics("m").wasted == 1

    asyncio.run(scene())


def test_a_cancelled_execute_cancels_its_item():
    async def scene():
        async with serving(spec()) as stage:
            gate = stage.gate("run", "1")
            first, second = stage.later(), stage.later()
            await gate.reached()
            for task in (first, second):
                task.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
            gate.open()
            assert await stage.stamp() == 1
            report = stage.server.statistics("m")
            assert report.failures == {"cancelled": 2}
            assert report.success.count == 1

    asyncio.run(scene())


def test_a_ticket_of_what_has_ended_does_nothing():
    async def scene():
        async with serving(spec()) as stage:
            parts = []
            for operation in (Live(), Infer(model="x", payload=Tensors(()))):
                stage.server.submit(operation, parts.append).cancel(ServeError(Code.CANCELLED, "late"))
            assert len(parts) == 2

    asyncio.run(scene())


def test_other_threads_execute_synchronously():
    async def scene():
        async with serving(spec()) as stage:
            answers = []

            def work():
                answers.append(stage.server.execute_sync(make_infer()).payload["x"].tolist())
                with pytest.raises(ServeError) as caught:
                    stage.server.execute_sync(Infer(model="x", payload=Tensors(())))
                answers.append(caught.value.code)

            thread = threading.Thread(target=work)
            thread.start()
            await asyncio.get_running_loop().run_in_executor(None, thread.join, 10)
            assert answers == [[1.0], Code.NOT_FOUND]

    asyncio.run(scene())


def test_a_lent_body_comes_back_when_both_are_done_with_it():
    async def scene():
        async with serving(spec()) as stage:
            back = []
            view = memoryview(bytearray(8))
            lease = Lease(view, back.append)
            tensor = Tensor("x", make_infer().payload.items[0].datatype, (2,), np.frombuffer(view, "<f4"))
            await stage.server.execute(Infer(model="m", payload=Tensors((tensor,), lease)))
            assert back == []
            lease.release()
            assert back == [lease]

    asyncio.run(scene())


def test_a_path_nobody_knows_is_refused_when_it_is_added():
    async def scene():
        async with ServerHarness().server as server:
            with pytest.raises(ServeError, match="Known formats are: made-up: any path"):
                server.add(PATH.parent)

    asyncio.run(scene())


def test_a_format_that_breaks_fails_the_operation_and_not_the_server():
    async def scene():
        async with serving(spec()) as stage:
            stage.form.specs = None
            error = await refusal(asyncio.wait_for(stage.server.execute(Load("m")), 1))
            assert (error.code, "TypeError" in error.message) == (Code.INTERNAL, True)
            assert await stage.stamp() == 1

    asyncio.run(scene())


def test_a_refusal_is_freed_with_its_part():
    """Without the garbage collector: anybody can ask for what is not there, as often as he likes."""
    found = []

    async def scene():
        async with serving(spec()) as stage:
            for operation in (Describe("nobody"), Statistics("nobody"), Infer("nobody", Raw(()))):
                stage.server.submit(operation, lambda part: found.append(weakref.ref(part.error)))

    gc.disable()
    try:
        asyncio.run(scene())
        assert len(found) == 3
        assert [error() for error in found] == [None] * 3
    finally:
        gc.enable()
