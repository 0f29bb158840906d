"""`trivium link`: what it writes, what it leaves alone, what it says."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trivium.cli import main as trivium
from trivium.cli.link import ARCHIVERS, COMMANDS, MARK, command, in_the_way, is_on_path, is_ours, launcher


def link(*words: str | Path, path: str = "") -> Result:
    return CliRunner().invoke(command, [*map(str, words), "--search", path])


def test_every_command_is_one_of_triviums() -> None:
    assert set(COMMANDS.values()) <= set(trivium.COMMANDS)


def test_a_launcher_runs_this_interpreter_wherever_it_is() -> None:
    assert launcher("tritonserver", "/opt/my python/bin/python").splitlines() == [
        "#!/bin/sh",
        MARK,
        "exec '/opt/my python/bin/python' -P -m trivium.cli.main tritonserver \"$@\"",
    ]


def test_it_is_put_there_again_and_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "bin"
    for _ in range(2):
        done = link(folder, path=f"/bin:{folder}")
        assert done.exit_code == 0
        assert "runs `trivium tritonserver`" in done.output
        assert "PATH" not in done.output
    made = folder / "tritonserver"
    assert is_ours(made)
    assert os.access(made, os.X_OK)
    assert link(folder, "--remove").exit_code == 0
    assert list(folder.iterdir()) == []
    assert "is not there" in link(folder, "--remove").output


def test_a_folder_that_is_not_on_the_path(tmp_path: Path) -> None:
    said = link(tmp_path, path="/bin:/usr/bin").output
    assert f"{tmp_path} is not on the PATH" in said
    assert f"export PATH={tmp_path}:$PATH" in said


def test_the_path_by_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(tmp_path)
    assert is_on_path(tmp_path, f"/bin:{tmp_path / 'here'}")
    assert not is_on_path(tmp_path, "/bin::")


@pytest.mark.parametrize("words", [[], ["--remove"]])
@pytest.mark.parametrize("kind", ["file", "empty", "folder", "link", "dangling"])
def test_what_is_not_ours_stays(tmp_path: Path, kind: str, words: list[str]) -> None:
    path, ours = tmp_path / "tritonserver", tmp_path / "ours"
    ours.write_text(launcher("tritonserver", "python"))
    match kind:
        case "file":
            path.write_text("#!/bin/sh\nexec real\n")
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(ours)
        case _:
            path.symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.iterdir())
    done = link(tmp_path, *words)
    assert done.exit_code == 1
    assert f"{path}: not made by `trivium link`" in done.output
    assert sorted(tmp_path.iterdir()) == before
    assert in_the_way([path, ours]) == [path]
    assert ours.read_text() == launcher("tritonserver", "python")


@pytest.mark.parametrize("names", ["nope", "tritonserver,nope", ","])
def test_names_that_there_are_not(tmp_path: Path, names: str) -> None:
    done = link(tmp_path, "--names", names)
    assert done.exit_code == 2
    assert "there are: djl-serving, tritonserver" in done.output
    assert list(tmp_path.iterdir()) == []


def test_names(tmp_path: Path) -> None:
    assert link(tmp_path, "--names", "tritonserver").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["tritonserver"]


def test_an_archiver_that_is_installed_runs_and_says_nothing_of_its_own(tmp_path: Path) -> None:
    assert link(tmp_path, "--names", "torch-model-archiver").exit_code == 0
    assert is_ours(tmp_path / "torch-model-archiver")
    done = subprocess.run(
        [tmp_path / "torch-model-archiver", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.startswith("usage: torch-model-archiver")
    assert done.stderr == ""


def test_an_archiver_that_is_not_installed_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivium.cli.link.find_spec", lambda name: None)
    done = link(tmp_path)
    assert done.exit_code == 0
    assert (
        "torch-model-archiver is not installed, and not linked: pip install 'trivium[torchserve]'"
        in done.output
    )
    assert {path.name for path in tmp_path.iterdir()} == set(COMMANDS)
    named = link(tmp_path / "other", "--names", "torch-model-archiver")
    assert named.exit_code == 1
    assert "pip install 'trivium[torchserve]'. Nothing was changed." in named.output
    assert not (tmp_path / "other").exists()


def test_an_archiver_that_lies_there_is_left(tmp_path: Path) -> None:
    for name in ARCHIVERS:
        (tmp_path / name).write_text("#!/bin/sh\nexec real\n")
    for words in ([], ["--remove"]):
        assert link(tmp_path, *words).exit_code == 0
        assert all("exec real" in (tmp_path / name).read_text() for name in ARCHIVERS)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = link(tmp_path / "file" / "bin")
    assert done.exit_code == 1
    assert "Choose another folder" in done.output
