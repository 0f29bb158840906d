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
from tests.harness.server_process import COMMAND, ServerProcess, environment, started, until

from trivium.demo.projects import TEMPLATES, write_project

ROOT = Path(__file__).parents[2]

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


def tried(name: str, tmp_path: Path, python: Path, variables: dict[str, str]) -> None:
    """Make a project, and do what its README says, under this interpreter; `pip install` is behind us."""
    command = [python, "-P", "-m", "trivium"]
    folder = tmp_path / "project"
    made = subprocess.run(
        [*command, "init", folder, "--template", name],
        capture_output=True,
        text=True,
        check=True,
        env=variables,
    )
    assert f"{folder}/README.md" in made.stdout
    assert {"README.md", "Dockerfile", ".dockerignore", "test_model.py"} <= set(os.listdir(folder))
    install, test, served, asked = commands(folder)
    assert install[:2] == ["pip", "install"]
    assert served[:2] == ["trivium", "serve"]
    assert f'"{served[2]}"' in (folder / "Dockerfile").read_text()
    if name == "llm":  # its name at the hub stands for a folder
        served[2] = variables["MODEL"] = str(
            language_models.write(tmp_path / "SmolLM2-135M-Instruct", "llama")
        )
    words = [python, "-m", *test, "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    words = [*command, "serve", "--http-port", "0", "--grpc-port", "0", folder / served[2]]
    with started(tmp_path / "log", *words, variables=variables) as process:
        server = ServerProcess(process, tmp_path / "log")
        until(server.is_ready, server.said)
        url = next(one for one in asked if one.startswith("http://127.0.0.1:8080/"))
        body = asked[asked.index("-d") + 1]
        answer = httpx.post(
            url.replace("8080", str(server.port)),
            content=body.encode(),
            headers={"Content-Type": "application/json"},
            timeout=SECONDS,
        )
        server.terminate()
        assert server.wait() == 0, server.said()
    assert answer.status_code == 200, answer.text
    assert ANSWERS[name].replace(" ", "") in answer.text.replace(" ", "")


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_project_is_made_tested_served_and_asked(name: str, tmp_path: Path) -> None:
    tried(name, tmp_path, Path(sys.executable), dict(environment()))


@pytest.mark.soak
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_project_runs_in_an_environment_that_has_what_its_readme_installs(
    name: str, tmp_path: Path
) -> None:
    place, constraints = tmp_path / "env", tmp_path / "constraints.txt"
    constraints.write_text("torch==2.13.0\n")
    write_project(tmp_path / "read", name)
    (_, _, *packages), *_ = commands(tmp_path / "read")
    words = [one.replace("trivium", str(ROOT), 1) if one.startswith("trivium") else one for one in packages]
    variables = {
        **environment(),
        "PIP_CONSTRAINT": str(constraints),
        "PATH": f"{place / 'bin'}:/usr/bin:/bin",
    }
    variables.pop("PYTHONPATH", None)
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", *words], check=True, env=variables)
    tried(name, tmp_path, place / "bin" / "python", variables)


def test_a_folder_with_something_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    words = [*COMMAND, "init", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 1
    assert "it is not empty" in done.stderr.replace("\n", " ")
    assert os.listdir(tmp_path) == ["mine"]
