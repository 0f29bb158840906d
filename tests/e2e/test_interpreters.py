"""Handlers under interpreters of their own: a virtual environment with its own packages, and none of Trivium's."""

import json
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from tests.harness.server_process import serve

OTHER_NUMPY = "2.2.6"
"""Not the version that the tests themselves run with."""

SAYS = """
import sys, numpy
def versions():
    found = {"python": sys.executable, "numpy": numpy.__version__}
    for name in ("trivium", "msgspec"):
        try:
            __import__(name)
            found[name] = "there"
        except ImportError:
            found[name] = "not there"
    return found
"""

DJL = (
    SAYS
    + """
from djl_python import Output
def handle(inputs):
    return None if inputs.is_empty() else Output().add_as_json(versions())
"""
)

TRITON = (
    SAYS
    + """
import json
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        told = numpy.array([json.dumps(versions()).encode()], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("versions", told)]) for _ in requests]
"""
)

CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "versions" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that holds one package."""
    folder = tmp_path_factory.mktemp("environment") / "other"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"numpy=={OTHER_NUMPY}"], check=True)
    return folder


def test_each_handler_reports_the_versions_of_its_own_interpreter(interpreter: Path, tmp_path: Path) -> None:
    repository = tmp_path / "models"
    write(repository / "plain", TRITON, CONFIG)
    path = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{interpreter}" }} }}'
    write(repository / "other", TRITON, CONFIG + path)
    for name, option in (
        ("djl_plain", ""),
        ("djl_other", f"option.pythonExecutable={interpreter}/bin/python\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(DJL)
        (tmp_path / name / "serving.properties").write_text(f"engine=Python\n{option}")
    with serve(tmp_path / "log", repository, tmp_path / "djl_plain", tmp_path / "djl_other") as server:
        own = {"numpy": np.__version__, "trivium": "there", "msgspec": "there"}
        other = {"numpy": OTHER_NUMPY, "trivium": "not there", "msgspec": "not there"}
        for model, expected in (("plain", own), ("other", other)):
            assert ask_triton(server.port, model).items() >= expected.items()
        for model, expected in (("djl_plain", own), ("djl_other", other)):
            found = ask(server.port, f"/predictions/{model}", b"x")
            assert found.items() >= expected.items()
            assert found["python"].startswith(str(interpreter)) == (expected is other)


def write(folder: Path, code: str, config: str) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(code)
    (folder / "config.pbtxt").write_text(config)


def ask(port: int, path: str, body: bytes) -> dict:
    with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        text = answer.read()
    assert answer.status == 200, text
    return json.loads(text)


def ask_triton(port: int, model: str) -> dict:
    entry = {"name": "x", "shape": [1], "datatype": "FP32", "data": [0]}
    answer = ask(port, f"/v2/models/{model}/infer", json.dumps({"inputs": [entry]}).encode())
    return json.loads(answer["outputs"][0]["data"][0])
