"""TorchServe's gRPC services asked by grpcio, blocking and by asyncio, with stubs that grpc_tools compiles."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import TorchServeFolder, torchserve

CLIENT = Path(__file__).parent / "torchserve_client"
ECHO = "def handle(data, context):\n    return data and [bytes(row.get('data') or b'') for row in data]\n"
PARTS = (
    "from ts.handler_utils.utils import send_intermediate_predict_response as send\n"
    "def handle(data, context):\n    if not data:\n        return None\n"
    "    send(['a'], context.request_ids, 'ok', 200, context)\n    return ['b']\n"
)
UNKNOWN = ["INTERNAL", "Model not found: nobody\norg.pytorch.serve.archive.model.ModelNotFoundException"]


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules that grpc_tools makes of both files."""
    folder = tmp_path_factory.mktemp("stubs")
    words = [
        "-m",
        "grpc_tools.protoc",
        f"-I{CLIENT}",
        f"--python_out={folder}",
        f"--grpc_python_out={folder}",
    ]
    files = ["inference.proto", "management.proto"]
    done = subprocess.run([sys.executable, *words, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_stubs_of_grpc_tools_serve_both_ways(stubs: Path, tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("echo", ECHO)
    folder.model("parts", PARTS)
    words = ("--models", "echo", "parts", "--enable-model-api")
    with torchserve(folder, *words, text="") as server:
        keys = [folder.key("inference"), folder.key("management")]
        server.serves("echo", f"Authorization: Bearer {keys[0]}\r\n")
        until(lambda: "Model parts loaded" in server.said(), server.said)
        given = {
            "addresses": [f"127.0.0.1:{server.port(f'gRPC {api}')}" for api in ("inference", "management")],
            "keys": keys,
            "archive": "echo",
        }
        done = subprocess.run(
            [sys.executable, CLIENT / "calls.py", json.dumps(given)],
            env={**os.environ, "PYTHONPATH": f"{stubs}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    blocking, awaited = found["blocking"], found["awaited"]
    registered, described, listed, *rest = blocking.pop("life")
    assert blocking == {
        "ping": '{\n  "status": "Healthy"\n}',
        "predicted": "hi",
        "later": "later",
        "streamed": ["a", "b"],
        "sequence": [["a", "", 0], ["b", "", 0]],
        "unknown": UNKNOWN,
        "no key": [
            "PERMISSION_DENIED",
            "Token Authorization failed. Token either incorrect, expired, or not provided correctly",
        ],
    }
    assert registered == 'Model "registered" Version: 1.0 registered with 1 initial workers'
    assert [each["modelName"] for each in json.loads(described)] == ["registered"]
    assert [each["modelName"] for each in json.loads(listed)["models"]] == ["echo", "parts", "registered"]
    assert rest == [
        "Workers scaled to 2 for model: registered",
        'Default version successfully updated for model "registered" to "1.0"',
        'Model "registered" unregistered',
    ]
    assert awaited == {
        "many": [str(each) for each in range(20)],
        "streamed": ["a", "b"],
        "first": "a",
        "after": "hi",
        "unknown": UNKNOWN,
    }
