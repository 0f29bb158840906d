"""Reloads and unloads with made-up formats and engines: what serves meanwhile, and what is left."""

import asyncio

import pytest
from tests.harness.fake_models import ServerHarness, serving, spec

from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.operations import Load, Unload
from trivium.types.spec import InvalidModel, Limits
from trivium.types.state import VersionState

TYPO = Finding(Severity.ERROR, "config.pbtxt", 3, "nam", "no such field")
BROKEN = ServeError(Code.LOAD_FAILED, "The file is damaged.")


def broken(name="m"):
    return InvalidModel(name, spec().root, (TYPO,))


async def refusal(awaitable):
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


def test_a_reload_that_fails_leaves_the_old_one_serving():
    async def scene():
        async with serving(spec()) as stage:
            stage.form.specs = [spec(stamp="2")]
            stage.engine.faults["2"] = BROKEN
            assert (await refusal(stage.server.execute(Load("m")))).message == "The file is damaged."
            assert await stage.stamp() == 1
            assert stage.states() == {("m", "1"): "ready"}

    asyncio.run(scene())


def test_a_new_version_that_fails_leaves_the_old_version_serving():
    async def scene():
        async with serving(spec()) as stage:
            stage.form.specs = [spec(), spec(version="2")]
            stage.engine.faults["2"] = BROKEN
            await refusal(stage.server.execute(Load("m")))
            assert await stage.stamp() == 1
            assert stage.states() == {("m", "1"): "ready", ("m", "2"): "failed"}

    asyncio.run(scene())


def test_a_reload_swaps_without_a_gap_and_drains_the_old():
    async def scene():
        async with serving(spec()) as stage:
            running, opening = stage.gate("run", "1"), stage.gate("open", "2")
            old = stage.later()
            await running.reached()
            stage.form.specs = [spec(stamp="2")]
            loading = asyncio.ensure_future(stage.server.execute(Load("m")))
            await opening.reached()
            meanwhile = stage.later()
            await asyncio.sleep(0)
            opening.open()
            await loading
            assert await stage.stamp() == 2
            assert not old.done()
            assert stage.engine.closed == []
            running.open()
            assert [await old, await meanwhile] == [1, 1]
            await stage.until(lambda: stage.engine.closed == ["1"])
            assert stage.states() == {("m", "1"): "ready"}

    asyncio.run(scene())


def test_an_unload_returns_at_once_and_what_is_in_flight_finishes():
    async def scene():
        async with serving(spec()) as stage:
            running = stage.gate("run", "1")
            items = [stage.later() for _ in range(3)]
            await running.reached()
            listing = (await stage.server.execute(Unload("m"))).answer
            assert [row.state for row in listing.versions] == [VersionState.UNLOADING]
            error = await refusal(stage.stamp())
            assert (error.code, error.message) == (
                Code.NOT_READY,
                "Model 'm' version 1 does not serve; it is unloading.",
            )
            assert stage.engine.closed == []
            running.open()
            assert await asyncio.gather(*items) == [1, 1, 1]
            await stage.until(lambda: stage.states() == {("m", "1"): "unloaded"})
            await stage.until(lambda: stage.engine.closed == ["1"])

    asyncio.run(scene())


def test_what_is_in_flight_for_too_long_after_an_unload_is_ended():
    async def scene():
        async with serving(spec(limits=Limits(drain_seconds=0.0))) as stage:
            running = stage.gate("run", "1")
            item = stage.later()
            await running.reached()
            await stage.server.execute(Unload("m"))
            error = await refusal(item)
            assert error.code is Code.DRAINING
            assert (
                error.message == "Model 'm' version 1 was unloaded, and this request was not done 0 s later."
            )
            running.open()
            await stage.until(lambda: stage.engine.closed == ["1"])
            await stage.until(lambda: stage.states() == {("m", "1"): "unloaded"})

    asyncio.run(scene())


def test_a_load_during_an_unload_serves_while_the_old_one_drains():
    async def scene():
        async with serving(spec()) as stage:
            running = stage.gate("run", "1")
            old = stage.later()
            await running.reached()
            await stage.server.execute(Unload("m"))
            stage.form.specs = [spec(stamp="2")]
            await stage.server.execute(Load("m"))
            assert await stage.stamp() == 2
            running.open()
            assert await old == 1
            await stage.until(lambda: stage.engine.closed == ["1"])
            assert stage.states() == {("m", "1"): "ready"}

    asyncio.run(scene())


def test_an_unload_during_a_reload_comes_after_it():
    async def scene():
        async with serving(spec()) as stage:
            opening = stage.gate("open", "2")
            stage.form.specs = [spec(stamp="2")]
            loading = asyncio.ensure_future(stage.server.execute(Load("m")))
            await opening.reached()
            unloading = asyncio.ensure_future(stage.server.execute(Unload("m")))
            await asyncio.sleep(0)
            assert await stage.stamp() == 1
            opening.open()
            await asyncio.gather(loading, unloading)
            await stage.until(lambda: sorted(stage.engine.closed) == ["1", "2"])
            await stage.until(lambda: stage.states() == {("m", "1"): "unloaded"})

    asyncio.run(scene())


def test_a_broken_configuration_after_a_good_one_leaves_the_good_one():
    async def scene():
        async with serving(spec()) as stage:
            stage.form.specs, stage.form.broken = [], [broken()]
            error = await refusal(stage.server.execute(Load("m")))
            assert (error.code, error.message) == (Code.LOAD_FAILED, str(TYPO))
            assert await stage.stamp() == 1
            assert stage.states() == {("m", "1"): "ready"}

    asyncio.run(scene())


def test_a_broken_configuration_mended_is_forgotten():
    async def scene():
        stage = ServerHarness()
        stage.form.broken = [broken()]
        async with stage.server:
            await stage.start()
            assert stage.states() == {("m", ""): "failed"}
            assert str(TYPO) in (await refusal(stage.stamp())).message
            assert (await refusal(stage.server.execute(Load("m")))).message == str(TYPO)
            stage.form.specs, stage.form.broken = [spec()], []
            await stage.server.execute(Load("m"))
            assert stage.states() == {("m", "1"): "ready"}

    asyncio.run(scene())


def test_a_folder_deleted_while_it_serves_goes_on_serving():
    async def scene():
        async with serving(spec(), spec("other")) as stage:
            stage.form.specs = [spec("other")]
            error = await refusal(stage.server.execute(Load("m")))
            assert error.code is Code.NOT_FOUND
            assert error.message == ("No folder or file of model 'm' was found; the paths served hold other.")
            assert await stage.stamp() == 1

    asyncio.run(scene())


def test_a_new_version_is_loaded_before_the_old_one_is_dropped():
    async def scene():
        async with serving(spec()) as stage:
            opening = stage.gate("open", "2")
            stage.form.specs = [spec(), spec(version="2")]
            loading = asyncio.ensure_future(stage.server.execute(Load("m")))
            await opening.reached()
            assert await stage.stamp() == 1
            opening.open()
            await loading
            assert await stage.stamp() == 2
            await stage.until(lambda: stage.states() == {("m", "1"): "unloaded", ("m", "2"): "ready"})
            await stage.server.execute(Load("m"))
            assert stage.states() == {("m", "2"): "ready"}

    asyncio.run(scene())
