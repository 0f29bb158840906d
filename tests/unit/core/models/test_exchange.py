"""The places of a server are exchanged while it serves: all of the new ones or none, and no request is lost."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.unit.core.models.test_polling import FolderFormat, PlacedFormat, played, touch

from trivium.types.core_config import ModelControlMode
from trivium.types.errors import Code, ServeError


@pytest.fixture
def first(tmp_path: Path) -> Path:
    touch(tmp_path / "first/a/1", "10")
    touch(tmp_path / "first/b/1", "20")
    return tmp_path / "first"


@pytest.fixture
def second(tmp_path: Path) -> Path:
    touch(tmp_path / "second/b/1", "21")
    touch(tmp_path / "second/c/1", "30")
    return tmp_path / "second"


@pytest.mark.parametrize("form", [PlacedFormat, FolderFormat])
def test_what_is_new_or_differs_is_loaded_and_what_is_gone_unloaded(first, second, form):
    async def play(stage):
        gate = stage.gate("run", "20")
        old = stage.later("b")
        await gate.reached()
        await stage.server.exchange([second])
        assert (await stage.stamp("b"), await stage.stamp("c")) == (21, 30)
        gate.open()
        assert await old == 20
        await stage.until(lambda: set(stage.states()) == {("b", "1"), ("c", "1")})

    played(first, play, form())


def test_what_stays_is_not_touched(first, tmp_path):
    async def play(stage):
        touch(tmp_path / "third/d/1", "40")
        await stage.server.exchange([tmp_path / "third", first])
        assert (await stage.stamp("a"), await stage.stamp("d")) == (10, 40)
        reads = stage.form.reads
        await stage.server.exchange([tmp_path / "third", first])
        assert stage.form.reads == reads
        await stage.server.exchange([first])
        await stage.until(lambda: stage.engine.closed == ["40"])
        assert (await stage.stamp("a"), await stage.stamp("b")) == (10, 20)

    played(first, play)


def test_of_two_models_of_one_name_none_is_taken(first, second):
    async def play(stage):
        with pytest.raises(ServeError, match="'b'"):
            await stage.server.exchange([first, second])
        assert (await stage.stamp("a"), await stage.stamp("b")) == (10, 20)

    played(first, play)


@pytest.mark.parametrize("fault", ["unreadable", "does not open"])
def test_where_not_all_loads_all_is_as_before(first, second, fault):
    async def play(stage):
        if fault == "unreadable":
            touch(second / "c/broken")
        else:
            stage.engine.faults["30"] = ServeError(Code.LOAD_FAILED, "It does not open.")
        with pytest.raises(ServeError, match="What was served before is served still") as caught:
            await stage.server.exchange([second])
        assert caught.value.code is Code.LOAD_FAILED
        assert "'c'" in caught.value.message
        assert (await stage.stamp("a"), await stage.stamp("b")) == (10, 20)
        await stage.until(lambda: set(stage.states()) == {("a", "1"), ("b", "1")})
        stage.engine.faults.clear()
        (second / "c/broken").unlink(missing_ok=True)
        await stage.server.exchange([second])
        assert (await stage.stamp("b"), await stage.stamp("c")) == (21, 30)

    played(first, play)


def test_a_place_that_is_not_there_changes_nothing(first, second):
    async def play(stage):
        with pytest.raises(ServeError) as caught:
            await stage.server.exchange([second, second / "nowhere"])
        assert caught.value.code is Code.NOT_FOUND
        assert set(stage.states()) == {("a", "1"), ("b", "1")}
        shutil.rmtree(second)
        await stage.poll()
        assert await stage.stamp("b") == 20

    played(first, play)


def test_what_clients_registered_stays(first, second, tmp_path):
    async def play(stage):
        touch(tmp_path / "third/d/1", "40")
        await stage.server.register(tmp_path / "third")
        await asyncio.gather(stage.server.exchange([second]), stage.server.exchange([first]))
        assert (await stage.stamp("d"), await stage.stamp("a")) == (40, 10)

    played(first, play, mode=ModelControlMode.EXPLICIT, follows=True)


def test_a_server_that_does_not_follow_its_files_refuses(first, second):
    async def play(stage):
        with pytest.raises(ServeError) as caught:
            await stage.server.exchange([second])
        assert caught.value.code is Code.UNSUPPORTED

    played(first, play, mode=ModelControlMode.EXPLICIT)
