"""`trivium link` for real: what it puts on the PATH serves NVIDIA's client, and it takes it away again."""

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import tritonclient.http as triton
from tests.fixtures import models
from tests.harness.server_process import COMMAND, SECONDS, environment
from tests.harness.triton_grpc import ONE_ROW
from tests.harness.triton_tensors import given
from tests.harness.tritonserver import tritonserver


def link(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """`trivium link WORDS`; both outputs in `stdout`."""
    return subprocess.run(
        [*COMMAND, "link", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )


def test_the_linked_command_serves(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    done = link(folder)
    assert done.returncode == 0, done.stdout
    assert f"{folder} is not on the PATH" in done.stdout
    found = shutil.which("tritonserver", path=f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert found == str(folder / "tritonserver")
    models.identity(tmp_path / "models", "echo", rows=16)
    with (
        tritonserver(tmp_path / "log", "--model-repository", tmp_path / "models", command=[found]) as server,
        closing(triton.InferenceServerClient(server.address("http"))) as client,
    ):
        np.testing.assert_array_equal(client.infer("echo", [given("x", ONE_ROW)]).as_numpy("y"), ONE_ROW)
    assert link(folder, "--remove").returncode == 0
    assert list(folder.iterdir()) == []


def test_it_runs_this_trivium_wherever_it_is_called(tmp_path: Path) -> None:
    """A folder named trivium where one stands is not the one that is meant."""
    assert link(tmp_path / "bin").returncode == 0
    (tmp_path / "trivium").mkdir()
    (tmp_path / "trivium" / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    done = subprocess.run(
        [str(tmp_path / "bin" / "tritonserver"), "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: tritonserver [options]" in done.stdout


def test_somebody_elses_command_stays(tmp_path: Path) -> None:
    other = tmp_path / "tritonserver"
    other.write_text("#!/bin/sh\necho the real one\n")
    for words in ([], ["--remove"]):
        done = link(tmp_path, *words)
        assert done.returncode == 1
        assert f"{other}: not made by `trivium link`" in done.stdout
    assert other.read_text() == "#!/bin/sh\necho the real one\n"
