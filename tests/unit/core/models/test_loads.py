"""First loads with made-up formats and engines: what is known when, what fails alone, what is told without one."""

import asyncio
import threading
from dataclasses import replace

import pytest
from tests.harness.fake_models import PATH, ServerHarness, serving, spec

from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.operations import Load
from trivium.types.spec import All, InvalidModel, Latest, ModelFacts, Origin, Specific
from trivium.types.state import VersionState

TYPO = Finding(Severity.ERROR, "config.pbtxt", 3, "nam", "no such field")
BROKEN = ServeError(Code.LOAD_FAILED, "The file is damaged.")


def broken(name="m"):
    return InvalidModel(name, spec().root, (TYPO,))


async def refusal(awaitable):
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


def test_a_model_is_known_before_it_is_loaded_and_ready_after():
    async def scene():
        stage = ServerHarness(spec())
        gate = stage.gate("open", "1")
        async with stage.server:
            starting = asyncio.ensure_future(stage.start())
            await gate.reached()
            assert stage.states() == {("m", "1"): "loading"}
            error = await refusal(stage.stamp())
            assert (error.code, error.message) == (
                Code.NOT_READY,
                "Model 'm' version 1 does not serve; it is loading.",
            )
            gate.open()
            listing = await starting
            assert [row.state for row in listing.versions] == [VersionState.READY]
            assert await stage.stamp() == 1
        assert stage.progress[:2] == [("m", "1", "loading"), ("m", "1", "ready")]
        await stage.until(lambda: stage.engine.closed == ["1"])

    asyncio.run(scene())


def test_models_load_side_by_side():
    async def scene():
        stage = ServerHarness(*(spec(name) for name in "abcd"))
        together, opened = threading.Barrier(4), stage.engine.open

        def opening(spec, placement):
            together.wait(10)
            return opened(spec, placement)

        stage.engine.open = opening
        async with stage.server:
            await stage.start()
            assert set(stage.states().values()) == {"ready"}

    asyncio.run(scene())


def test_one_that_fails_says_why_and_its_neighbours_serve():
    async def scene():
        stage = ServerHarness(spec("bad", stamp="9"), spec("good"))
        stage.engine.faults["9"] = BROKEN
        async with stage.server:
            listing = await stage.start()
            assert [(row.model, row.state.value, row.reason) for row in listing.versions] == [
                ("bad", "failed", "The file is damaged."),
                ("good", "ready", ""),
            ]
            assert await stage.stamp("good") == 1
            error = await refusal(stage.stamp("bad"))
            assert error.message == "Model 'bad' version 1 does not serve; it is failed: The file is damaged."
            stage.engine.faults.clear()
            await stage.server.execute(Load("bad"))
            assert await stage.stamp("bad") == 9

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("policy", "serve"),
    [(All(), {"1", "2", "3"}), (Specific(frozenset("13")), {"1", "3"}), (Latest(2), {"2", "3"})],
)
def test_versions_by_policy(policy, serve):
    async def scene():
        async with serving(*(spec(version=number, policy=policy) for number in "123")) as stage:
            assert {version for _, version in stage.states()} == serve
            for version in serve:
                assert await stage.stamp(version=version) == int(version)
            assert await stage.stamp() == 3
            for version in set("1234") - serve:
                assert (await refusal(stage.stamp(version=version))).code is Code.NOT_FOUND

    asyncio.run(scene())


def test_an_engine_that_there_is_not_is_named():
    async def scene():
        one = spec()
        object.__setattr__(one, "engine", "torch")
        async with serving(one) as stage:
            error = await refusal(stage.stamp())
            assert error.message.endswith(
                "Model 'm' wants engine 'torch' (as read); this server has: made-up. "
                "Convert it to a form that one of them runs, or write it as a handler in Python."
            )
            assert (await stage.server.examine())[1][0].findings[0].found.startswith("Model 'm' wants engine")

    asyncio.run(scene())


def test_a_fault_of_ours_fails_that_model_alone(caplog):
    async def scene():
        stage = ServerHarness(spec("a", stamp="7"), spec("b"))
        stage.engine.has_facts = True

        def finish(spec, facts):
            if spec.name == "a":
                raise ZeroDivisionError("oops")
            return spec

        stage.form.finish = finish
        async with stage.server:
            await stage.start()
            assert "Loading failed: ZeroDivisionError: oops" in (await refusal(stage.stamp("a"))).message
            assert await stage.stamp("b") == 1
        assert "loading model 'a' version 1 failed" in caplog.text

    asyncio.run(scene())


def test_what_the_model_file_says_completes_the_spec():
    async def facts(spec):
        details = {"age": ("9 years", "its label"), "name": ("another", "a guess")}
        return ModelFacts(spec.inputs, (), True, ("it is old",), details=details)

    async def scene():
        told = replace(spec(), details={"name": "its own"}, origin={"details[name]": Origin("a file", "k")})
        stage = ServerHarness(told, facts=facts)
        stage.engine.has_facts = True
        async with stage.server:
            await stage.start()
            (served,) = stage.server.specs()
            assert [str(finding) for finding in served.reports] == ["/nowhere: it is old"]
            assert served.details == {"age": "9 years", "name": "its own"}
            origins = {name: str(origin) for name, origin in served.origin.items()}
            assert origins == {"details[age]": "its label", "details[name]": "a file (k)"}
            ((examined,), unreadable) = await stage.server.examine()
            assert (examined, unreadable) == (served, [])

    asyncio.run(scene())


def test_examine_tells_what_would_not_be_served_and_loads_nothing():
    async def scene():
        stage = ServerHarness(spec("a"), spec("b"))
        stage.form.broken = [broken("c")]
        stage.engine.has_facts = True

        def finish(spec, facts):
            if spec.name == "b":
                raise ConfigError((TYPO,))
            return spec

        stage.form.finish = finish
        async with stage.server:
            stage.server.add(PATH)
            specs, unreadable = await stage.server.examine()
            assert [one.name for one in specs] == ["a"]
            assert [(one.name, one.findings) for one in unreadable] == [("c", (TYPO,)), ("b", (TYPO,))]
            assert stage.states() == {}

    asyncio.run(scene())
