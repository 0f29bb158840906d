"""Whatever lies in the folder where a command is called under the name of a module is neither run nor in the way."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness import handlers, language_models, torchserve_command
from tests.harness import python_packages as packages
from tests.harness.decoys import NAMES, decoys
from tests.harness.djl_serving import djl_serving
from tests.harness.raw_http import ask, get, infer_request, post, tensor
from tests.harness.server_process import (
    COMMAND,
    SECONDS,
    ServerProcess,
    environment,
    started,
    until,
)
from tests.harness.torchserve_command import TorchServeFolder, torchserve
from tests.harness.tritonserver import tritonserver

_SCRIPT = "from trivium.cli.main import main\nmain(prog_name='trivium')\n"
_ECHO = "from djl_python import Output\ndef handle(inputs):\n    return Output().add('served')\n"
_HANDLE = "def handle(data, context):\n    return ['served'] * len(data or [])\n"
_STRINGS = infer_request("text", tensor("text", ["a", "b"], [2, 1], "BYTES"))
"""For a model that a worker of the server's own interpreter runs."""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """The folder of decoys in which everything is called. None of them may have been imported in the end."""
    marks = tmp_path / "marks"
    assert len(NAMES) >= 50
    yield decoys(tmp_path / "here", marks)
    assert not marks.exists(), marks.read_text()


@pytest.fixture
def command(tmp_path: Path) -> tuple[str, ...]:
    """As a user calls it: by a script, whose folder is on the path in place of the current one."""
    script = tmp_path / "bin" / "trivium"
    script.parent.mkdir()
    script.write_text(_SCRIPT)
    return (sys.executable, str(script))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A repository whose models are looked at by a probe, and run in threads, workers and handlers."""
    root = tmp_path / "store"
    models.add(root, "add")
    models.text(root, "text")
    handlers.triton(
        root, "python", handlers.VENDORED.replace("import vendored\n", "").replace("vendored.VERSION", "3")
    )
    return root


def inside(folder: Path, *command: str | Path) -> tuple[str, ...]:
    return ("env", "-C", str(folder), *map(str, command))


def said(folder: Path, *command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        inside(folder, *command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env={**environment(), **variables},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_decoys_bite(tmp_path: Path) -> None:
    """Whoever has the current folder on the path does import one."""
    marks = tmp_path / "marks"
    folder = decoys(tmp_path / "here", marks)
    done = subprocess.run(
        [sys.executable, "-c", "import numpy"], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode
    assert "numpy, imported by" in marks.read_text()


def test_commands_that_end_by_themselves(
    here: Path, command: tuple[str, ...], store: Path, tmp_path: Path
) -> None:
    checked = said(here, *command, "check", store)
    assert all(name in checked for name in ("add", "text", "python")), checked
    assert "sha256" in said(here, *command, "key", "ci")
    assert "trivium, version" in said(here, *command, "--version")
    said(here, *command, "link", tmp_path / "linked")
    assert "--model-repository" in said(here, tmp_path / "linked" / "tritonserver", "--help")
    model = packages.model(tmp_path, "one", "", code=_ECHO)
    assert '"code": 200' in said(here, *command, "djl-test-model", "--model-dir", model)


def test_started_as_a_module(here: Path, store: Path) -> None:
    """`python -m` puts the current folder on the path: it is taken off, and -P never puts it there."""
    isolated = (COMMAND[0], "-P", *COMMAND[1:])
    assert "add" in said(here, *isolated, "check", store)
    for name in (
        "trivium",
        "warnings",
        "contextlib",
        "typing",
    ):  # which Python looks for before our first line
        for path in (here / f"{name}.py", here / name / "__init__.py"):
            path.unlink(missing_ok=True)
    assert "add" in said(here, *COMMAND, "check", store)


def test_serve_with_probes_workers_handlers_and_packages(
    here: Path, command: tuple[str, ...], store: Path, tmp_path: Path
) -> None:
    """With an environment of its own for one, which another interpreter's venv and pip make in the model's folder."""
    own = packages.bundled(tmp_path, "own", "1.0")
    words = ("--http-port", "0", "--grpc-port", "0", "--install-packages", "start", store, own)
    variables = {**environment(), "PIP_NO_INDEX": "1", "TMPDIR": str(tmp_path)}
    line = inside(here, *command, "serve", *words)
    with started(tmp_path / "log", *line, variables=variables) as process:
        server = ServerProcess(process, tmp_path / "log")
        until(server.is_ready, server.said)
        assert server.ask(post("/predictions/own", b"x")).document[0] == "1.0"
        assert server.ask(_STRINGS).status == 200
        commands = [" ".join(one.cmdline()) for one in server.workers()]
        assert any("trivium.cli.worker" in one for one in commands)
        server.terminate()
        assert server.wait() == 0, server.said()


@pytest.mark.soak
def test_packages_of_a_folder_that_holds_decoys(here: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    """Venv and pip run in the model's folder, since relative paths lead from there."""
    own = packages.bundled(tmp_path, "own", "1.0")
    decoys(own, tmp_path / "marks", ("venv", "ensurepip", "pip", "tarfile", "secrets", "tomllib", "optparse"))
    variables = {"PIP_NO_INDEX": "1", "DJL_VENV_DIR": str(tmp_path)}
    line = inside(here, *command, "djl-serving")
    with djl_serving(tmp_path / "log", "-m", own, command=line, variables=variables) as server:
        assert server.infer("POST", "/predictions/own", b"x").document[0] == "1.0"


@pytest.mark.soak
def test_a_language_model(here: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = language_models.write(tmp_path / "tiny", "llama")
    line = inside(here, *command, "serve", "--http-port", "0", "--grpc-port", "0", folder)
    with started(tmp_path / "log", *line, variables=environment()) as process:
        server = ServerProcess(process, tmp_path / "log")
        until(server.is_ready, server.said)
        body = json.dumps({"model": "tiny", "prompt": "some text", "max_tokens": 3}).encode()
        assert server.ask(post("/v1/completions", body)).status == 200, server.said()
        server.terminate()
        assert server.wait() == 0, server.said()


@pytest.mark.soak
def test_tritonserver(here: Path, command: tuple[str, ...], store: Path, tmp_path: Path) -> None:
    line = inside(here, *command, "tritonserver")
    with tritonserver(tmp_path / "log", "--model-repository", store, command=line) as server:
        assert ask(server.port("http"), _STRINGS).status == 200
        assert ask(server.port("http"), get("/v2/models/python/ready")).status == 200


@pytest.mark.soak
@pytest.mark.parametrize("in_background", [False, True])
def test_torchserve(here: Path, command: tuple[str, ...], in_background: bool) -> None:
    folder = TorchServeFolder(here)
    folder.model("one", _HANDLE)
    words = ("--models", "one=one")
    line = (*command, "torchserve")
    if in_background:
        with torchserve_command.background(folder, *words, "--disable-token-auth", command=line) as server:
            server.serves("one")
    else:
        with torchserve(folder, *words, command=line) as running:
            running.serves("one")
