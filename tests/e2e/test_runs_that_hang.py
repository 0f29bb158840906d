"""Runs that hang, and models that cannot start: whoever asks is told in time, and ready says what is true."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from onnx import TensorProto
from tests.fixtures import models
from tests.harness.handlers import ODD, triton
from tests.harness.onnx_models import looping
from tests.harness.raw_http import get, infer_request, tensor
from tests.harness.server_process import (
    ServerProcess,
    neighbour,
    running,
    serve_handlers,
    until,
    withstanding,
)

LONG = 2**50
MINUTES_MS = 600_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("hanging")
    root = folder / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "sleeps", delay_ms=MINUTES_MS)
    models.identity(root, "patient", delay_ms=1500, extra=models.ONE_INSTANCE + run_timeout("0"))
    for name, gives in (("counts", TensorProto.INT64), ("spells", TensorProto.STRING)):
        version = root / name / "1"
        version.mkdir(parents=True)
        looping(version, gives)
        (root / name / "config.pbtxt").write_text('backend: "onnxruntime"\n' + models.ONE_INSTANCE)
    with serve_handlers(folder / "log", root, "--run-timeout", "0.5") as serving:
        yield serving


def run_timeout(seconds: str) -> str:
    return f'parameters {{ key: "TRIVIUM_RUN_TIMEOUT" value {{ string_value: "{seconds}" }} }}\n'


def count(number: int, model: str = "counts") -> bytes:
    return infer_request(model, tensor("x", [number], [1], "INT64"))


def sleep(model: str) -> bytes:
    return infer_request(model, tensor("x", [1.0, 2.0, 3.0, 4.0], [4]))


def test_an_onnx_run_is_terminated_and_its_instance_serves_on(server: ServerProcess) -> None:
    with withstanding(server):
        answer = server.ask(count(LONG))
        assert (answer.status, "the model's run deadline of 0.5 s" in answer.error) == (504, True)
        assert server.ask(count(7)).document["outputs"][0]["data"] == [7]
    assert "was given up" not in server.said()


def test_an_onnx_model_with_text_loses_its_worker_and_gets_another(server: ServerProcess) -> None:
    answer = server.ask(count(LONG, "spells"))
    assert (answer.status, "not done with a batch after 0.5 s, the run deadline" in answer.error) == (
        500,
        True,
    )
    assert server.ask(count(7, "spells")).document["outputs"][0]["data"] == ["7"]


def test_a_models_own_run_timeout_comes_before_the_servers(server: ServerProcess) -> None:
    assert server.ask(sleep("patient")).status == 200


def test_a_model_whose_runs_never_end_fails_with_the_reason(server: ServerProcess) -> None:
    assert server.is_ready(), server.said()
    with neighbour(server.port), ThreadPoolExecutor(3) as clients:
        answers = list(clients.map(server.ask, [sleep("sleeps")] * 3))
        assert [answer.status for answer in answers] == [504] * 3
        until(lambda: server.ask(get("/v2/models/sleeps/ready")).status == 400, server.said)
    refusal = server.ask(sleep("sleeps"))
    assert refusal.status == 503
    assert "was given up after 3 runs that did not end" in refusal.error
    assert "was given up after 3 runs that did not end" in server.ask(get("/v2/models/sleeps/ready")).error
    assert server.ask(get("/v2/health/ready")).status == 400


PINGS = {
    "native": "/v2/health/ready",
    "djl": "/ping",
    "torchserve": "/ping",
}


@pytest.mark.parametrize("profile", PINGS)
def test_ready_is_taken_back_at_once_and_given_back_at_once(tmp_path: Path, profile: str) -> None:
    root = tmp_path / "models"
    triton(root, "odd", ODD)
    with running(tmp_path / "log", "serve", root, "--profile", profile, models_raise=True) as serving:
        assert serving.ask(get(PINGS[profile])).status == 200
        code = root / "odd" / "1" / "model.py"
        good = code.read_text()
        code.write_text("raise RuntimeError('no such weights')\n")
        (worker,) = serving.workers()
        worker.kill()
        until(lambda: serving.ask(get(PINGS[profile])).status != 200, serving.said)
        reason = serving.ask(get("/v2/models/odd/ready")).error if profile == "native" else "no such weights"
        assert "no such weights" in reason
        code.write_text(good)
        until(lambda: serving.ask(get(PINGS[profile])).status == 200, serving.said)
