"""Models follow their folders: what counts as a change, reloads without a gap, and what a fault leaves serving."""

import asyncio
import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.fake_models import FakeEngine, ServerHarness, no_facts, replace_model, spec
from tests.harness.properties import examples
from tests.harness.virtual_models import X, make_infer

from trivium.core.models.polling import fingerprint
from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.translators.engine import engine_finder
from trivium.types.core_config import CoreConfig, ModelControlMode
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.operations import Load, Ready, Unload
from trivium.types.schedules import Graph, Step
from trivium.types.spec import All, InvalidModel, ReadResult


def touch(path, text="x", when=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if when is not None:
        os.utime(path, ns=(when, when))
    return path


# -- stamps ------------------------------------------------------------------------------------------------


def test_a_stamp_stays_while_nothing_happens(tmp_path):
    touch(tmp_path / "m/1/model.bin")
    assert fingerprint(tmp_path) == fingerprint(tmp_path)


def change_time(folder):
    os.utime(folder / "1/model.bin", ns=(5, 5))


def change_size(folder):
    touch(folder / "config", "other", when=7)


def add_file(folder):
    touch(folder / "1/more.bin")


def remove_file(folder):
    (folder / "1/model.bin").unlink()


def add_version(folder):
    (folder / "2").mkdir()


def rename(folder):
    (folder / "1").rename(folder / "3")


def replace_file(folder):
    fresh = touch(folder / "fresh", when=7)
    fresh.replace(folder / "config")


@pytest.mark.parametrize(
    "change", [change_time, change_size, add_file, remove_file, add_version, rename, replace_file]
)
def test_every_change_changes_it(tmp_path, change):
    touch(tmp_path / "1/model.bin", when=7)
    touch(tmp_path / "config", when=7)
    before = fingerprint(tmp_path)
    change(tmp_path)
    assert fingerprint(tmp_path) != before


def test_what_python_writes_on_import_is_no_change(tmp_path):
    touch(tmp_path / "1/model.py")
    before = fingerprint(tmp_path)
    touch(tmp_path / "1/__pycache__/model.pyc")
    assert fingerprint(tmp_path) == before


def test_links_are_followed_and_circles_end(tmp_path):
    real = touch(tmp_path / "elsewhere/model.bin")
    (tmp_path / "m").mkdir()
    (tmp_path / "m/1").symlink_to(real.parent)
    (tmp_path / "m/around").symlink_to(tmp_path / "m")
    (tmp_path / "m/broken").symlink_to(tmp_path / "nowhere")
    before = fingerprint(tmp_path / "m")
    os.utime(real, ns=(5, 5))
    assert fingerprint(tmp_path / "m") != before


def test_a_place_that_is_gone_raises(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        fingerprint(tmp_path / "nowhere")


# -- following ---------------------------------------------------------------------------------------------


class FolderFormat:
    """A model per folder: each file in it, whose name is a number, is a version whose fingerprint is the file's text. A
    file `broken` makes it unreadable, `members` a graph.
    """

    name = "folders"
    expects = "a folder of folders"

    def __init__(self):
        self.reads = 0

    def claims(self, path):
        return path.is_dir()

    def finish(self, spec, facts):
        return spec

    def read(self, path, defaults):
        self.reads += 1
        specs, broken = [], []
        for folder in sorted(path.iterdir()):
            if (folder / "broken").exists():
                finding = Finding(Severity.ERROR, str(folder), 1, "", "a fault")
                broken.append(InvalidModel(folder.name, folder, (finding,)))
                continue
            specs += [_spec(folder, file) for file in sorted(folder.iterdir()) if file.name.isdecimal()]
        return ReadResult(tuple(specs), tuple(broken))


def _spec(folder, file):
    made = replace(spec(folder.name, file.name, All(), stamp=file.read_text()), root=folder)
    members = folder / "members"
    if members.exists():
        steps = tuple(Step(name, "", {"x": "x"}, {"x": "y"}) for name in members.read_text().split())
        made = replace(made, scheduling=Graph(steps), outputs=(replace(X, name="y"),))
    return made


class PlacedFormat(FolderFormat):
    """One that knows which folder is whose."""

    def places(self, path):
        return {folder.name: folder for folder in path.iterdir()}


class FaultyFormat(PlacedFormat):
    """One whose next look fails with each of `faults` in turn."""

    def __init__(self):
        super().__init__()
        self.faults = []

    def places(self, path):
        if self.faults:
            raise self.faults.pop()
        return super().places(path)


class Followed(ServerHarness):
    """A server that follows the folders below `path`; `poll` looks once."""

    def __init__(self, path, form, mode=ModelControlMode.POLL, seconds=3600.0, follows=False):
        self.path, self.form, self.engine, self.progress = path, form, FakeEngine(), []
        config = CoreConfig(control=mode, poll_seconds=seconds, follows_files=follows)
        self.server = Server(
            [form], engine_finder({"made-up": self.engine}, {}), CoreServices(no_facts), config
        )

    async def start(self):
        self.server.add(self.path)
        await self.server.start()

    async def poll(self):
        await self.server.poll()


@asynccontextmanager
async def following(path, form=None, **options):
    scene = Followed(path, form or PlacedFormat(), **options)
    async with scene.server:
        await scene.start()
        yield scene


def played(path, play, form=None, **options):
    async def scene():
        async with following(path, form, **options) as stage:
            await play(stage)

    asyncio.run(scene())


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    touch(tmp_path / "a/1", "10")
    touch(tmp_path / "b/1", "20")
    return tmp_path


@pytest.mark.parametrize("form", [PlacedFormat, FolderFormat])
def test_changed_new_and_vanished(folders, form):
    async def play(stage):
        touch(folders / "a/1", "110")
        touch(folders / "c/1", "30")
        for file in (folders / "b").iterdir():
            file.unlink()
        (folders / "b").rmdir()
        await stage.poll()
        assert (await stage.stamp("a"), await stage.stamp("c")) == (110, 30)
        await stage.until(lambda: set(stage.states()) == {("a", "1"), ("c", "1")})
        with pytest.raises(ServeError) as caught:
            await stage.stamp("b")
        assert caught.value.code is Code.NOT_FOUND

    played(folders, play, form())


def test_only_what_changed_is_touched(folders):
    async def play(stage):
        reads = stage.form.reads
        await stage.poll()
        assert stage.form.reads == reads  # nothing changed: nothing is read
        touch(folders / "a/1", "111")
        await stage.poll()
        await stage.until(lambda: stage.engine.closed == ["10"])
        reads = stage.form.reads
        await stage.poll()
        assert (stage.form.reads, stage.engine.closed) == (reads, ["10"])

    played(folders, play)


def test_versions_come_and_go(folders):
    async def play(stage):
        touch(folders / "a/2", "12")
        await stage.poll()
        assert (await stage.stamp("a"), await stage.stamp("a", "1")) == (12, 10)
        (folders / "a/1").unlink()
        await stage.poll()
        assert await stage.stamp("a") == 12
        with pytest.raises(ServeError):
            await stage.stamp("a", "1")

    played(folders, play)


def test_there_is_no_gap_while_the_new_one_opens(folders):
    async def play(stage):
        gate = stage.gate("open", "11")
        touch(folders / "a/1", "11")
        polling = asyncio.ensure_future(stage.poll())
        await gate.reached()
        assert await stage.stamp("a") == 10
        assert stage.states("a") == {("a", "1"): "ready"}
        gate.open()
        await polling
        assert await stage.stamp("a") == 11

    played(folders, play)


def test_one_who_asks_for_a_look_meanwhile_waits_and_nothing_is_loaded_twice(folders):
    async def play(stage):
        gate = stage.gate("open", "11")
        touch(folders / "a/1", "11")
        reads = stage.form.reads
        polling = [asyncio.ensure_future(stage.poll()) for _ in range(2)]
        await gate.reached()
        gate.open()
        await asyncio.gather(*polling)
        assert (await stage.stamp("a"), stage.form.reads) == (11, reads + 1)

    played(folders, play)


def test_requests_in_the_old_one_finish_there(folders):
    async def play(stage):
        gate = stage.gate("run", "10")
        old = stage.later("a")
        await gate.reached()
        touch(folders / "a/1", "11")
        await stage.poll()
        assert await stage.stamp("a") == 11
        gate.open()
        assert await old == 10

    played(folders, play)


def test_what_cannot_be_opened_leaves_the_old_one(folders, caplog):
    async def play(stage):
        stage.engine.faults["11"] = ServeError(Code.LOAD_FAILED, "It is damaged.")
        touch(folders / "a/1", "11")
        await stage.poll()
        assert await stage.stamp("a") == 10
        assert "model 'a' changed" in caplog.text
        assert "It is damaged." in caplog.text
        touch(folders / "a/1", "12")
        await stage.poll()
        assert await stage.stamp("a") == 12

    played(folders, play)


def test_what_failed_is_tried_again_until_it_serves(folders):
    async def play(stage):
        stage.engine.faults |= {
            fingerprint: ServeError(Code.LOAD_FAILED, "No room.") for fingerprint in ("11", "30")
        }
        touch(folders / "a/1", "11")
        touch(folders / "c/1", "30")
        await stage.poll()
        assert stage.states("c") == {("c", "1"): "failed"}
        stage.engine.faults.clear()
        await stage.poll()
        assert (await stage.stamp("a"), await stage.stamp("c")) == (11, 30)
        reads = stage.form.reads
        await stage.poll()
        assert stage.form.reads == reads

    played(folders, play)


def test_what_cannot_be_read_leaves_the_old_one(folders, caplog):
    async def play(stage):
        touch(folders / "a/broken")
        touch(folders / "c/broken")
        await stage.poll()
        assert await stage.stamp("a") == 10
        assert stage.states("c") == {("c", ""): "registered"}
        assert (await stage.server.execute(Ready())).answer.ready
        (folders / "c/broken").unlink()
        (folders / "c").rmdir()
        await stage.poll()
        assert stage.states("c") == {}

    played(folders, play)


def test_a_model_that_comes_back_serves_again(folders):
    async def play(stage):
        gate = stage.gate("run", "20")
        old = stage.later("b")
        await gate.reached()
        (folders / "b").rename(folders.parent / "away")
        await stage.poll()
        assert stage.states("b") == {("b", "1"): "unloading"}
        (folders.parent / "away").rename(folders / "b")
        await stage.poll()
        assert stage.states("b") == {("b", "1"): "ready"}
        gate.open()
        assert await old == 20
        assert await stage.stamp("b") == 20
        assert stage.states("b") == {("b", "1"): "ready"}

    played(folders, play)


def test_one_that_comes_back_with_another_version_while_the_old_one_drains(folders):
    async def play(stage):
        faults = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        gate = stage.gate("run", "20")
        old = stage.later("b")
        await gate.reached()
        shutil.rmtree(folders / "b")
        await stage.poll()
        touch(folders / "b/2", "22")
        await stage.poll()
        assert await stage.stamp("b") == 22
        gate.open()
        assert await old == 20
        await stage.until(lambda: "20" in stage.engine.closed)
        assert stage.states("b") == {("b", "2"): "ready"}
        await stage.server.close()  # waits for what drains
        assert not faults

    played(folders, play)


async def through(stage):
    """What the graph `e` answers."""
    part = await stage.server.execute(replace_model(make_infer(), "e", ""))
    return int(part.payload["y"][0])


def test_graphs_follow_their_members(folders):
    touch(folders / "e/1", "0")
    touch(folders / "e/members", "a")

    async def play(stage):
        assert await through(stage) == 10
        touch(folders / "a/1", "11")
        await stage.poll()
        assert await through(stage) == 11
        assert stage.server.statistics("e").success.count == 1, "it was loaded anew"

    played(folders, play)


def test_a_disk_that_is_gone_for_a_moment_unloads_nothing(folders, caplog):
    async def play(stage):
        aside = folders.parent / "aside"
        folders.rename(aside)
        await stage.poll()
        assert await stage.stamp("a") == 10
        assert "cannot be looked at" in caplog.text
        aside.rename(folders)
        await stage.poll()
        assert stage.engine.closed == []

    played(folders, play)


@pytest.mark.parametrize("operation", [Load("a"), Unload("a"), Load("new")])
def test_clients_change_nothing(folders, operation):
    async def play(stage):
        with pytest.raises(ServeError, match="--model-control explicit") as caught:
            await stage.server.execute(operation)
        assert caught.value.code is Code.UNSUPPORTED
        assert await stage.stamp("a") == 10

    played(folders, play)


def test_it_looks_by_itself_and_goes_on_after_a_fault(folders, caplog):
    async def play(stage):
        stage.form.faults.append(RuntimeError("once"))
        touch(folders / "a/1", "11")
        async with asyncio.timeout(10):
            while await stage.stamp("a") != 11:
                await asyncio.sleep(0)
        assert "looking for changed models failed" in caplog.text

    played(folders, play, FaultyFormat(), seconds=0.0)


def test_without_seconds_nothing_is_looked_at(folders):
    async def scene():
        stage = Followed(folders, PlacedFormat(), ModelControlMode.NONE)
        async with stage.server:
            stage.server.add(folders)
            await stage.server.start()
            with pytest.raises(ServeError, match="--model-control poll"):
                await stage.poll()
            with pytest.raises(ServeError):
                await stage.server.execute(Unload("a"))

    asyncio.run(scene())


# -- any history -------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "break", "hint", "remove", "fail"]),
        st.sampled_from(["a", "b"]),
        st.integers(1, 3),
    ),
    max_size=12,
)


