"""Metrics over the wire, at a route and on a port of their own, read as Prometheus reads them: they add up exactly with
what was asked, and with the statistics of the v2 protocol.
"""

import json
import queue
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from prometheus_client.parser import text_string_to_metric_families
from tests.fixtures import models
from tests.harness.raw_http import Answer, ask, get, infer_request, post, tensor
from tests.harness.server_process import ServerProcess, serve, serve_handlers

PORT = re.compile(r"^Metrics on http://[\d.]+:(\d+)/metrics$", re.MULTILINE)

HANDLER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        family = pb_utils.MetricFamily("asked", "How often \\\\ by whom", pb_utils.MetricFamily.COUNTER)
        self.asked = family.Metric(labels={"who": 'a "client"'})
        family = pb_utils.MetricFamily("nv_inference_count", "a name that is taken", pb_utils.MetricFamily.GAUGE)
        family.Metric(labels={}).set(7)
        blocks = pb_utils.MetricFamily("nv_trt_llm_kv_cache_block_metrics", "blocks", pb_utils.MetricFamily.GAUGE)
        for name, value in (("tokens_per", 64), ("used", 3), ("max", 12)):
            blocks.Metric(labels={"kv_cache_block_type": name}).set(value)

    def execute(self, requests):
        self.asked.increment(len(requests))
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x")
            if x.as_numpy()[0] < 0:
                raise ValueError("negative")
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x.as_numpy())]))
        return answers
"""

DECOUPLED = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            sender = request.get_response_sender()
            for _ in range(3):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""


def handler(root: Path, name: str, code: str, extra: str) -> None:
    (root / name / "1").mkdir(parents=True)
    (root / name / "1" / "model.py").write_text(code)
    (root / name / "config.pbtxt").write_text(CONFIG + extra)


@pytest.fixture(scope="module")
def metered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a port for metrics, and models that answer well, ill, and in parts."""
    root = tmp_path_factory.mktemp("models")
    models.identity(root, "echo", rows=16)
    handler(root, "handler", HANDLER, 'metric_tags { key: "team" value: "red" }')
    handler(root, "parts", DECOUPLED, "model_transaction_policy { decoupled: true }")
    log = tmp_path_factory.mktemp("log") / "log"
    words = ("--metrics-port", "0", "--metrics-quantiles", "0.5,0.99", "--metrics-first-part")
    with serve_handlers(log, root, *words, "--metrics-interval", "0") as serving:
        serving.await_line(PORT)
        yield serving


def metrics_port(serving: ServerProcess) -> int:
    return int(serving.await_line(PORT)[1])


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(port: int) -> Samples:
    """Every sample, by its name and labels; each is there once."""
    answer = ask(port, get("/metrics"))
    assert answer.status == 200
    assert answer.fields["content-type"] == "text/plain; charset=utf-8"
    samples: Samples = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples
            samples[key] = sample.value
    return samples


def of(samples: Samples, name: str, **labels: str) -> float:
    """The parser gives a counter's samples the ending that the conventions ask for, whatever they are called."""
    key = tuple(sorted(labels.items()))
    return samples[name, key] if (name, key) in samples else samples[f"{name}_total", key]


def run(serving: ServerProcess, model: str, first: float, rows: int = 0) -> Answer:
    shape = [rows, 4] if rows else [4]
    data = [first] * (4 * max(rows, 1))
    return serving.ask(infer_request(model, tensor("x", data, shape)))


def test_a_known_load_adds_up_exactly(metered: ServerProcess) -> None:
    before = scrape(metered.port)
    for rows in (1, 2, 2, 5):
        assert run(metered, "echo", 1.0, rows).status == 200
    for first in (1.0, -1.0, 2.0, -2.0, 3.0):
        run(metered, "handler", first)
    after = scrape(metrics_port(metered))

    def grew(name: str, **labels: str) -> float:
        return of(after, name, **labels) - of(before, name, **labels)

    echo: dict[str, str] = {"model": "echo", "version": "1"}
    assert grew("nv_inference_request_success", **echo) == 4
    assert grew("nv_inference_count", **echo) == 10
    assert grew("nv_inference_exec_count", **echo) == 4
    assert grew("trivium_batch_rows_bucket", le="1", **echo) == 1
    assert grew("trivium_batch_rows_bucket", le="2", **echo) == 3
    assert grew("trivium_batch_rows_sum", **echo) == 10
    red: dict[str, str] = {"model": "handler", "version": "1", "_team": "red"}
    assert grew("nv_inference_request_success", **red) == 3
    assert grew("nv_inference_exec_count", **red) == 5
    assert grew("nv_inference_request_failure", reason="BACKEND", **red) == 2
    for reason in ("REJECTED", "CANCELED", "OTHER"):
        assert grew("nv_inference_request_failure", reason=reason, **red) == 0
    assert grew("trivium_request_seconds_count", **red) == 3
    assert grew("trivium_queue_wait_seconds_count", **red) == 3
    assert grew("asked", who='a "client"') == 5
    assert of(after, "nv_inference_request_summary_us_count", **red) == 3
    assert of(after, "nv_inference_request_summary_us", quantile="0.5", **red) > 0
    assert of(after, "nv_inference_count_") == 7  # the model's gauge gives way to the server's counter
    assert of(after, "nv_cpu_memory_total_bytes") > of(after, "nv_cpu_memory_used_bytes") > 0


