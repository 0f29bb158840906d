"""Whatever handlers print, folders are called and errors say is text, in the log and on the terminal."""

import re
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.commands import refusal, trivium
from tests.harness.raw_http import ask, infer, infer_request, tensor
from tests.harness.server_process import COMMAND, LoggedProcess, serve, started

ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \r back \x08 \x9b1m \u202eesrever"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
PRINTS = f"""
import sys
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        print({ESCAPES!r}, flush=True)
        print({ESCAPES!r}, file=sys.stderr, flush=True)
        pb.Logger.log_warn({ESCAPES!r} + "\\nERROR trivium: a line of its own")
        raise ValueError({ESCAPES!r} + "\\nERROR trivium: a line of its own")
"""
FAILS = f"""
class TritonPythonModel:
    def initialize(self, args):
        raise ValueError({ESCAPES!r})
"""
CONFIG = """backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
"""
ODD = "odd \x1b[31m name"
MARKUP = "[red]markup"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    for name in ("echo", ODD, MARKUP):
        models.identity(root, "echo" if name == "echo" else "x", rows=16)
        if name != "echo":
            (root / "x").rename(root / name)
            config = root / name / "config.pbtxt"
            lines = config.read_text().splitlines(keepends=True)
            config.write_text("".join(line for line in lines if not line.startswith("name:")))
    for name, code in (("prints", PRINTS), ("fails", FAILS)):
        (root / name / "1").mkdir(parents=True)
        (root / name / "1" / "model.py").write_text(code)
        (root / name / "config.pbtxt").write_text(CONFIG)
    (root / "wrong \x1b]0;x\x07").mkdir()
    (root / "wrong \x1b]0;x\x07" / "config.pbtxt").write_text('backend: "\x1b[31m"\n')
    return root


def is_harmless(text: str) -> bool:
    return OBEYED.search(text) is None and "\\x1b" in text


def test_the_log_and_the_screen_of_a_server(folder: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", folder, "--log-level", "info", models_raise=True) as server:
        answer = server.ask(infer_request("prints", tensor("x", [1, 2, 3, 4], [4])))
        assert answer.status == 500
        assert infer(server.port, "echo", [[1, 2, 3, 4]]) == [[1, 2, 3, 4]]
    text = server.said()
    assert is_harmless(text), OBEYED.search(text)
    assert r"prints_0 stdout: \x1b[31mred" in text
    assert r"prints_0 stderr: \x1b[31mred" in text
    assert MARKUP in text
    assert r"odd \x1b[31m name" in text
    assert not re.search(r"^ERROR trivium: a line", text, re.MULTILINE)


def test_tritons_command(folder: Path, tmp_path: Path) -> None:
    words = [*COMMAND, "tritonserver", "--model-repository", str(folder), "--exit-on-error=false"]
    words += ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]
    with started(tmp_path / "log", *words) as process:
        server = LoggedProcess(process, tmp_path / "log")
        port = int(server.await_line(re.compile(r"Started HTTPService at [\d.]+:(\d+)"))[1])
        assert ask(port, infer_request("prints", tensor("x", [1, 2, 3, 4], [4]))).status == 500
        server.await_line(re.compile("prints_0 stdout: .*red"))
    text = server.said()
    assert is_harmless(text.replace("\\u001b", "\\x1b")), OBEYED.search(text)
    assert not re.search(r"^ERROR trivium: a line", text, re.MULTILINE)


def test_commands_that_end_by_themselves(folder: Path) -> None:
    checked = trivium("check", folder)
    assert checked.returncode == 1
    assert is_harmless(checked.stdout), OBEYED.search(checked.stdout)
    assert is_harmless(refusal("check", folder / "no \x1b[31mfolder"))
    assert is_harmless(refusal("serve", folder / "no \x1b[31mfolder", "--http-port", "0"))