class Expected:
    """What each model should answer: what its folder held when it was last good, while the folder is there."""

    def __init__(self, path, engine):
        self.path, self.engine, self.answers, self.count = path, engine, {}, 100

    def do(self, what, name, version):
        folder = self.path / name
        if what in ("write", "fail"):
            self.count += 1
            touch(folder / str(version), str(self.count))
            if what == "fail":
                self.engine.faults[str(self.count)] = ServeError(Code.LOAD_FAILED, "It is damaged.")
        elif what == "break":
            touch(folder / "broken")
        elif what == "hint":
            (folder / "broken").unlink(missing_ok=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def settle(self):
        for name in ("a", "b"):
            folder = self.path / name
            if not folder.exists():
                self.answers.pop(name, None)
            elif not (folder / "broken").exists():
                stamps = {file.name: file.read_text() for file in folder.iterdir() if file.name.isdecimal()}
                good = {number: text for number, text in stamps.items() if text not in self.engine.faults}
                if stamps and good == stamps:
                    self.answers[name] = stamps
                elif good:  # those that open serve; what served before serves on
                    self.answers[name] = {**self.answers.get(name, {}), **good}


@settings(max_examples=examples(40))
@given(steps=STEPS)
def test_after_any_history_what_serves_is_what_the_folders_hold(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("folders")

    async def play(stage):
        expected = Expected(path, stage.engine)
        for step in steps:
            expected.do(*step)
            await stage.poll()
            expected.settle()
            for name in ("a", "b"):
                answers = expected.answers.get(name, {})
                for number, text in answers.items():
                    assert await stage.stamp(name, number) == int(text), (steps, step)
                ready = {row.version for row in stage.server.list(ready=True).versions if row.model == name}
                assert ready == set(answers), (steps, step)

    played(path, play)