def statistics(serving: ServerProcess, model: str) -> Any:
    return json.loads(serving.ask(get(f"/v2/models/{model}/stats")).body)["model_stats"][0]


def test_they_agree_with_the_statistics(metered: ServerProcess) -> None:
    run(metered, "echo", 1.0, 3)
    counts, samples = statistics(metered, "echo"), scrape(metrics_port(metered))
    echo = {"model": "echo", "version": "1"}
    assert of(samples, "nv_inference_count", **echo) == counts["inference_count"]
    assert of(samples, "nv_inference_exec_count", **echo) == counts["execution_count"]
    times = {"request": "success", **{part: part for part in ("queue", "compute_input", "compute_infer")}}
    for theirs, ours in times.items():
        spent = counts["inference_stats"][ours]["ns"]
        assert of(samples, f"nv_inference_{theirs}_duration_us", **echo) == spent // 1000
    assert of(samples, "nv_inference_pending_request_count", **echo) == 0


def test_first_parts_are_timed_once_per_request(metered: ServerProcess) -> None:
    parts: queue.Queue[Any] = queue.Queue()
    with grpcclient.InferenceServerClient(metered.grpc_address) as client:
        client.start_stream(lambda result, error: parts.put((result, error)))
        x = grpcclient.InferInput("x", [4], "FP32")
        x.set_data_from_numpy(np.ones(4, "f4"))
        for _ in range(2):
            client.async_stream_infer("parts", [x])
        assert all(parts.get(timeout=120)[1] is None for _ in range(6))
        client.stop_stream()
    name, labels = "nv_inference_first_response_histogram_ms", {"model": "parts", "version": "1"}
    samples = scrape(metrics_port(metered))
    assert of(samples, f"{name}_count", **labels) == 2
    assert of(samples, f"{name}_bucket", le="+Inf", **labels) == 2
    before = of(samples, f"{name}_count", model="echo", version="1")
    run(metered, "echo", 1.0, 3)
    after = of(scrape(metrics_port(metered)), f"{name}_count", model="echo", version="1")
    assert after - before == 1, "a whole answer is its own first part"


def test_a_balancer_that_asks_gets_the_load_of_a_models_cache(metered: ServerProcess) -> None:
    for form, begins in (("text", "TEXT named_metrics.kv_cache_utilization=0.25"), ("json", "JSON {")):
        for verb in ("generate", "generate_stream"):
            wants = f"endpoint-load-metrics-format: {form}\r\n".encode()
            answer = metered.ask(post(f"/v2/models/handler/{verb}", b'{"x": [1.0, 1.0, 1.0, 1.0]}', wants))
            assert answer.status == 200
            assert answer.fields["endpoint-load-metrics"].startswith(begins)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/"), 404),
        (get("/v2/health/live"), 404),
        (get("/metrics/more"), 404),
        (post("/metrics", b"{}"), 405),
        (get("/metrics", method=b"DELETE"), 405),
    ],
)
def test_the_port_serves_nothing_else(metered: ServerProcess, request_: bytes, status: int) -> None:
    answer = ask(metrics_port(metered), request_)
    assert answer.status == status
    assert answer.error


@pytest.mark.parametrize("profile", ["djl", "torchserve"])
def test_the_route_is_there_in_other_profiles(tmp_path: Path, profile: str) -> None:
    models.identity(tmp_path / "models", "echo")
    with serve(tmp_path / "log", tmp_path / "models", "--profile", profile, "--no-cpu-metrics") as serving:
        samples = scrape(serving.port)
        assert of(samples, "nv_inference_request_success", model="echo", version="1") == 0
        assert not [name for name, _ in samples if name.startswith("nv_cpu")]


def test_a_port_that_is_taken_is_named(metered: ServerProcess, tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo")
    port = metrics_port(metered)
    with pytest.raises(AssertionError) as caught:
        with serve(tmp_path / "log", tmp_path / "models", "--metrics-port", str(port)) as serving:
            serving.await_line(PORT)
    assert f"port {port}" in str(caught.value)
    assert "--metrics-port" in str(caught.value)
