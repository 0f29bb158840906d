"""Registered regions over a folder of the test's own, in place of the system's."""

import os

import pytest

from trivium.machine.shared_memory import Regions
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ListRegions, RegisterRegion, SharedRegion, UnregisterRegion


@pytest.fixture
def regions(tmp_path):
    (tmp_path / "one").write_bytes(bytes(range(64)))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("one")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    return Regions(True, tmp_path, ("triton_python_backend_shm_region_",))


def register(regions, name="r", key="/one", offset=0, size=64):
    region = SharedRegion(name, key, offset, size)
    return regions.answer(RegisterRegion(region)).regions


def refusal(call, *arguments):
    with pytest.raises(ServeError) as caught:
        call(*arguments)
    return caught.value


def test_register_view_and_unregister(regions, tmp_path):
    register(regions, "b", offset=8, size=8)
    assert [region.name for region in register(regions, "a")] == ["a", "b"]
    assert regions.answer(ListRegions("b")).regions == (SharedRegion("b", "/one", 8, 8),)
    view = regions.view("b", 2, 4)
    assert bytes(view) == bytes(range(10, 14))
    view[:] = b"abcd"
    assert (tmp_path / "one").read_bytes()[10:14] == b"abcd"
    assert regions.answer(UnregisterRegion("b")).regions == (SharedRegion("a", "/one", 0, 64),)
    assert bytes(view) == b"abcd", "who views it goes on"
    assert regions.answer(UnregisterRegion("b")).regions, "what is not there is no matter"
    assert regions.answer(UnregisterRegion()).regions == ()
    assert register(regions, key="one")[0].key == "one", "the slash may lack"
    regions.answer(UnregisterRegion())
    assert refusal(regions.view, "a", 0, 1).code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("key", "offset", "size", "code", "words"),
    [
        ("/nothing", 0, 1, Code.NOT_FOUND, "No such file"),
        ("/one", 0, 65, Code.INVALID, "has 64 bytes"),
        ("/one", 60, 5, Code.INVALID, "has 64 bytes"),
        ("/one", 2**62, 2**62, Code.INVALID, "has 64 bytes"),
        ("/one", 0, 0, Code.INVALID, "has 64 bytes"),
        ("/empty", 0, 1, Code.INVALID, "has 0 bytes"),
        ("/folder", 0, 1, Code.INVALID, "cannot be opened"),
        ("/link", 0, 1, Code.INVALID, "cannot be opened"),
        ("/pipe", 0, 1, Code.INVALID, "no shared memory"),
        ("/../one", 0, 1, Code.INVALID, "no key"),
        ("//one", 0, 1, Code.INVALID, "no key"),
        ("..", 0, 1, Code.INVALID, "no key"),
        ("/", 0, 1, Code.INVALID, "no key"),
        ("", 0, 1, Code.INVALID, "no key"),
        ("/a\0b", 0, 1, Code.INVALID, "no key"),
        ("/" + "k" * 256, 0, 1, Code.INVALID, "no key"),
        ("/triton_python_backend_shm_region_7", 0, 1, Code.INVALID, "server's own"),
        ("/trivium-arena", 0, 1, Code.INVALID, "server's own"),
    ],
)
def test_what_cannot_be_registered(regions, key, offset, size, code, words):
    error = refusal(register, regions, "r", key, offset, size)
    assert (error.code, words in error.message) == (code, True), error.message
    assert regions.answer(ListRegions()).regions == ()


def test_names_are_registered_once(regions):
    register(regions)
    assert "already" in refusal(register, regions).message


@pytest.mark.parametrize(("offset", "size"), [(0, 17), (17, 0), (-1, 1), (1, -1), (2**70, 1)])
def test_a_view_lies_in_its_region(regions, offset, size):
    register(regions, size=16)
    assert refusal(regions.view, "r", offset, size).code is Code.INVALID


def test_what_has_shrunk_is_not_touched(regions, tmp_path):
    register(regions, offset=8, size=16)
    os.truncate(tmp_path / "one", 20)
    assert bytes(regions.view("r", 0, 12)) == bytes(range(8, 20))
    assert "shrunk" in refusal(regions.view, "r", 0, 13).message


def test_nothing_of_it_where_it_is_switched_off(tmp_path):
    regions = Regions()
    for call, argument in ((regions.answer, ListRegions()), (regions.answer, UnregisterRegion())):
        assert "--client-shared-memory" in refusal(call, argument).message
    assert refusal(regions.view, "r", 0, 1).code is Code.UNSUPPORTED
