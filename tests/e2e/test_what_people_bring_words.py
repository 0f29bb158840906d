"""What is said to people who come with what they have: causes, hints, places, and answers to browsers."""

import re
import subprocess
import sys
from pathlib import Path

from tests.harness.djl_serving import djl_serving
from tests.harness.ports import free_port
from tests.harness.raw_http import ask, get, post
from tests.harness.server_process import until
from tests.harness.torchserve_command import TorchServeFolder, torchserve
from tests.harness.tritonserver import tritonserver

ECHO = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.get_input_tensor_by_name(r, "x")]) for r in requests]
"""
CONFIG = """backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "x" data_type: TYPE_FP32 dims: 1 }
"""


def triton_model(root: Path, name: str, config: str = CONFIG, code: str = ECHO) -> None:
    """A folder of Triton's, with a Python model."""
    (root / name / "1").mkdir(parents=True)
    (root / name / "config.pbtxt").write_text(config)
    (root / name / "1" / "model.py").write_text(code)


def test_where_triton_says_little_the_cause_is_in_the_log_once(tmp_path: Path) -> None:
    root = tmp_path / "models"
    triton_model(root, "misspelt", CONFIG + "dynamic_batchin { }\n")
    triton_model(root, "unfinished", CONFIG + "instance_group [ { count: 1\n")
    triton_model(
        root,
        "raises",
        code=ECHO + "    def initialize(self, args):\n        raise OSError('no weights.bin')\n",
    )
    with tritonserver(
        tmp_path / "log", "--model-repository", root, "--model-control-mode=explicit", models_raise=True
    ) as server:
        port = server.port("http")
        for name in ("misspelt", "unfinished", "nowhere"):
            for _ in range(3):
                answer = ask(port, post(f"/v2/repository/models/{name}/load", b"{}"))
                assert "failed to poll from model repository" in answer.error
        answer = ask(port, post("/v2/repository/models/raises/load", b"{}"))
        assert "no weights.bin" in answer.error
        assert ask(port, get("/v2/models/raises/ready")).status == 400

        def causes() -> list[str]:
            return [line for line in server.said().splitlines() if "without its cause: " in line]

        until(lambda: len(causes()) >= 4, server.said)
        misspelt, unfinished, nowhere, raises = causes()
        assert all(line.startswith("W") for line in causes())
        assert "misspelt/config.pbtxt:4: dynamic_batchin: " in misspelt
        assert "unfinished/config.pbtxt:4: " in unfinished
        assert "nowhere" in nowhere
        assert "no weights.bin" in raises


PAGE = "https://app.example"
PREFLIGHT = (
    f"Origin: {PAGE}\r\nAccess-Control-Request-Method: POST\r\n"
    "Access-Control-Request-Headers: authorization,content-type\r\nAccess-Control-Request-Private-Network: true\r\n"
)

HANDLER = """
def handle(data, context):
    if "raise" in str(data):
        raise ValueError("no such city")
    return ["said"] * len(data or [])
"""


def test_torchserve_says_at_its_start_how_a_key_is_sent(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("m", HANDLER)
    port = free_port()
    text = f"inference_address=http://127.0.0.1:{port}\ncors_allowed_origin={PAGE}\ncors_allowed_headers=*\n"
    with torchserve(folder, "--models", "/elsewhere/m", text=text) as server:
        server.serves("m", f"Authorization: Bearer {folder.key('inference')}\r\n")
        command = re.search(r"^\s*(curl .*/ping)$", server.said(), re.MULTILINE)
        assert command, server.said()
        assert f"127.0.0.1:{port}" in command[1]
        shell = command[1].replace("python3 -c", f"{sys.executable} -c").replace("curl ", "curl -s ", 1)
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, check=True)
        assert "Healthy" in done.stdout
        assert "--disable-token-auth" in server.said()
        for path in ("/predictions/m", "/models", "/nowhere"):
            asked = server.ask("Inference", "OPTIONS", path, fields=PREFLIGHT)
            assert (asked.status, asked.fields["access-control-allow-origin"]) == (204, PAGE)
        assert server.predict("m").status == 400


def test_where_torchserve_says_little_the_cause_is_in_the_log_once(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("m", HANDLER)
    with torchserve(folder, "--models", "m") as server:
        server.serves("m")
        for _ in range(3):
            answer = server.predict("m", b"raise")
            assert (answer.status, answer.document["message"]) == (503, "Prediction failed")
            assert server.predict("m", b'{"data": 1}', "").status == 200
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        server.ask("Inference", "POST", "/predictions/m", b'{"data": 1}', form)
        until(lambda: "no such city" in server.said(), server.said)
        until(
            lambda: "its body is JSON by its looks: a handler gets it as a form" in server.said(), server.said
        )
        (line,) = [each for each in server.said().splitlines() if "without its cause: " in each]
        assert "to model 'm' is answered with 503" in line
        assert "no such city" in line
        assert re.search(r"handler\.py, line 4", line)


def test_a_command_names_the_options_that_it_has(tmp_path: Path) -> None:
    """None of them has our --fetch-from; TorchServe's configuration has a property of its own for that."""
    elsewhere = "https%3A%2F%2Fmodels.example%2Fm"
    with djl_serving(tmp_path / "djl", home=tmp_path) as server:
        answer = server.manage("POST", f"/models?url={elsewhere}.zip")
        said = f"{answer.body!r}{server.said()}"
        assert "TRIVIUM_FETCH_FROM" in said
        assert "--fetch-from" not in said
    root = tmp_path / "models"
    triton_model(root, "echo")
    with tritonserver(tmp_path / "triton", "--model-repository", root) as triton:
        region = b'{"key": "/nobody", "byte_size": 4}'
        answer = ask(triton.port("http"), post("/v2/systemsharedmemory/region/r/register", region))
        assert "--client-shared-memory" not in f"{answer.body!r}{triton.said()}"
