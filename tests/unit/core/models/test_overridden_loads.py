"""Loads of what a client sends: laid out in the scratch folder, served, and taken away again."""

import asyncio
import errno
import gc
import itertools
import os
import shutil
import threading
from dataclasses import replace

import pytest
from tests.harness.fake_models import PATH, FakeEngine, FakeFormat, ServerHarness, no_facts, spec
from tests.harness.virtual_models import X

from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.translators.engine import engine_finder
from trivium.types.core_config import CoreConfig
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.operations import List, Load, Unload
from trivium.types.schedules import Graph, Step
from trivium.types.spec import All, Defaults, InvalidModel, ReadResult

TYPO = Finding(Severity.ERROR, "config", 1, "a", "b")


def core_config(scratch):
    return CoreConfig(defaults=Defaults(scratch=scratch))


class OverridableFormat(FakeFormat):
    """The sent configuration is the stamp that the model answers; `bad` cannot be read."""

    def override(self, load, source, into):
        assert source == PATH
        if load.config == "no":
            raise ServeError(Code.INVALID, "No configuration.")
        (into / "stamp").write_text(load.config)
        if load.config == "much":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), into / "stamp")
        for name, data in load.files.items():
            (into / name).write_bytes(data)
        return into

    def read(self, path, defaults):
        if path == PATH:
            return super().read(path, defaults)
        stamp = (path / "stamp").read_text()
        if stamp == "bad":
            return ReadResult((), (InvalidModel("m", path, (TYPO,)),))
        specs = (
            (spec("m", stamp=stamp), spec("m", "2", stamp="broken"))
            if stamp == "half"
            else (spec("m", stamp=stamp),)
        )
        return ReadResult(
            tuple(replace(made, root=path / made.version, version_policy=All()) for made in specs)
        )


class OverrideHarness(ServerHarness):
    def __init__(self, *specs, scratch=None):
        self.form, self.engine, self.progress = OverridableFormat(*specs), FakeEngine(), []
        self.server = Server(
            [self.form],
            engine_finder({"made-up": self.engine}, {}),
            CoreServices(no_facts),
            core_config(scratch),
        )


async def refusal(awaitable):
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


def test_what_is_sent_is_served_until_the_next_load(tmp_path):
    async def scene():
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        stage = OverrideHarness(spec(), scratch=scratch)
        async with stage.server:
            await stage.start()
            assert await stage.stamp() == 1
            for stamp in (5, 6, 7):
                await stage.server.execute(Load("m", str(stamp), {"file": b"data"}))
                assert await stage.stamp() == stamp
            assert len(list(scratch.iterdir())) == 2, "the one that serves, and the one that may still drain"
            for wrong, code in (("no", Code.INVALID), ("bad", Code.LOAD_FAILED)):
                assert (await refusal(stage.server.execute(Load("m", wrong)))).code is code
            assert len(list(scratch.iterdir())) == 2
            assert await stage.stamp() == 7
            await stage.server.execute(Load("m"))
            assert await stage.stamp() == 1

    asyncio.run(scene())


def test_what_finds_no_room_is_refused_and_leaves_nothing(tmp_path):
    async def scene():
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        stage = OverrideHarness(spec(), scratch=scratch)
        async with stage.server:
            await stage.start()
            error = await refusal(stage.server.execute(Load("m", "much")))
            assert error.code is Code.LOAD_FAILED
            assert "cannot be written" in error.message
            assert str(scratch) not in error.message
            assert os.strerror(errno.ENOSPC) in error.message
            assert list(scratch.iterdir()) == []
            assert await stage.stamp() == 1

    asyncio.run(scene())


@pytest.mark.parametrize("then", [Unload("m"), Load("m")])
def test_what_was_sent_is_freed_once_it_does_not_serve_any_more(tmp_path, then):
    async def scene():
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        stage = OverrideHarness(spec(), scratch=scratch)
        async with stage.server:
            await stage.start()
            for stamp in (5, 6):
                await stage.server.execute(Load("m", str(stamp), {"file": b"data"}))
            assert len(list(scratch.iterdir())) == 2
            await stage.server.execute(then)
            async with asyncio.timeout(60):
                while list(scratch.iterdir()):
                    await asyncio.sleep(0)

    asyncio.run(scene())


def test_folders_are_freed_by_several_at_once(tmp_path, monkeypatch):
    go_on, remove, removing, faults = threading.Event(), shutil.rmtree, [], []

    def slowly(folder, ignore_errors=False):
        removing.append(folder)
        go_on.wait(60)
        remove(folder, ignore_errors)

    async def scene():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        stage = OverrideHarness(spec(), scratch=tmp_path)
        async with stage.server:
            await stage.start()
            for stamp in (5, 6):
                await stage.server.execute(Load("m", str(stamp), {"file": b"data"}))
            monkeypatch.setattr(shutil, "rmtree", slowly)
            await stage.server.execute(Unload("m"))
            async with asyncio.timeout(60):
                while not removing:
                    await asyncio.sleep(0)
                loading = asyncio.ensure_future(stage.server.execute(Load("m", "bad")))
                while not loading.done() and len(removing) < 2:
                    await asyncio.sleep(0)
            go_on.set()
            with pytest.raises(ServeError, match="config:1: a: b"):
                await loading
            async with asyncio.timeout(60):
                while len(list(tmp_path.iterdir())) > 1:
                    await asyncio.sleep(0)
        gc.collect()

    asyncio.run(scene())
    assert faults == []


def test_what_serves_keeps_its_folder_though_other_versions_fail(tmp_path):
    async def scene():
        stage = OverrideHarness(scratch=tmp_path)
        stage.engine.faults["broken"] = ServeError(Code.LOAD_FAILED, "damaged")
        async with stage.server:
            await stage.start()
            for _ in range(3):
                assert (await refusal(stage.server.execute(Load("m", "half")))).message == "damaged"
                (loaded,) = stage.server.specs()
                assert loaded.version == "1"
                assert (loaded.root.parent / "stamp").exists()

    asyncio.run(scene())


def test_without_a_folder_or_a_format_for_it(tmp_path):
    async def scene():
        stage = OverrideHarness(spec())
        async with stage.server:
            await stage.start()
            assert "scratch" in (await refusal(stage.server.execute(Load("m", "2")))).message
        plain = ServerHarness(spec())
        plain.server = Server(
            [plain.form],
            engine_finder({"made-up": plain.engine}, {}),
            CoreServices(no_facts),
            core_config(tmp_path),
        )
        async with plain.server:
            await plain.start()
            error = await refusal(plain.server.execute(Load("m", "2")))
            assert (error.code, "no format of the paths served" in error.message) == (Code.UNSUPPORTED, True)

    asyncio.run(scene())


def test_a_graph_is_unloaded_with_its_members_if_asked():
    async def scene(with_members):
        wires = itertools.pairwise("xpqy")
        steps = tuple(
            Step(name, "", {"x": source}, {"x": to}) for name, (source, to) in zip("aba", wires, strict=True)
        )
        graph = replace(spec("graph"), scheduling=Graph(steps), outputs=(replace(X, name="y"),))
        stage = ServerHarness(spec("a"), spec("b"), graph, spec("other"))
        async with stage.server:
            await stage.start()
            await stage.server.execute(Unload("graph", with_members))
            ready = (await stage.server.execute(List(ready=True))).answer.versions
            return [row.model for row in ready]

    assert asyncio.run(scene(False)) == ["a", "b", "other"]
    assert asyncio.run(scene(True)) == ["other"]
