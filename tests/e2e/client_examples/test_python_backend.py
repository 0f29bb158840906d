"""The clients of the Python backend's own examples, call by call and claim by claim, in our words.

`decoupled/repeat_client` is in `test_sequences_and_parts`.
"""

import queue
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.e2e.client_examples.backend_models import write_repository
from tests.e2e.client_examples.wires import Wire, wires
from tests.harness.server_process import SECONDS
from tests.harness.tritonserver import tritonserver
from tritonclient.utils import InferenceServerException

A = np.array([0.25, 0.5, 0.75, 1], np.float32)
B = np.array([1, 2, 3, 4], np.float32)


@dataclass(frozen=True)
class PythonBackendHarness:
    """The wires to a server of all the models, and where its metrics are."""

    http: Wire
    grpc: Wire
    metrics: str


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonBackendHarness]:
    root = write_repository(tmp_path_factory.mktemp("models"))
    log = tmp_path_factory.mktemp("log") / "log"
    with tritonserver(log, "--model-repository", root, models_raise=True) as server:
        to = wires(server.address("http"), server.address("grpc"))
        yield PythonBackendHarness(to["http"], to["grpc"], server.address("metrics"))


def infer(wire: Wire, model: str, *more: Any) -> Any:
    """The two rows, and what else the model takes."""
    inputs = [wire.given("INPUT0", A, "FP32"), wire.given("INPUT1", B, "FP32"), *more]
    with wire.client() as client:
        return client.infer(model, inputs, request_id="1")


def check(result: Any) -> None:
    """Sum and difference are right."""
    np.testing.assert_allclose(result.as_numpy("OUTPUT0"), A + B)
    np.testing.assert_allclose(result.as_numpy("OUTPUT1"), A - B)


def test_add_sub(stage: PythonBackendHarness) -> None:
    check(infer(stage.http, "add_sub"))


@pytest.mark.parametrize("model", ["bls_sync", "bls_async"])
def test_bls(stage: PythonBackendHarness, model: str) -> None:
    def name(text: str) -> Any:
        return stage.http.given("MODEL_NAME", np.array([text], object), "BYTES")

    check(infer(stage.http, model, name("add_sub")))
    with pytest.raises(InferenceServerException, match="undefined_model"):
        infer(stage.http, model, name("undefined_model"))


@pytest.mark.parametrize(("model", "times"), [("bls_decoupled_sync", 1), ("bls_decoupled_async", 2)])
def test_bls_decoupled(stage: PythonBackendHarness, model: str, times: int) -> None:
    with stage.http.client() as client:
        for value in (4, 2, 0, 1):
            given = stage.http.given("IN", np.array([value], np.int32), "INT32")
            found = client.infer(model, [given], outputs=[stage.http.wanted("SUM")]).as_numpy("SUM")
            assert found.tolist() == [times * value * value]


def test_decoupled_square(stage: PythonBackendHarness) -> None:
    values = [4, 2, 0, 1]
    heard: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with stage.grpc.client() as client:
        client.start_stream(lambda result, error: heard.put((result, error)))
        for index, value in enumerate(values):
            given = stage.grpc.given("IN", np.array([value], np.int32), "INT32")
            client.async_stream_infer("square_int32", [given], request_id=str(index))
        found: Counter[tuple[str, int]] = Counter()
        for _ in range(sum(values)):
            result, error = heard.get(timeout=SECONDS)
            assert error is None, error
            found[result.get_response().id, result.as_numpy("OUT").item()] += 1
    assert found == {("0", 4): 4, ("1", 2): 2, ("3", 1): 1}
    assert heard.empty()


def test_custom_metrics(stage: PythonBackendHarness) -> None:
    infer(stage.http, "custom_metrics")
    with urllib.request.urlopen(f"http://{stage.metrics}/metrics", timeout=SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    assert "# HELP requests_process_latency_ns Cumulative time spent processing requests" in lines
    assert "# TYPE requests_process_latency_ns counter" in lines
    start = 'requests_process_latency_ns{model="custom_metrics",version="1"} '
    (sample,) = (line for line in lines if line.startswith(start))
    assert float(sample.removeprefix(start)) == 1


@pytest.mark.parametrize(("model", "rows"), [("nobatch_auto_complete", 0), ("batch_auto_complete", 4)])
def test_auto_complete(stage: PythonBackendHarness, model: str, rows: int) -> None:
    with stage.http.client() as client:
        config = client.get_model_config(model)
    assert config["max_batch_size"] == rows
    for kind, names in (("input", ["INPUT0", "INPUT1"]), ("output", ["OUTPUT0", "OUTPUT1"])):
        assert [tensor["name"] for tensor in config[kind]] == names
        assert all((tensor["data_type"], tensor["dims"]) == ("TYPE_FP32", [4]) for tensor in config[kind])
