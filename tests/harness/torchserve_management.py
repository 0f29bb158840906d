"""A server of TorchServe's profile with ports of its own for management, asked by `requests` and by grpcio."""

import contextlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from tests.harness.server_process import ServerProcess, serve_handlers

import requests
from trivium.codecs.protobuf_schema import classes_of
from trivium.servers.torchserve.wire.grpc_messages import INFERENCE_MESSAGES, MANAGEMENT_MESSAGES

ECHO = """
import os, signal, time
class Echo:
    def initialize(self, context):
        self.name = context.manifest["model"]["modelVersion"]
        self.headers = {}
    def handle(self, data, context):
        answers = []
        for index, row in enumerate(data):
            headers = context.get_all_request_header(index)
            if headers.get("describe") == "True":
                answers.append({"about": self.name})
                continue
            body = row.get("body", row.get("data", b""))
            text = bytes(body).decode() if isinstance(body, (bytes, bytearray)) else str(body)
            if text == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if text == "exit":
                os._exit(3)
            if text == "fail":
                raise ValueError("as told")
            if text == "513":
                from ts.service import PredictionException
                raise PredictionException("theirs", 513)
            if text.startswith("slow"):
                time.sleep(0.02)
            if text == "headers":
                answers.append(dict(headers))
                continue
            answers.append("%s:%s" % (self.name, text))
        return answers
"""
FAILS = "class Fails:\n    def initialize(self, context):\n        raise RuntimeError('no weights')\n" + (
    "    def handle(self, data, context):\n        return data\n"
)
STREAMS = """
from ts.handler_utils.utils import send_intermediate_predict_response
def handle(data, context):
    if data is None:
        return None
    for part in ("a", "b"):
        send_intermediate_predict_response([part] * len(data), context.request_ids, "ok", 200, context)
    return ["c"] * len(data)
"""
_LINES = {
    "management": re.compile(r"^management on http://[\d.]+:(\d+)", re.MULTILINE),
    "gRPC management": re.compile(r"^gRPC management on [\d.]+:(\d+)", re.MULTILINE),
}
INFERENCE = classes_of("org.pytorch.serve.grpc.inference", INFERENCE_MESSAGES)
MANAGEMENT = classes_of("org.pytorch.serve.grpc.management", MANAGEMENT_MESSAGES)
_INFERS = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"
_MANAGES = "/org.pytorch.serve.grpc.management.ManagementAPIsService/"


def archive(
    store: Path, name: str, version: str = "1.0", code: str = ECHO, config: str = "", file: str = ""
) -> Path:
    """Write an archive of this handler into the store."""
    model = {"modelName": name, "handler": "handler.py", "modelVersion": version}
    if config:
        model["configFile"] = "config.yaml"
    store.mkdir(parents=True, exist_ok=True)
    path = store / (file or f"{name}.mar")
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("MAR-INF/MANIFEST.json", json.dumps({"runtime": "python", "model": model}))
        packed.writestr("handler.py", code)
        packed.writestr("config.yaml", config)
    return path


@dataclass(frozen=True)
class Managed:
    """A running server, with the ports at which models are managed."""

    process: ServerProcess
    port: int
    rpc_port: int

    def manage(self, method: str, path: str, **more: Any) -> requests.Response:
        """A request to the management port."""
        return requests.request(method, f"http://127.0.0.1:{self.port}{path}", timeout=120, **more)

    def status(self, method: str, path: str, **more: Any) -> tuple[int, str]:
        """The status of an answer, and what it says."""
        answer = self.manage(method, path, **more)
        document = answer.json()
        return answer.status_code, document.get("status") or document["message"]

    def names(self) -> list[str]:
        """The models that are listed."""
        return [each["modelName"] for each in self.manage("GET", "/models").json()["models"]]

    def describe(self, path: str) -> Any:
        """What is said of the versions at a path."""
        return self.manage("GET", f"/models/{path}").json()

    def infer(self, method: str, path: str, **more: Any) -> requests.Response:
        """A request to the inference port."""
        return requests.request(method, f"{self.process.url}{path}", timeout=120, **more)

    def predict(self, model: str, text: str = "x") -> tuple[int, str]:
        """A prediction's status and text."""
        answer = self.infer("POST", f"/predictions/{model}", data=text.encode())
        return answer.status_code, answer.text

    @contextlib.contextmanager
    def rpcs(self) -> Iterator["Rpcs"]:
        """Stubs for both services."""
        address = self.process.grpc_address
        with (
            grpc.insecure_channel(address) as infers,
            grpc.insecure_channel(f"127.0.0.1:{self.rpc_port}") as manages,
        ):
            yield Rpcs(infers, manages)


class Rpcs:
    """Stubs as grpcio's own compiler makes them. An error is a pair of its code's name and its details."""

    def __init__(self, infers: grpc.Channel, manages: grpc.Channel) -> None:
        self._infers, self._manages = infers, manages

    def manage(self, name: str, **fields: Any) -> Any:
        """The message of an RPC that manages, or its error."""
        call = self._manages.unary_unary(_MANAGES + name, _bytes, MANAGEMENT["ManagementResponse"].FromString)
        return _told(lambda: call(MANAGEMENT[f"{name}Request"](**fields), timeout=120).msg)

    def predict(self, **fields: Any) -> Any:
        """The bytes of a prediction, or its error."""
        call = self._infers.unary_unary(
            _INFERS + "Predictions", _bytes, INFERENCE["PredictionResponse"].FromString
        )
        return _told(lambda: call(INFERENCE["PredictionsRequest"](**fields), timeout=120).prediction)

    def stream(self, **fields: Any) -> Any:
        """The bytes of each part of a prediction, or its error."""
        call = self._infers.unary_stream(
            _INFERS + "StreamPredictions", _bytes, INFERENCE["PredictionResponse"].FromString
        )
        request = INFERENCE["PredictionsRequest"](**fields)
        return _told(lambda: [each.prediction for each in call(request, timeout=120)])

    def sequence(self, *messages: Mapping[str, Any]) -> Any:
        """The parts of a stream of requests, or its error."""
        call = self._infers.stream_stream(
            _INFERS + "StreamPredictions2", _bytes, INFERENCE["PredictionResponse"].FromString
        )
        asked = [INFERENCE["PredictionsRequest"](**each) for each in messages]
        return _told(lambda: list(call(iter(asked), timeout=120)))

    def ping(self) -> Any:
        """What the server says of its health."""
        call = self._infers.unary_unary(
            _INFERS + "Ping", bytes, INFERENCE["TorchServeHealthResponse"].FromString
        )
        return _told(lambda: call(b"", timeout=120).health)


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def _told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except grpc.RpcError as error:
        return error.code().name, error.details()


OPTIONS = ("--profile", "torchserve", "--management-port", "0", "--management-grpc-port", "0")


def managed_by(process: ServerProcess) -> Managed:
    """A server that was started with these options."""
    ports = {name: int(process.await_line(line)[1]) for name, line in _LINES.items()}
    return Managed(process, ports["management"], ports["gRPC management"])


@contextlib.contextmanager
def managed(
    log: Path, store: Path, *words: str | Path, variables: Mapping[str, str] | None = None
) -> Iterator[Managed]:
    """Serve what the words name, and let models of the store be registered."""
    words = (*OPTIONS, "--torchserve-model-store", store, *words)
    with serve_handlers(log, *words, variables=variables) as process:
        yield managed_by(process)
