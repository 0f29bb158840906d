"""Graphs that bring their models with them: read and served with the first, shared, and gone with the last."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.fake_models import PATH, FakeFormat, ServerHarness, spec
from tests.harness.virtual_models import X

from trivium.core.models.broadcasts import have_made, have_undone
from trivium.core.models.sources import MemberSources, Source
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import DescribeAll, Infer, Register, Remembered, Scale
from trivium.types.payload import Tensor, Tensors
from trivium.types.schedules import Graph, Step
from trivium.types.sources import ModelSource
from trivium.types.spec import All, InvalidModel, ReadResult, StandingCall
from trivium.types.state import VersionState

ONE = replace(X, dims=(1,))


def source(name, path=None, version=""):
    return ModelSource(path or f"/models/{name}", name, version)


def graph(name, *members, version="1", **fields):
    """A graph that runs these one behind the other."""
    values = ["in", *(f"v{i}" for i in range(1, len(members))), "out"]
    steps = tuple(
        Step(one.name, one.version, takes=(values[i],), gives=values[i + 1]) for i, one in enumerate(members)
    )
    made = spec(name, version, policy=All(), inputs=(), outputs=(), **fields)
    return replace(made, scheduling=Graph(steps, input="in", output="out"))


class GraphFormat(FakeFormat):
    """Reads what `paths` says of each path; `brings` has the sources of a graph by its name and version."""

    def __init__(self, *specs):
        super().__init__(*specs)
        self.paths, self.brings = {}, {}

    def claims(self, path):
        return path == PATH or str(path) in self.paths

    def read(self, path, defaults):
        specs = self.specs if path == PATH else self.paths[str(path)]
        good = tuple(one for one in specs if not isinstance(one, InvalidModel))
        return ReadResult(good, tuple(one for one in specs if isinstance(one, InvalidModel)))

    def read_source(self, path, source, defaults):
        return self.read(path, defaults)

    def members(self, spec):
        return self.brings.get((spec.name, spec.version), ())

    def add(self, name, *members, version="1"):
        """A graph below its own path, which brings these; and a plain model for each of them."""
        for one in members:
            self.paths.setdefault(one.uri, (spec(one.name, one.version or "1", stamp="7", inputs=(ONE,)),))
        path = f"/graphs/{name}/{version}"
        self.paths[path] = (graph(name, *members, version=version),)
        self.brings[name, version] = members
        return path


class Scene(ServerHarness):
    def __init__(self, *specs):
        super().__init__(form=GraphFormat(*specs))

    def states(self):
        return {(row.model, row.version): row.state for row in self.server.list().versions}

    async def ask(self, model):
        payload = (await self.server.execute(Infer(model, one_number()))).payload
        return payload["x"].tolist()

    async def settled(self, *models):
        """Wait until these models alone are known."""
        while {model for model, _ in self.states()} != set(models):
            await asyncio.sleep(0)


def one_number():
    return Tensors((Tensor("x", DataType.FP32, (1,), np.zeros(1, "<f4")),))


def played(play, *specs):
    async def scene():
        stage = Scene(*specs)
        async with stage.server:
            await play(stage)

    asyncio.run(scene())


A, B = source("a"), source("b")


def test_members_are_served_with_their_graph_and_go_with_it():
    async def play(stage):
        await stage.start()
        rows = await stage.server.register(stage.form.add("g", A, B))
        assert [(row.model, row.state) for row in rows] == [("g", VersionState.READY)]
        assert set(stage.states().values()) == {VersionState.READY}
        assert await stage.ask("g") == [7]
        await stage.server.unregister("g")
        await stage.settled("m")
        specs, broken = await stage.server.examine()
        assert ([one.name for one in specs], broken) == (["m"], [])

    played(play, spec())


def test_two_graphs_share_a_member_from_the_same_source_and_the_last_takes_it_along():
    async def play(stage):
        await stage.start()
        await stage.server.register(stage.form.add("g", A, B))
        await stage.server.register(stage.form.add("h", B))
        assert set(stage.states()) == {("m", "1"), ("a", "1"), ("b", "1"), ("g", "1"), ("h", "1")}
        await stage.server.unregister("g")
        await stage.settled("m", "b", "h")
        assert await stage.ask("h") == [7]
        await stage.server.unregister("h")
        await stage.settled("m")

    played(play, spec())


def test_versions_of_a_graph_share_their_members():
    async def play(stage):
        await stage.start()
        await stage.server.register(stage.form.add("g", A))
        await stage.server.register(stage.form.add("g", A, version="2"))
        await stage.server.unregister("g", "1")
        for _ in range(20):
            await asyncio.sleep(0)
        assert ("a", "1") in stage.states()
        await stage.server.unregister("g", "2")
        await stage.settled("m")

    played(play, spec())


def test_a_member_of_a_name_that_another_source_has_is_a_conflict():
    async def play(stage):
        await stage.start()
        await stage.server.register(stage.form.add("g", A))
        with pytest.raises(ServeError) as caught:
            await stage.server.register(stage.form.add("h", source("a", "/elsewhere/a")))
        assert caught.value.code is Code.CONFLICT
        assert set(stage.states()) == {("m", "1"), ("a", "1"), ("g", "1")}
        assert await stage.ask("g") == [7]

    played(play, spec())


def test_what_a_model_of_its_own_serves_is_no_member_and_stays():
    async def play(stage):
        await stage.start()
        path = stage.form.add("g", A)
        await stage.server.register("/models/a", name="a")
        with pytest.raises(ServeError) as caught:
            await stage.server.register(path.replace("/1", "/none"))
        assert caught.value.code is Code.NOT_FOUND
        await stage.server.register(path)
        await stage.server.unregister("g")
        await stage.settled("m", "a")

    played(play, spec())


@pytest.mark.parametrize("waits", [True, False])
def test_graphs_that_come_at_the_same_time_share_what_is_being_loaded(waits):
    async def play(stage):
        await stage.start()
        paths = [stage.form.add("g", A, B), stage.form.add("h", B, A), stage.form.add("i", A)]
        wishes = [Register(ModelSource(path, path.split("/")[2]), wait=waits) for path in paths]
        await asyncio.gather(*(stage.server.execute(wish) for wish in wishes))
        while list(stage.states().values()) != [VersionState.READY] * 6:  # m, a, b and the three
            await asyncio.sleep(0)
        for name in ("g", "h", "i"):
            assert await stage.ask(name) == [7]
            await stage.server.unregister(name)
        await stage.settled("m")

    played(play, spec())


def test_a_graph_that_comes_while_another_goes_keeps_what_it_needs():
    async def play(stage):
        await stage.start()
        await stage.server.register(stage.form.add("g", A))
        path = stage.form.add("h", A, B)
        await asyncio.gather(stage.server.register(path), stage.server.unregister("g"))
        for _ in range(50):
            await asyncio.sleep(0)
        assert await stage.ask("h") == [7]
        await stage.server.unregister("h")
        await stage.settled("m")

    played(play, spec())


def test_a_graph_that_fails_leaves_no_member_behind_that_another_was_to_take_along():
    async def play(stage):
        await stage.start()
        await stage.server.register(stage.form.add("g", A))
        path = stage.form.add("h", A, B)
        stage.form.paths[B.uri] = (spec("b", stamp="8"),)
        stage.engine.faults["8"] = ServeError(Code.LOAD_FAILED, "no memory")
        results = await asyncio.gather(
            stage.server.register(path), stage.server.unregister("g"), return_exceptions=True
        )
        assert isinstance(results[0], ServeError)
        await stage.settled("m")

    played(play, spec())


@pytest.mark.parametrize("kind", ["absent", "broken", "does not open"])
def test_a_member_that_cannot_be_served_leaves_nothing(kind):
    async def play(stage):
        await stage.start()
        path = stage.form.add("g", A, B)
        if kind == "absent":
            del stage.form.paths[B.uri]
        elif kind == "broken":
            stage.form.paths[B.uri] = (InvalidModel("b", Path("/models/b"), ()),)
        else:
            stage.form.paths[B.uri] = (spec("b", stamp="8"),)
            stage.engine.faults["8"] = ServeError(Code.LOAD_FAILED, "no memory")
        with pytest.raises(ServeError):
            await stage.server.register(path)
        await stage.settled("m")
        specs, _ = await stage.server.examine()
        assert [one.name for one in specs] == ["m"]

    played(play, spec())


def test_a_server_may_start_with_graphs():
    async def play(stage):
        form = stage.form
        form.add("g", A, B)
        form.add("h", B)
        form.specs = (*form.paths["/graphs/g/1"], *form.paths["/graphs/h/1"])
        await stage.start()
        assert set(stage.states().values()) == {VersionState.READY}
        assert await stage.ask("h") == [7]
        await stage.server.unregister("g")
        await stage.settled("b", "h")

    played(play)


def test_a_graph_whose_member_is_not_there_fails_alone_at_the_start():
    async def play(stage):
        form = stage.form
        form.add("g", A, B)
        form.add("h", B)
        del form.paths[A.uri]
        form.specs = (*form.paths["/graphs/g/1"], *form.paths["/graphs/h/1"])
        await stage.start()
        states = stage.states()
        assert (states["g", "1"], states["h", "1"]) == (VersionState.FAILED, VersionState.READY)
        reasons = {row.model: row.reason for row in stage.server.list().versions}
        assert "'a'" in reasons["g"]

    played(play)


def test_a_graph_with_functions_of_its_own_is_as_ready_as_its_models():
    async def play(stage):
        await stage.start()
        path = stage.form.add("g", A)
        (made,) = stage.form.paths[path]
        steps = (
            Step("", "", takes=("in",), gives="same", function="same"),
            Step("a", "", takes=("same",), gives="out"),
        )
        stage.form.paths[path] = (replace(made, scheduling=replace(made.scheduling, steps=steps)),)
        rows = await stage.server.register(path)
        assert [(row.model, row.state) for row in rows] == [("g", VersionState.READY)]

    played(play, spec())


def test_a_graph_that_nobody_waits_for_is_told_before_its_members_are_there():
    async def play(stage):
        await stage.start()
        wish = Register(ModelSource(stage.form.add("g", A), "g"), wait=False)
        answer = (await stage.server.execute(wish)).answer
        assert [row.model for row in answer.versions] == ["g"]
        while stage.states().get(("g", "1")) is not VersionState.READY:
            await asyncio.sleep(0)

    played(play, spec())


def test_a_member_that_does_not_load_is_named():
    async def play(stage):
        await stage.start()
        path = stage.form.add("g", A)
        stage.form.paths[A.uri] = (spec("a", stamp="8"),)
        stage.engine.faults["8"] = ServeError(Code.LOAD_FAILED, "no memory")
        with pytest.raises(ServeError, match=r"Model 'a', which 'g' brings: .*no memory"):
            await stage.server.register(path)

    played(play, spec())


def test_a_graph_is_described_and_scaled_by_its_models():
    async def play(stage):
        await stage.start()
        await stage.server.register(stage.form.add("g", A, B))
        await stage.server.execute(Scale("g", 2, 3))
        described = (await stage.server.execute(DescribeAll("g"))).answer
        (graph,) = described.models
        assert [row.model for row in described.statuses] == ["g"]
        assert [(row.model, row.is_member) for row in graph.members.statuses] == [("a", True), ("b", True)]
        bounds = [(one.groups[0].minimum, one.groups[0].maximum) for one in graph.members.models]
        assert bounds == [(2, 3), (2, 3)]

    played(play, spec())


# -- standing calls of graphs ------------------------------------------------------------------------------


class CallTaker:
    """A model that makes standing calls, and refuses some topics."""

    def __init__(self, *refused):
        self.standing, self.refused, self.made = (), refused, []

    async def broadcast(self, operation):
        self.made.append((operation.function, operation.topic))
        if operation.topic in self.refused:
            raise ServeError(Code.MODEL_FAILED, "not this one", status=424)
        if operation.remembered is Remembered.ADDED:
            call = StandingCall(operation.topic, operation.function, operation.payload.properties)
            self.standing = (*self.standing, call)
        else:
            self.standing = tuple(one for one in self.standing if one.topic != operation.topic)


def standing(topic):
    return ("m", "", StandingCall(topic, "add", {"name": topic}, undo="remove"))


def test_calls_of_a_graph_are_made_once_and_undone():
    model = CallTaker()
    calls = [standing("x"), standing("y")]
    for _ in range(2):  # a second graph shares them
        asyncio.run(have_made("g", calls, lambda name, version: model))
    assert model.made == [("add", "x"), ("add", "y")]
    asyncio.run(have_undone(calls, lambda name, version: model))
    assert (model.made[2:], model.standing) == ([("remove", "x"), ("remove", "y")], ())


def test_a_graph_whose_call_fails_leaves_none():
    model = CallTaker("y")
    with pytest.raises(ServeError, match=r"Model 'g' needs 'y' in model 'm'. not this one") as caught:
        asyncio.run(have_made("g", [standing("x"), standing("y")], lambda name, version: model))
    assert caught.value.status == 424
    assert (model.made, model.standing) == ([("add", "x"), ("add", "y"), ("remove", "x")], ())


# -- the books ---------------------------------------------------------------------------------------------


def test_a_source_is_released_with_the_last_that_brings_it():
    books, form = MemberSources(), FakeFormat()
    one, two = Source(Path("/1"), form), Source(Path("/2"), form)
    member = Source(Path("/models/a"), form, A, is_member=True)
    assert books.find(A, one) is None
    books.add(member, one)
    assert books.find(replace(A), two) is member
    assert books.release(one.key) == []
    assert books.release(two.key) == [member]
    assert books.release(two.key) == []


def test_members_of_members_go_along():
    books, form = MemberSources(), FakeFormat()
    owner, inner = Source(Path("/1"), form), Source(Path("/models/a"), form, A, is_member=True)
    innermost = Source(Path("/models/b"), form, B, is_member=True)
    books.add(inner, owner)
    books.add(innermost, inner)
    assert books.release(owner.key) == [inner, innermost]
