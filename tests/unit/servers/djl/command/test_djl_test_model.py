"""`trivium djl-test-model`: which interpreter runs the handler, and what is handed on."""

import os
import sys
from pathlib import Path

import pytest
from click import ClickException
from click.testing import CliRunner

from trivium.servers.djl.command.test_model import command, interpreter


def settings(folder: Path, text: str) -> Path:
    (folder / "serving.properties").write_text(text)
    return folder


@pytest.mark.parametrize("words", [[], ["--input", "x"], ["--model-dir"], ["--help"]])
def test_trivium_s_own_unless_the_model_names_one(words: list[str], monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert interpreter(words) == sys.executable
    settings(tmp_path, "option.pythonExecutable=\n")
    assert interpreter(words) == sys.executable


def test_the_models_own(tmp_path: Path, monkeypatch) -> None:
    other = tmp_path / "python-other"
    other.symlink_to(sys.executable)
    folder = settings(tmp_path, f"a=b\noption.pythonExecutable={other}\n")
    assert interpreter(["--input", "x", "--model-dir", str(folder)]) == str(other)
    assert interpreter([f"--model-dir={folder}", "--parameters", "a=b"]) == str(other)
    settings(tmp_path, "option.pythonExecutable=python-other\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert interpreter(["--model-dir", str(folder)]) == str(other)


def test_one_that_is_not_there(tmp_path: Path) -> None:
    folder = settings(tmp_path, "a=b\noption.pythonExecutable=/absent/python\n")
    with pytest.raises(
        ClickException, match=r"serving.properties:2: option.pythonExecutable=/absent/python.*3\.10"
    ):
        interpreter(["--model-dir", str(folder)])


def test_all_words_are_handed_on(monkeypatch) -> None:
    called = []
    monkeypatch.setattr(os, "execv", lambda program, words: called.append((program, words)))
    words = ["--input", "a", "k=b", "--nonsense", "-h"]
    assert CliRunner().invoke(command, words).exit_code == 0
    program, given = called[0]
    assert program == given[0] == sys.executable
    assert given[2:] == ["--tool", "djl", "djl_python.test_model", *words]
