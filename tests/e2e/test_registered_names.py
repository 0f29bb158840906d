"""Names that clients register, by every road: refused in words without a path of the server, or shown, described and
taken away as they are shown.
"""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import grpc
import pytest
from tests.fixtures import models
from tests.harness import handlers
from tests.harness.raw_http import Answer, get, post
from tests.harness.server_process import ServerProcess, serve
from tritonclient.grpc import service_pb2

from trivium.types.registered_names import LONGEST

REFUSED = ("a" * (LONGEST + 1), "a" * 5000, "é" * 200, "a\0b", "a\nb", "a\x1bb", "a\u202eb", "..", ".")
ADMITTED = ("a" * LONGEST, "é" * 127, "a b", "日本語")
HANDLER = "from djl_python import Output\ndef handle(inputs):\n    return Output().add('served')\n"


def judge(answer: Answer, root: Path) -> None:
    """It is refused, by whoever asked, in words that tell nothing of the server's disk."""
    text = answer.body.decode()
    assert 400 <= answer.status < 500, answer
    assert str(root) not in text, text
    assert "Errno" not in text, text
    assert "trivium-scratch" not in text, text


def over_grpc(server: ServerProcess, method: str, message: bytes) -> str:
    """What a call is refused with; empty where it is not."""
    with grpc.insecure_channel(server.grpc_address) as channel:
        try:
            channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(message, timeout=60)
        except grpc.RpcError as error:
            return str(error.details())
    return ""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    models.add(tmp_path / "store", "add")
    return tmp_path / "store"


def test_over_v2_and_as_models_of_djl(store: Path, tmp_path: Path) -> None:
    file = base64.b64encode((store / "add" / "1" / "model.onnx").read_bytes()).decode()
    config = {"config": '{"backend": "onnxruntime"}', "file:1/model.onnx": file}
    folder = handlers.djl(tmp_path / "handlers", "one", HANDLER, "minWorkers=1\nmaxWorkers=1\n")
    with serve(tmp_path / "log", "--client-shared-memory", store) as server:
        for name in REFUSED:
            path = quote(name, safe="")
            for parameters in (config, {"config": config["config"]}):
                body = json.dumps({"parameters": parameters}).encode()
                judge(server.ask(post(f"/v2/repository/models/{path}/load", body)), tmp_path)
            region = json.dumps({"key": "/none", "byte_size": 4}).encode()
            judge(server.ask(post(f"/v2/systemsharedmemory/region/{path}/register", region)), tmp_path)
            for query in (f"model_name={path}", f"model_name=m&model_version={path}"):
                judge(server.ask(post(f"/models?url={folder}&{query}", b"")), tmp_path)
            if "\ud800" not in name:
                told = over_grpc(
                    server,
                    "SystemSharedMemoryRegister",
                    service_pb2.SystemSharedMemoryRegisterRequest(
                        name=name, key="/none", byte_size=4
                    ).SerializeToString(),
                )
                assert "The name of a shared memory region" in told
                load = service_pb2.RepositoryModelLoadRequest(model_name=name)
                load.parameters["config"].string_param = config["config"]
                load.parameters["file:1/model.onnx"].bytes_param = base64.b64decode(file)
                assert "The name of a model" in over_grpc(
                    server, "RepositoryModelLoad", load.SerializeToString()
                )
        for name in ADMITTED:
            path = quote(name, safe="")
            assert server.ask(post(f"/models?url={folder}&model_name={path}", b"")).status == 200, name
            listed = server.ask(get("/models?limit=1000")).document["models"]
            (shown,) = [one["modelName"] for one in listed if one["modelName"] == name]
            assert server.ask(get(f"/models/{quote(shown, safe='')}")).status == 200
            assert server.ask(get(f"/models/{quote(shown, safe='')}", method=b"DELETE")).status == 200
        assert "Our own fault" not in server.said()


def test_over_torchserve(tmp_path: Path) -> None:
    store = tmp_path / "store"
    place = store / "one"
    (place / "MAR-INF").mkdir(parents=True)
    told = {"modelName": "one", "modelVersion": "1.0", "handler": "handler.py"}
    (place / "MAR-INF" / "MANIFEST.json").write_text(json.dumps({"runtime": "python", "model": told}))
    (place / "handler.py").write_text("def handle(data, context):\n    return ['served'] * len(data or [])\n")
    words = ("--profile", "torchserve", "--torchserve-model-store", store)
    with serve(tmp_path / "log", *words, store) as server:
        for name in REFUSED:
            asked = post(f"/models?url=one&model_name={quote(name, safe='')}", b"")
            judge(server.ask(asked), tmp_path)
        for name in ADMITTED:
            path = quote(name, safe="")
            asked = post(f"/models?url=one&model_name={path}&initial_workers=0&synchronous=true", b"")
            assert server.ask(asked).status == 200, name
            listed = server.ask(get("/models?limit=1000")).document["models"]
            (shown,) = [one["modelName"] for one in listed if one["modelName"] == name]
            assert server.ask(get(f"/models/{quote(shown, safe='')}")).status == 200
            assert server.ask(get(f"/models/{quote(shown, safe='')}", method=b"DELETE")).status == 200
