"""Models that are registered, scaled, pinned, described and unregistered while the server serves."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from tests.harness.fake_models import FakeFormat, ServerHarness, spec
from tests.harness.virtual_models import make_infer

from trivium.core.models.listing import page
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.operations import DescribeAll, Listing, Register, Scale, Unregister, VersionStatus
from trivium.types.payload import Raw, RawPart
from trivium.types.running import Ran
from trivium.types.sources import ModelSource
from trivium.types.spec import InstanceGroup
from trivium.types.state import VersionState

FAULT = ServeError(Code.LOAD_FAILED, "no memory")
NEW = "new"


class AnyPath(FakeFormat):
    def claims(self, path):
        return True

    def read(self, path, defaults):
        specs = self.by_path.get(path.name, self.specs)
        return type(super().read(path, defaults))(tuple(specs))


class ManagedServer(ServerHarness):
    """A server with the model m, version 1; `bring` says what further paths hold."""

    def __init__(self, *specs):
        form = AnyPath(*(specs or (spec(),)))
        form.by_path = {}
        super().__init__(form=form)

    def bring(self, *specs, path=NEW):
        self.form.by_path[path] = specs
        return path

    def versions(self):
        return {(row.model, row.version): row.state.value for row in self.server.list().versions}


def played(play, *specs):
    async def scene():
        stage = ManagedServer(*specs)
        async with stage.server:
            await stage.start()
            await play(stage)

    asyncio.run(scene())


async def served(stage):
    """The models that the paths of the server hold now."""
    specs, broken = await stage.server.examine()
    return [(spec.name, spec.version) for spec in specs] + [one.name for one in broken]


async def refusal(awaitable):
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


# -- register and unregister -------------------------------------------------------------------------------


def test_a_second_version_leaves_the_first_alone():
    async def play(stage):
        rows = await stage.server.register(stage.bring(spec(version="2")))
        assert [(row.version, row.state) for row in rows] == [
            ("1", VersionState.READY),
            ("2", VersionState.READY),
        ]
        assert (await stage.stamp(), await stage.stamp(version="1")) == (2, 1)
        await stage.server.unregister("m", "2")
        assert await stage.stamp() == 1
        assert stage.versions() == {("m", "1"): "ready"}

    played(play)


def test_a_registration_may_give_another_name_and_version():
    async def play(stage):
        await stage.server.register(stage.bring(spec(stamp="9")), name="n", version="7")
        assert await stage.stamp("n", "7") == 9
        assert stage.server.describe("n").source == ModelSource(NEW, "n", "7")

    played(play)


def test_one_that_is_there_is_a_conflict_and_serves_on():
    async def play(stage):
        error = await refusal(stage.server.register(stage.bring(spec(stamp="9"))))
        assert error.code is Code.CONFLICT
        assert (await stage.stamp(), await served(stage)) == (1, [("m", "1")])

    played(play)


def test_one_that_fails_leaves_nothing():
    async def play(stage):
        stage.engine.faults["9"] = FAULT
        path = stage.bring(spec("a"), spec("b", stamp="9"), spec("c"))
        assert (await refusal(stage.server.register(path))).code is Code.LOAD_FAILED
        assert stage.versions() == {("m", "1"): "ready"}
        assert await served(stage) == [("m", "1")]
        del stage.engine.faults["9"]
        await stage.server.register(path)
        assert set(stage.versions()) == {("a", "1"), ("b", "1"), ("c", "1"), ("m", "1")}

    played(play)


def test_an_empty_path_and_one_that_nobody_knows():
    async def play(stage):
        assert (await refusal(stage.server.register(stage.bring()))).code is Code.NOT_FOUND
        stage.form.claims = lambda path: False
        assert (await refusal(stage.server.register("x"))).code is Code.NOT_FOUND

    played(play)


def test_without_waiting_it_loads_behind_the_answer():
    async def play(stage):
        gate = stage.gate("open", "2")
        rows = await stage.server.register(stage.bring(spec(version="2")), wait=False)
        assert rows[0].state is VersionState.READY
        assert rows[1].state in (VersionState.REGISTERED, VersionState.LOADING)
        gate.open()
        await stage.until(lambda: stage.versions()[("m", "2")] == "ready")

    played(play)


def test_who_changes_what_is_being_loaded_waits_for_that():
    async def play(stage):
        gate = stage.gate("open", "2")
        path = stage.bring(spec("n", "2"))
        registered = asyncio.ensure_future(stage.server.register(path, wait=False))
        await gate.reached()
        await stage.server.execute(Scale("n", 2, 2, wait=False))  # nobody waits for it
        changes = [
            asyncio.ensure_future(each)
            for each in (stage.server.scale("n", 3), stage.server.set_default("n", "2"))
        ]
        await stage.server.scale("m", 2)  # others wait for nothing
        assert not any(each.done() for each in changes)
        gate.open()
        await asyncio.gather(registered, *changes)
        (group,) = stage.server.describe("n").groups
        assert (group.minimum, group.maximum, await stage.stamp("n")) == (3, 3, 2)

    played(play)


def test_a_change_of_what_then_does_not_load_is_refused_as_if_it_had_never_been():
    async def play(stage):
        stage.engine.faults["2"] = FAULT
        gate = stage.gate("open", "2")
        registered = asyncio.ensure_future(stage.server.register(stage.bring(spec("n", "2"))))
        await gate.reached()
        behind = await stage.server.execute(Scale("n", 2, 2, wait=False))
        assert [row.state for row in behind.answer.versions] == [VersionState.LOADING]
        changes = [
            asyncio.ensure_future(refusal(each))
            for each in (stage.server.scale("n", 3), stage.server.set_default("n", "2"))
        ]
        await asyncio.sleep(0)
        gate.open()
        assert (await refusal(registered)).code is Code.LOAD_FAILED
        assert [(await each).code for each in changes] == [Code.NOT_FOUND] * 2
        assert await stage.stamp() == 1

    played(play)


def test_without_waiting_what_fails_stays_known_as_failed():
    async def play(stage):
        stage.engine.faults["9"] = FAULT
        path = stage.bring(spec("a", stamp="9"), spec("b"))
        await stage.server.register(path, wait=False)
        await stage.until(lambda: stage.versions().get(("b", "1")) == "ready")
        assert stage.versions()[("a", "1")] == "failed"
        await stage.server.unregister("a")
        assert ("a", "1") not in stage.versions()

    played(play)


def test_what_failed_may_be_registered_again():
    async def play(stage):
        stage.engine.faults["9"] = FAULT
        path = stage.bring(spec("a", stamp="9"))
        for _ in range(2):
            await stage.server.register(path, wait=False)
            await stage.until(lambda: stage.versions().get(("a", "1")) == "failed")
        await stage.server.register(stage.bring(spec("a", stamp="5"), path="x"))
        assert await stage.stamp("a") == 5
        assert stage.server.describe("a").source.uri == "x"
        assert (await refusal(stage.server.register("x"))).code is Code.CONFLICT

    played(play)


def test_what_was_registered_in_place_of_a_failed_one_and_fails_leaves_nothing():
    async def play(stage):
        stage.engine.faults["9"] = FAULT
        path = stage.bring(spec("a", stamp="9"))
        await stage.server.register(path, wait=False)
        await stage.until(lambda: stage.versions().get(("a", "1")) == "failed")
        assert (await refusal(stage.server.register(path))).code is Code.LOAD_FAILED
        assert stage.versions() == {("m", "1"): "ready"}

    played(play)


def test_one_that_was_unregistered_may_come_again_while_the_first_still_works():
    async def play(stage):
        await stage.server.register(stage.bring(spec("n", stamp="5")))
        gate = stage.gate("run", "5")
        asked = stage.later("n")
        await gate.reached()
        await stage.server.unregister("n")
        assert stage.versions()[("n", "1")] == "unloading"
        await stage.server.register(stage.bring(spec("n", stamp="6"), path="other"))
        assert await stage.stamp("n") == 6
        gate.open()
        assert await asked == 5
        await stage.until(lambda: stage.versions()[("n", "1")] == "ready")
        assert await stage.stamp("n") == 6
        assert stage.server.describe("n").source.uri == "other"

    played(play)


def test_a_version_that_nobody_gave_stands_alone():
    async def play(stage):
        await stage.server.unregister("m")
        await stage.server.register(stage.bring(spec(version="2")))
        unversioned = replace(spec(), is_versioned=False)
        assert (
            await refusal(stage.server.register(stage.bring(unversioned, path="x")))
        ).code is Code.CONFLICT
        await stage.server.register(stage.bring(unversioned, path="x"), version="7")
        assert stage.versions() == {("m", "2"): "ready", ("m", "7"): "ready"}
        assert [row.is_versioned for row in stage.server.list().versions] == [True, True]

    played(play)


def test_versions_take_turns_where_the_spec_says_so():
    async def play(stage):
        await stage.server.register(stage.bring(replace(spec(version="2"), in_turns=True)))
        assert sorted([await stage.stamp() for _ in range(4)]) == [1, 1, 2, 2]
        assert {await stage.stamp(version="1") for _ in range(3)} == {1}
        await stage.server.set_default("m", "1")
        assert {await stage.stamp() for _ in range(3)} == {1}
        await stage.server.set_default("m")
        await stage.server.unregister("m", "2")
        assert {await stage.stamp() for _ in range(3)} == {1}

    played(play)


def test_all_versions_are_described_whether_they_serve_or_not():
    async def play(stage):
        stage.engine.faults["9"] = FAULT
        await stage.server.register(stage.bring(spec(version="2", stamp="9")), wait=False)
        await stage.until(lambda: stage.versions().get(("m", "2")) == "failed")
        answer = (await stage.server.execute(DescribeAll("m"))).answer
        assert [(row.version, row.state) for row in answer.statuses] == [
            ("1", VersionState.READY),
            ("2", VersionState.FAILED),
        ]
        assert [(len(one.instances), one.source and one.source.uri) for one in answer.models] == [
            (1, None),
            (0, NEW),
        ]
        (only,) = (await stage.server.execute(DescribeAll("m", "2"))).answer.models
        assert only.spec.version == "2"
        for model, version in (("x", ""), ("m", "3")):
            assert (await refusal(stage.server.execute(DescribeAll(model, version)))).code is Code.NOT_FOUND

    played(play)


def test_a_row_says_what_asked_for_it():
    async def play(stage):
        await stage.server.register(stage.bring(spec("n")), name="x")
        assert [row.source for row in stage.server.list().versions] == [
            ModelSource(str(spec().root)),
            ModelSource(NEW, "x"),
        ]

    played(play)


def test_what_is_in_flight_finishes_and_a_load_reads_the_source_again():
    async def play(stage):
        await stage.server.register(stage.bring(spec("n", stamp="5")))
        gate = stage.gate("run", "5")
        asked = stage.later("n")
        await gate.reached()
        await stage.server.unregister("n")
        assert (await refusal(stage.stamp("n"))).code is Code.NOT_FOUND or stage.versions()[
            ("n", "1")
        ] == "unloading"
        gate.open()
        assert await asked == 5
        assert (await refusal(stage.server.unregister("n", "4"))).code is Code.NOT_FOUND

    played(play)


# -- the version without a version -------------------------------------------------------------------------


def test_a_pinned_version_serves_until_it_goes():
    async def play(stage):
        await stage.server.register(stage.bring(spec(version="2")))
        await stage.server.set_default("m", "1")
        assert (await stage.stamp(), stage.server.describe("m").default) == (1, "1")
        assert (await refusal(stage.server.set_default("m", "3"))).code is Code.NOT_FOUND
        await stage.server.unregister("m", "1")
        assert await stage.stamp() == 2
        await stage.server.set_default("m", "2")
        await stage.server.set_default("m")
        assert stage.server.describe("m").default == "2"

    played(play)


def test_a_registration_may_keep_the_default_version_and_an_end_may_spare_it():
    async def play(stage):
        execute = stage.server.execute
        await execute(Register(ModelSource(stage.bring(spec(version="2"))), keeps_default=True))
        assert await stage.stamp() == 1
        rows = stage.server.list().versions
        assert [(row.version, row.is_default, row.is_loaded, row.least) for row in rows] == [
            ("1", True, True, 1),
            ("2", False, True, 1),
        ]
        for version in ("", "1"):
            error = await refusal(execute(Unregister("m", version, spares_default=True)))
            assert (error.code, error.reason) == (Code.CONFLICT, reasons.DEFAULT_VERSION)
            assert error.metadata == {"model": "m", "version": "1"}
        await execute(Unregister("m", "2", spares_default=True))
        await execute(Unregister("m", spares_default=True))
        assert stage.versions() == {}
        error = await refusal(execute(Unregister("m", spares_default=True)))
        assert error.reason == reasons.UNKNOWN_MODEL

    played(play)


def test_a_chosen_version_stays_chosen_whatever_is_registered():
    async def play(stage):
        for number in ("2", "3"):
            source = ModelSource(stage.bring(spec(version=number), path=number))
            await stage.server.execute(Register(source, keeps_default=number == "3"))
            assert await stage.stamp() == 2

    played(play)


def test_a_model_without_instances_is_cold_from_the_beginning():
    async def play(stage):
        none = replace(spec("n"), groups=(InstanceGroup("n", 0, 0),))
        rows = await stage.server.register(stage.bring(none))
        assert [(row.state, row.least) for row in rows] == [(VersionState.COLD, 0)]
        assert (await refusal(stage.stamp("n"))).reason == reasons.SCALED_TO_NONE
        await stage.server.scale("n", 1)
        assert (await stage.stamp("n"), stage.versions()["n", "1"]) == (1, "ready")

    played(play)


def test_a_description_may_ask_the_model_first():
    async def play(stage):
        asked = make_infer()
        answer = (await stage.server.execute(DescribeAll("m", asked=asked))).answer
        assert (answer.default, answer.said is None) == ("1", False)
        assert (await stage.server.execute(DescribeAll("m"))).answer.said is None
        stage.engine.faults["1"] = FAULT
        await stage.server.scale("m", 0)
        error = await refusal(stage.server.execute(DescribeAll("m", asked=asked)))
        assert error.reason == reasons.SCALED_TO_NONE
        gone = (
            await refusal(
                stage.server.execute(DescribeAll("x", asked=msgspec.structs.replace(asked, model="x")))
            )
        ).code
        assert gone is Code.NOT_FOUND

    played(play)


def test_what_failed_to_load_says_so_to_who_asks_for_it():
    async def play(stage):
        stage.engine.faults["9"] = FAULT
        await stage.server.register(stage.bring(spec("n", stamp="9")), wait=False)
        await stage.until(lambda: stage.versions().get(("n", "1")) == "failed")
        assert (await refusal(stage.stamp("n"))).metadata["state"] == "failed"
        (row,) = [row for row in stage.server.list().versions if row.model == "n"]
        assert (row.is_loaded, row.is_default, row.at_start, row.least) == (False, False, False, 1)

    played(play)


# -- scale -------------------------------------------------------------------------------------------------


def test_more_and_fewer_instances():
    async def play(stage):
        await stage.server.scale("m", 3)
        about = stage.server.describe("m")
        assert ([one.name for one in about.instances], about.opening) == (["m_0", "m_1", "m_2"], 0)
        assert [(group.minimum, group.maximum) for group in about.groups] == [(3, 3)]
        await stage.server.scale("m", 1)
        assert len(stage.server.describe("m").instances) == 1
        assert await stage.stamp() == 1

    played(play)


def test_at_zero_accepted_items_finish_and_new_ones_are_refused():
    async def play(stage):
        gate = stage.gate("run", "1")
        asked = [stage.later() for _ in range(3)]
        await gate.reached()
        scaling = asyncio.ensure_future(stage.server.scale("m", 0))
        await stage.until(lambda: stage.versions() == {("m", "1"): "cold"})
        error = await refusal(stage.stamp())
        assert (error.code, error.retry_after) == (Code.NOT_READY, 1.0)
        gate.open()
        assert await asyncio.gather(*asked) == [1, 1, 1]
        await scaling
        assert stage.versions() == {("m", "1"): "cold"}
        assert stage.server.describe("m").instances == ()
        await stage.server.scale("m", 1)
        assert (await stage.stamp(), stage.versions()) == (1, {("m", "1"): "ready"})

    played(play)


def test_from_zero_up_a_request_waits_and_opens_an_instance():
    async def play(stage):
        await stage.server.scale("m", 0, 2)
        assert stage.versions() == {("m", "1"): "ready"}
        await stage.until(lambda: True)
        assert await stage.stamp() == 1

    played(play)


def test_bounds_that_cannot_be_and_instances_that_do_not_open():
    async def play(stage):
        assert (await refusal(stage.server.scale("m", 2, 1))).code is Code.INVALID
        assert (await refusal(stage.server.scale("m", 1, device="tpu"))).code is Code.INVALID
        assert (await refusal(stage.server.scale("m", 1, device="gpu"))).code is Code.NOT_FOUND
        assert (await refusal(stage.server.scale("nobody", 1))).code is Code.NOT_FOUND
        stage.engine.faults["1"] = FAULT
        assert (await refusal(stage.server.scale("m", 2))).message == "no memory"
        assert await stage.stamp() == 1

    played(play)


def test_a_bound_that_is_not_given_stays():
    async def play(stage):
        for least, most, bounds in ((None, 4, (1, 4)), (2, None, (2, 4)), (None, None, (2, 4))):
            await stage.server.execute(Scale("m", least, most))
            (group,) = stage.server.describe("m").groups
            assert (group.minimum, group.maximum) == bounds
        await stage.server.execute(Scale("m", None, 1))
        (group,) = stage.server.describe("m").groups
        assert (group.minimum, group.maximum) == (1, 1)
        await stage.server.execute(Scale("m", 3, None))
        (group,) = stage.server.describe("m").groups
        assert (group.minimum, group.maximum) == (3, 3)
        assert (await refusal(stage.server.execute(Scale("m", -1, None)))).code is Code.INVALID

    played(play)


# -- pages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "after", "names", "following"),
    [(0, "", "aabc", ""), (1, "", "aa", "a"), (2, "a", "bc", ""), (1, "a", "b", "b"), (5, "c", "", "")],
)
def test_pages_keep_a_models_versions_together(limit, after, names, following):
    rows = tuple(
        VersionStatus(model, str(i), VersionState.READY) for i, model in enumerate(["a", "a", "b", "c"])
    )
    found = page(Listing(rows), False, limit, after)
    assert ("".join(row.model for row in found.versions), found.following) == (names, following)


def test_a_server_that_goes_down_registers_nothing():
    async def play(stage):
        stage.server.begin_drain()
        error = await refusal(stage.server.execute(Register(ModelSource(stage.bring(spec("n"))))))
        assert error.code is Code.DRAINING

    played(play)


def test_an_inference_on_arrays_of_a_model_that_answers_with_a_body():
    async def play(stage):
        body = Raw((RawPart(b"text"),))
        stage.engine.open = lambda spec, placement: SimpleNamespace(
            run=lambda batch: Ran([body] * len(batch.items)), close=lambda: None
        )
        await stage.server.register(stage.bring(spec("n")))
        answer = await stage.server.infer("n", {"x": np.zeros(2, np.float32)})
        assert answer["output"].tolist() == [b"text"]

    played(play)


def test_an_inference_on_a_body():
    async def play(stage):
        answer = await stage.server.run("m", b'{"x": [1, 2]}', "application/json")
        assert answer["x"].tolist() == [1.0]
        assert (await refusal(stage.server.run("m", b"{", "application/json"))).code is Code.INVALID

    played(play)
