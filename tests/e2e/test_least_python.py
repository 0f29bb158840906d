"""Handlers of all three dialects under the least Python that is promised, and what is said of an older one."""

import json
import subprocess
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.harness.least_python import HOW, LEAST, interpreter
from tests.harness.server_process import serve, serve_handlers
from tests.harness.torchserve_command import TorchServeFolder, torchserve

NUMPY = "2.2.6"
"""The last that this Python has."""

VERSION = "import sys\nversion = '%d.%d' % sys.version_info[:2]\n"
DJL = VERSION + (
    "from djl_python import Input, Output\n"
    "def handle(inputs: Input) -> Output | None:\n"
    "    return None if inputs.is_empty() else Output().add(version + inputs.get_as_string())\n"
)
ASYNC = VERSION + (
    "from djl_python import Output\n"
    "async def handle(inputs):\n"
    "    return None if inputs.is_empty() else pieces(inputs.get_as_string())\n"
    "async def pieces(text):\n"
    "    for piece in (version, text):\n"
    "        yield Output().add(piece)\n"
)
TRITON = VERSION + (
    "import json\nimport numpy\nimport triton_python_backend_utils as pb_utils\n"
    "class TritonPythonModel:\n"
    "    async def execute(self, requests):\n"
    "        return [pb_utils.InferenceResponse([pb_utils.Tensor('said', numpy.array([version.encode()], object))])\n"
    "                for request in requests]\n"
)
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "said" data_type: TYPE_STRING dims: [ 1 ] } ]
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "%s" } }
"""
TORCHSERVE = VERSION + (
    "class Handler:\n"
    "    def initialize(self, context):\n"
    "        self.name = context.manifest['model']['modelName']\n"
    "    def handle(self, data, context):\n"
    "        return [' '.join((version, self.name, row['body'])) for row in data]\n"
)


@pytest.fixture(scope="module")
def python() -> str:
    found = interpreter()
    if found is None:
        pytest.skip(HOW)
    return found


def lay_out(folder: Path, code: str, options: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(code)
    (folder / "serving.properties").write_text(f"engine=Python\n{options}")
    return folder


def ask(port: int, path: str, body: bytes) -> tuple[int, str]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_handlers_of_djl(python: str, tmp_path: Path) -> None:
    named = f"option.pythonExecutable={python}\n"
    lay_out(tmp_path / "models" / "plain", DJL, named)
    lay_out(tmp_path / "models" / "many", ASYNC, f"{named}option.async_mode=true\n")
    with serve_handlers(tmp_path / "log", tmp_path / "models") as server:
        for model in ("plain", "many"):
            assert ask(server.port, f"/predictions/{model}", b" hi") == (200, f"{LEAST} hi")


def test_a_model_of_triton(python: str, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"numpy=={NUMPY}"], check=True)
    model = tmp_path / "models" / "says"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.py").write_text(TRITON)
    (model / "config.pbtxt").write_text(CONFIG % place)
    entry = {"name": "x", "shape": [1], "datatype": "FP32", "data": [0]}
    with serve(tmp_path / "log", tmp_path / "models") as server:
        status, body = ask(server.port, "/v2/models/says/infer", json.dumps({"inputs": [entry]}).encode())
    assert status == 200, body
    assert json.loads(body)["outputs"][0]["data"] == [LEAST]


def test_a_handler_of_torchserve(python: str, tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("says", TORCHSERVE, "minWorkers: 1\n")
    text = f"disable_token_authorization=true\nload_models=all\npython={python}\n"
    with torchserve(folder, text=text) as server:
        answer = server.predict("says", b"hi")
        assert (answer.status, answer.body) == (200, f"{LEAST} says hi".encode())


def test_an_older_one_is_refused_in_a_sentence(tmp_path: Path) -> None:
    old = interpreter("3.9") or interpreter("3.8")
    if old is None:
        pytest.skip("there is no Python 3.9 or 3.8 on this machine to be refused")
    model = lay_out(tmp_path / "models" / "old", DJL, f"option.pythonExecutable={old}\n")
    lay_out(tmp_path / "models" / "new", DJL, "")
    with serve_handlers(tmp_path / "log", tmp_path / "models") as server:
        status, _ = ask(server.port, "/predictions/old", b"hi")
        assert ask(server.port, "/predictions/new", b"hi")[0] == 200
        said = server.said()
    assert status == 503
    assert (
        f"The interpreter {old} ({model / 'serving.properties'}:2 (option.pythonExecutable)) is Python 3."
        in said
    )
    assert f"a handler needs Python {LEAST} or newer" in said
