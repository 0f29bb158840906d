"""Each template of `trivium init`: made, tested by its own test, served as its README says, and asked so."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.harness import language_models
from tests.harness.server_process import COMMAND, environment, serve

from trivium.demo.projects import TEMPLATES

SECONDS = 300
ANSWERS = {
    "handler": '"positive"',
    "onnx": '"probabilities"',
    "triton-python": '"data":[4]',
    "djl": '"words":4',
    "torchserve": '"words": 4',
    "llm": '"text"',
}
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)


def commands(folder: Path) -> list[list[str]]:
    return [shlex.split(line) for line in _COMMAND.findall((folder / "README.md").read_text())]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_project_is_made_tested_served_and_asked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    made = subprocess.run(
        [*COMMAND, "init", folder, "--template", name],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    assert f"{folder}/README.md" in made.stdout
    assert {"README.md", "Dockerfile", ".dockerignore", "test_model.py"} <= set(os.listdir(folder))
    install, test, served, asked = commands(folder)
    assert install[:2] == ["pip", "install"]
    assert served[:2] == ["trivium", "serve"]
    assert f'"{served[2]}"' in (folder / "Dockerfile").read_text()
    variables = dict(environment())
    if name == "llm":  # its name at the hub stands for a folder
        served[2] = variables["MODEL"] = str(
            language_models.write(tmp_path / "SmolLM2-135M-Instruct", "llama")
        )
    words = [sys.executable, "-m", *test, "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.chdir(folder)
    with serve(tmp_path / "log", served[2]) as server:
        url = next(one for one in asked if one.startswith("http://127.0.0.1:8080/"))
        body = asked[asked.index("-d") + 1]
        answer = httpx.post(
            url.replace("8080", str(server.port)),
            content=body.encode(),
            headers={"Content-Type": "application/json"},
            timeout=SECONDS,
        )
    assert answer.status_code == 200, answer.text
    assert ANSWERS[name].replace(" ", "") in answer.text.replace(" ", "")


def test_a_folder_with_something_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    words = [*COMMAND, "init", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 1
    assert "it is not empty" in done.stderr.replace("\n", " ")
    assert os.listdir(tmp_path) == ["mine"]
