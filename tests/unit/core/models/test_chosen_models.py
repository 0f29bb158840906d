"""Which of the models that there are a server starts with, when it is ready all the same, and how often it tries."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.fake_models import PATH, ServerHarness, no_facts, serving, spec

from trivium.core.models.repository import ModelEntry, chosen
from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.translators.engine import engine_finder
from trivium.types.core_config import CoreConfig
from trivium.types.errors import Code, ServeError
from trivium.types.operations import List, Load, Readiness, Ready
from trivium.types.schedules import Graph, Step
from trivium.types.spec import InvalidModel, ReadResult

FAULT = ServeError(Code.LOAD_FAILED, "Damaged.")


def found(name, *members):
    one = spec(name)
    steps = tuple(Step(member, "", {}, {}) for member in members)
    return ModelEntry(name, (replace(one, scheduling=Graph(steps)) if steps else one,), None)


def unreadable(name):
    return InvalidModel(name, Path(name), ())


@pytest.mark.parametrize(
    ("names", "loaded", "refused"),
    [
        ((), [], []),
        (("a",), ["a"], []),
        (("a", "a"), ["a"], []),
        (("graph",), ["a", "b", "graph"], []),
        (("outer",), ["a", "b", "graph", "outer"], []),
        (("bad", "a"), ["a"], ["bad"]),
        (("none", "none", "c"), ["c"], ["none"]),
    ],
)
def test_names_with_what_they_need(names, loaded, refused):
    there = [found("a"), found("b"), found("c"), found("graph", "a", "b"), found("outer", "graph")]
    models, broken = chosen(there, [unreadable("bad"), unreadable("worse")], names)
    assert [model.name for model in models] == loaded
    assert [one.name for one in broken] == refused


def states(stage):
    return {(row.model, row.version): row.state.value for row in stage.server.list().versions}


def test_others_are_known_and_can_be_loaded_later():
    async def scene():
        stage = ServerHarness(spec("a"), spec("b"))
        stage.form.broken = (unreadable("bad"),)
        async with stage.server as server:
            server.add(PATH)
            await server.start(only=("a",))
            assert states(stage) == {("a", "1"): "ready", ("b", ""): "registered", ("bad", ""): "registered"}
            assert (await server.execute(Ready())).answer == Readiness(True)
            assert [row.model for row in (await server.execute(List(True))).answer.versions] == ["a"]
            await server.execute(Load("b"))
            assert states(stage)["b", "1"] == "ready"
            assert ("b", "") not in states(stage)
            assert await stage.stamp("b") == 1

    asyncio.run(scene())


def test_a_name_that_is_not_there_has_failed():
    async def scene():
        stage = ServerHarness(spec("a"))
        async with stage.server as server:
            server.add(PATH)
            await server.start(only=("none",))
            assert states(stage) == {("a", ""): "registered", ("none", ""): "failed"}
            assert not (await server.execute(Ready())).answer.ready

    asyncio.run(scene())


def test_a_lenient_server_is_ready_whatever_did_not_load():
    async def scene():
        stage = ServerHarness(spec("a"), spec("b", stamp="9"), config=CoreConfig(is_lenient=True))
        stage.engine.faults["9"] = FAULT
        async with stage.server as server:
            assert (await server.execute(Ready())).answer == Readiness(
                False, "The server is starting.", is_passing=True
            )
            await stage.start()
            assert (await server.execute(Ready())).answer == Readiness(True)
            server.begin_drain()
            assert not (await server.execute(Ready())).answer.ready

    asyncio.run(scene())


def test_a_form_that_is_given_is_not_asked_whether_it_claims():
    async def scene():
        stage = ServerHarness(spec("a"))
        async with stage.server as server:
            server.add(Path("nobody claims this"), stage.form)
            await server.start()
            assert states(stage) == {("a", "1"): "ready"}

    asyncio.run(scene())


@asynccontextmanager
async def with_defaults(stage, **defaults):
    find_engine = engine_finder({"made-up": stage.engine}, {})
    server = Server([stage.form], find_engine, CoreServices(no_facts), CoreConfig(**defaults))
    stage.server = server
    async with server:
        yield server


def test_names_are_unique_if_told():
    class Twice:
        name, expects = "twice", ""

        def claims(self, path):
            return True

        def read(self, path, defaults):
            names = {"one": ("a", "b"), "two": ("b", "c")}[path.name]
            return ReadResult(tuple(spec(name) for name in names))

        def finish(self, one, facts):
            return one

    async def scene():
        stage = ServerHarness()
        stage.form = Twice()
        async with with_defaults(stage, unique_names=True) as server:
            for path in ("one", "two"):
                server.add(Path(path))
            await server.start()
            assert states(stage) == {("a", "1"): "ready", ("b", ""): "failed", ("c", "1"): "ready"}

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("retries", "failures", "state"), [(0, 1, "failed"), (2, 2, "ready"), (2, 3, "failed")]
)
def test_loading_is_tried_as_often_as_told(retries, failures, state):
    async def scene():
        stage = ServerHarness(spec("a"))
        opened = stage.engine.open
        left = [failures]

        def open_at_last(one, placement):
            left[0] -= 1
            if left[0] >= 0:
                raise FAULT
            return opened(one, placement)

        stage.engine.open = open_at_last
        async with with_defaults(stage, load_retries=retries):
            await stage.start()
            assert states(stage) == {("a", "1"): state}
            assert stage.progress == [("a", "1", "loading"), ("a", "1", state)]

    asyncio.run(scene())


def test_who_watches_is_told_of_reloads_though_the_version_serves_on():
    async def scene():
        async with serving(spec("a")) as stage:
            stage.progress.clear()
            await stage.server.execute(Load("a"))
            assert stage.progress == [("a", "1", "loading"), ("a", "1", "ready")]
            stage.progress.clear()
            stage.engine.faults["1"] = FAULT
            with pytest.raises(ServeError):
                await stage.server.execute(Load("a"))
            assert stage.progress == [("a", "1", "loading"), ("a", "1", "failed")]
            assert stage.states() == {("a", "1"): "ready"}

    asyncio.run(scene())


def test_without_names_everything_is_loaded():
    async def scene():
        async with serving(spec("a"), spec("b")) as stage:
            assert stage.states() == {("a", "1"): "ready", ("b", "1"): "ready"}

    asyncio.run(scene())
