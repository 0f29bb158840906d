"""A model that says itself whether it is ready, through `trivium tritonserver` and NVIDIA's clients."""

import http.client
import time
from pathlib import Path

import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tests.harness import raw_http as wire
from tests.harness.server_process import until
from tests.harness.tritonserver import tritonserver

READY = wire.get("/v2/models/own/ready")
MODEL = """
import os
import time


class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("it is asked for nothing")

    def is_ready(self):
        while os.path.exists({hang!r}):
            time.sleep(0.01)
        return not os.path.exists({off!r})
"""


def placed(root: Path, off: Path, hang: Path, config: str) -> Path:
    """A repository with that model, which is not ready while `off` is there, and says nothing while `hang` is."""
    folder = root / "models" / "own" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MODEL.format(off=str(off), hang=str(hang)))
    (folder.parent / "config.pbtxt").write_text(f'backend: "python" {config}')
    return folder.parents[1]


def ready(address: str) -> tuple[int, bytes]:
    """As a probe of an orchestrator asks it."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=120)
    try:
        connection.request("GET", "/v2/models/own/ready")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_model_says_itself_whether_it_is_ready(tmp_path: Path) -> None:
    off, hang = tmp_path / "off", tmp_path / "hang"
    served = placed(tmp_path, off, hang, "instance_group { kind: KIND_CPU count: 2 }")
    with (
        tritonserver(tmp_path / "log", f"--model-repository={served}") as server,
        triton_http.InferenceServerClient(server.address("http")) as over_http,
        triton_grpc.InferenceServerClient(server.address("grpc")) as over_grpc,
    ):
        address = server.address("http")
        assert (over_http.is_model_ready("own"), over_grpc.is_model_ready("own")) == (True, True)
        assert ready(address) == (200, b"")
        off.touch()
        assert (over_http.is_model_ready("own"), over_grpc.is_model_ready("own")) == (False, False)
        assert ready(address) == (400, b'{"error":"Model version not ready"}')
        assert (over_http.is_server_ready(), over_grpc.is_server_ready()) == (True, True)
        off.unlink()
        assert (over_http.is_model_ready("own"), over_grpc.is_model_ready("own")) == (True, True)
        hang.touch()
        began = time.monotonic()
        assert ready(address) == (400, b'{"error":"Model version not ready"}')
        assert time.monotonic() - began >= 5


def test_who_asks_and_leaves_costs_nobody_anything(tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    served = placed(tmp_path, tmp_path / "off", hang, "")
    with tritonserver(tmp_path / "log", f"--model-repository={served}") as server:
        port = server.port("http")
        assert wire.ask(port, READY).status == 200
        before = server.descriptors()
        hang.touch()
        plugs = [wire.connect(port) for _ in range(40)]
        for plug in plugs:
            plug.sendall(READY)
        for number, plug in enumerate(plugs):
            wire.reset(plug) if number % 2 else plug.close()
        assert wire.ask(port, wire.get("/v2/health/ready")).status == 200
        assert wire.ask(port, READY).status == 400
        hang.unlink()
        until(lambda: wire.ask(port, READY).status == 200, server.said)
        until(lambda: server.descriptors() <= before, lambda: f"{server.descriptors()}, was {before}")
        assert "Traceback" not in server.said()
