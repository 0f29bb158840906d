"""Under an interpreter that is too old a worker says so, in whatever form its caller waits for."""

import ast
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import trivium_worker
from trivium_worker import too_old
from trivium_worker.wire import frames

ROOT = Path(trivium_worker.__file__).parent
SETUP = {"python": "serving.properties:2 (option.pythonExecutable)", "model": "m"}
CODE = "import sys; from trivium_worker.too_old import refuse; refuse(sys.argv[1:])"


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py", "too_old.py"])
def test_what_it_needs_for_that_is_any_python_3(name: str) -> None:
    ast.parse((ROOT / name).read_bytes(), feature_version=(3, 5))


def test_a_worker_says_it_in_a_frame() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.frame(frames.SETUP, frames.text(SETUP)))
        words = ["{}", str(theirs.fileno()), "0", "0"]
        done = subprocess.run([sys.executable, "-c", CODE, *words], pass_fds=[theirs.fileno()], check=False)
        came = ours.recv(2**16)
    assert done.returncode == 1
    ((kind, at, end),), used = frames.frames(came)
    assert (kind, used) == (frames.REFUSED, len(came))
    assert frames.read(came[at:end]) == {"message": too_old.sentence(SETUP), "code": "load failed"}


def test_who_waits_for_json_gets_json() -> None:
    command = [sys.executable, "-c", CODE, "--complete"]
    done = subprocess.run(command, input=json.dumps(SETUP), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"message": too_old.sentence(SETUP), "code": "load failed"}


def test_a_tool_prints_it() -> None:
    command = [sys.executable, "-c", CODE, "--tool", "djl", "djl_python.test_model"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", too_old.sentence({}) + os.linesep)


def test_the_sentence_names_interpreter_key_and_version() -> None:
    said = too_old.sentence(SETUP)
    version = ".".join(map(str, sys.version_info[:3]))
    for words in (sys.executable, SETUP["python"], f"Python {version}", "Python 3.10 or newer"):
        assert words in said
