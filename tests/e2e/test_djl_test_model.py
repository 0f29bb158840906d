"""`djl-test-model` for real: under its own name, under an interpreter that has no packages at all."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.commands import trivium
from tests.harness.server_process import SECONDS, environment

MODEL = """
import sys
from djl_python import Output
def handle(inputs):
    print("under", sys.prefix, sorted(name for name in ("trivium", "click", "numpy") if name in sys.modules))
    return Output().add(inputs.get_as_string()).add_property("words", inputs.get_property("words"))
def other(inputs):
    return Output().error("no")
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.py").write_text(MODEL)
    return tmp_path / "model"


def test_it_runs_where_there_is_nothing_but_python(model: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    (model / "serving.properties").write_text(f"option.pythonExecutable={bare}/bin/python\n")
    (tmp_path / "in.txt").write_text("hi")
    assert trivium("link", tmp_path / "bin", "--names", "djl-test-model").returncode == 0
    words = ["--model-dir", "model", "--input", "in.txt", "--parameters", "words=two words"]
    done = subprocess.run(
        [str(tmp_path / "bin" / "djl-test-model"), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"under {bare} []" in done.stdout
    assert '"words": "two words"' in done.stdout
    assert "output: {" in done.stdout


def test_another_function(model: Path) -> None:
    done = trivium("djl-test-model", "--model-dir", model, "--handler", "other", "--input", "x")
    assert (done.returncode, '"code": 424' in done.stdout) == (0, True), done.stdout


ASYNC = """
import asyncio
from djl_python import Output
async def one(inputs):
    await asyncio.sleep(0)
    return Output().add(inputs.get_as_string())
async def pieces(inputs):
    return several(inputs)
async def several(inputs):
    for code in (201, 202):
        yield Output(code)
"""


@pytest.mark.parametrize(
    ("handler", "codes"), [("one", [200]), ("pieces", [201, 202]), ("several", [201, 202])]
)
def test_an_asynchronous_function_is_waited_for(model: Path, handler: str, codes: list[int]) -> None:
    (model / "model.py").write_text(ASYNC)
    done = trivium("djl-test-model", "--model-dir", model, "--handler", handler, "--input", "x")
    assert done.returncode == 0, done.stdout
    assert [int(code) for code in re.findall(r'"code": (\d+)', done.stdout)] == codes


def test_what_is_wrong_is_said(model: Path) -> None:
    done = trivium("djl-test-model", "--model-dir", model, "--entry-point", "absent.py", "--input", "x")
    assert done.returncode == 1
    assert "entry-point file not found" in done.stdout
    assert trivium("djl-test-model", "--modeldir", model).returncode == 2


def test_the_module_by_its_folder_as_the_manual_says(model: Path) -> None:
    where = "import trivium_worker; print(trivium_worker.__path__[0])"
    found = subprocess.run([sys.executable, "-c", where], capture_output=True, text=True, check=True)
    shim = f"{found.stdout.strip()}/shims/djl"
    folders = [shim, *filter(None, [environment().get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "djl_python.test_model", "--model-dir", str(model), "--input", "hi"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**environment(), "PYTHONPATH": ":".join(folders)},
        check=False,
    )
    assert (done.returncode, "output: {" in done.stdout) == (0, True), done.stderr
