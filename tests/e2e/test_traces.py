"""Traces of the command `tritonserver`: its files, and the spans that a collector gets, through NVIDIA's clients."""

import contextlib
import gzip
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.fixtures import models
from tests.harness.raw_http import get, post
from tests.harness.server_process import serve, until
from tests.harness.triton_grpc import given as grpc_given
from tests.harness.triton_tensors import given
from tests.harness.tritonserver import TritonServer, tritonserver
from tritonclient.utils import InferenceServerException

ENDS = """
input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] }
"""
DOUBLE = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        arrays = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("y", 2 * array)]) for array in arrays]
"""
CALLS = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        pb.Logger.log_info("context: %s" % request.trace().get_context())
        x = pb.get_input_tensor_by_name(request, "x")
        told = dict(model_name="double", requested_output_names=["y"], inputs=[x])
        pb.InferenceRequest(**told).exec()
        answer = pb.InferenceRequest(**told, trace=request.trace()).exec()
        return pb.InferenceResponse(answer.output_tensors())
"""
FAILS = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse(error=pb.TritonError("no")) for _ in requests]
"""
REPEATS = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            array = pb.get_input_tensor_by_name(request, "x").as_numpy()
            for _ in range(3):
                sender.send(pb.InferenceResponse([pb.Tensor("y", array)]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
BOTH = """
platform: "ensemble"
ensemble_scheduling {
  step { model_name: "double" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "m" } }
  step { model_name: "calls" model_version: -1 input_map { key: "x" value: "m" } output_map { key: "y" value: "y" } }
}
"""
HTTP_NAMES = [
    "HTTP_RECV_START",
    "HTTP_RECV_END",
    "REQUEST_START",
    "QUEUE_START",
    "COMPUTE_START",
    "COMPUTE_INPUT_END",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_END",
    "INFER_RESPONSE_COMPLETE",
    "REQUEST_END",
    "HTTP_SEND_START",
    "HTTP_SEND_END",
]
GRPC_NAMES = [
    "GRPC_WAITREAD_START",
    "GRPC_WAITREAD_END",
    *HTTP_NAMES[2:-2],
    "GRPC_SEND_START",
    "GRPC_SEND_END",
]
INNER_NAMES = [name for name in HTTP_NAMES[2:-2] if name != "INFER_RESPONSE_COMPLETE"]
CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("traced")
    decoupled = "model_transaction_policy { decoupled: true }"
    for name, code in (
        ("double", DOUBLE),
        ("calls", CALLS),
        ("fails", FAILS),
        ("repeats", REPEATS),
        ("both", ""),
    ):
        (root / name / "1").mkdir(parents=True)
        more = BOTH if not code else f'backend: "python" {decoupled if name == "repeats" else ""}'
        (root / name / "config.pbtxt").write_text(ENDS + more)
        if code:
            (root / name / "1" / "model.py").write_text(code)
    return root


class Traced:
    """A server that traces, and what its files hold."""

    def __init__(self, server: TritonServer, path: Path) -> None:
        self.server = server
        self.path = path
        self.http = triton.InferenceServerClient(server.address("http"))
        self.grpc = triton_grpc.InferenceServerClient(server.address("grpc"))

    def infer(self, model: str = "double", **more: Any) -> None:
        """Over HTTP."""
        self.http.infer(model, [given("x", np.array([1.5, 2], np.float32))], **more)

    def infer_grpc(self, model: str = "double", **more: Any) -> None:
        """Over gRPC."""
        self.grpc.infer(model, [grpc_given("x", np.array([1.5, 2], np.float32))], **more)

    def records(self, suffix: str = "", count: int = 1) -> list[dict[str, Any]]:
        """Those of a file, once it has so many requests' in it."""
        path = Path(f"{self.path}{suffix}")
        found: list[dict[str, Any]] = []

        def look() -> bool:
            if path.exists():
                with contextlib.suppress(json.JSONDecodeError):
                    found[:] = json.loads(path.read_text())
            return len([one for one in found if "model_name" in one and "parent_id" not in one]) >= count

        until(look, lambda: f"{path} has {found}; in the folder are {list(path.parent.iterdir())}")
        return found


@contextlib.contextmanager
def traced(tmp_path: Path, repository: Path, *settings: str) -> Iterator[Traced]:
    path = tmp_path / "trace.json"
    flags = [f"--trace-config={text}" for text in (f"triton,file={path}", *settings)]
    with tritonserver(tmp_path / "log", "--model-repository", repository, *flags) as server:
        traced = Traced(server, path)
        yield traced
        traced.http.close()
        traced.grpc.close()


def names(records: list[dict[str, Any]], number: int) -> list[str]:
    """Of the moments of one trace; they rise."""
    found = [stamp for one in records if one["id"] == number for stamp in one.get("timestamps", ())]
    times = [stamp["ns"] for stamp in found]
    assert times == sorted(times)
    return [stamp["name"] for stamp in found]


def models_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in records if "model_name" in one]


def test_times_and_tensors_of_both_wires(tmp_path: Path, repository: Path) -> None:
    with traced(tmp_path, repository, "rate=1", "level=TIMESTAMPS", "level=TENSORS") as server:
        server.infer(request_id="t1")
        server.infer_grpc()
        records = server.records(count=2)
        assert models_of(records) == [
            {"id": 1, "model_name": "double", "model_version": 1, "request_id": "t1"},
            {"id": 2, "model_name": "double", "model_version": 1},
        ]
        assert (names(records, 1), names(records, 2)) == (HTTP_NAMES, GRPC_NAMES)
        assert [one for one in records if "activity" in one and one["id"] == 1] == [
            {
                "id": 1,
                "activity": activity,
                "tensor": {"name": name, "data": data, "shape": "2", "dtype": "FP32"},
            }
            for activity, name, data in (
                ("TENSOR_QUEUE_INPUT", "x", "1.5,2"),
                ("TENSOR_BACKEND_OUTPUT", "y", "3,4"),
            )
        ]
        with pytest.raises(InferenceServerException, match="no"):
            server.infer("fails")
        failed = server.records(count=3)
        assert names(failed, 3)[:2] == ["HTTP_RECV_START", "HTTP_RECV_END"]
        assert names(failed, 3)[-3:] == ["REQUEST_END", "HTTP_SEND_START", "HTTP_SEND_END"]


def test_a_family_of_requests(tmp_path: Path, repository: Path) -> None:
    with traced(tmp_path, repository, "rate=1", "level=TIMESTAMPS") as server:
        server.infer("both", request_id="e")
        server.server.await_text("context: None")
        records = server.records()
        told = models_of(records)
        parents = [(one["model_name"], one.get("parent_id", 0)) for one in told]
        # Without its trace the model "calls" made another call: that one is nobody's.
        assert parents == [("both", 0), ("double", 1), ("calls", 1), ("double", 3)]
        assert names(records, 1) == [name for name in HTTP_NAMES if not name.startswith("COMPUTE")]
        for number in (2, 3, 4):
            assert names(records, number) == INNER_NAMES


def test_a_stream(tmp_path: Path, repository: Path) -> None:
    with traced(tmp_path, repository, "rate=1", "level=TIMESTAMPS") as server:
        done = threading.Event()
        server.grpc.start_stream(lambda result, error: done.set() if is_last(result) else None)
        tensors = [grpc_given("x", np.array([1, 2], np.float32))]
        server.grpc.async_stream_infer("repeats", tensors, enable_empty_final_response=True)
        assert done.wait(60)
        server.grpc.stop_stream()
        found = names(server.records(), 1)
        assert found.count("INFER_RESPONSE_COMPLETE") == 4
        assert set(found) == set(GRPC_NAMES)


def is_last(result: triton_grpc.InferResult) -> bool:
    return bool(result.get_response().parameters["triton_final_response"].bool_param)


def test_settings_while_it_runs(tmp_path: Path, repository: Path) -> None:
    with traced(tmp_path, repository) as server:
        path = str(server.path)
        off = {
            "trace_level": ["OFF"],
            "trace_rate": "1000",
            "trace_count": "-1",
            "log_frequency": "0",
            "trace_file": path,
            "trace_mode": "triton",
        }
        assert server.http.get_trace_settings() == off
        server.infer()
        wished = {"trace_level": ["TIMESTAMPS"], "trace_rate": "2", "trace_count": "3", "log_frequency": "2"}
        assert server.http.update_trace_settings("double", wished) == off | wished
        assert server.http.get_trace_settings() == off
        for _ in range(3):
            server.infer()
            server.infer("calls")  # another model
        told = server.grpc.get_trace_settings("double", as_json=True)["settings"]
        assert told["trace_count"]["value"] == ["2"]
        for _ in range(7):
            server.infer_grpc()
        assert [one["model_name"] for one in models_of(server.records(".0", 2))] == ["double"] * 2
        assert len(models_of(server.records(".1", 1))) == 1
        assert server.http.get_trace_settings("double")["trace_count"] == "0"
        cleared = dict.fromkeys(wished)
        assert server.grpc.update_trace_settings("double", cleared, as_json=True) is not None
        assert server.http.get_trace_settings("double") == off
        server.http.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"], "trace_rate": "1"})
        server.infer("calls")
        assert models_of(server.records())[0]["model_name"] == "calls"
    assert {file.name for file in tmp_path.iterdir()} == {"log", "trace.json", "trace.json.0", "trace.json.1"}


def test_what_is_held_when_it_ends(tmp_path: Path, repository: Path) -> None:
    with traced(tmp_path, repository, "rate=1", "level=TIMESTAMPS", "triton,log-frequency=50") as server:
        for _ in range(3):
            server.infer()
        assert not list(tmp_path.glob("trace.json*"))
    assert len(models_of(json.loads((tmp_path / "trace.json.0").read_text()))) == 3


def test_refusals(tmp_path: Path, repository: Path) -> None:
    with tritonserver(tmp_path / "log", "--model-repository", repository) as server:
        with contextlib.closing(triton.InferenceServerClient(server.address("http"))) as client:
            for settings, status, text in (
                (
                    {"trace_level": ["TIMESTAMPS"]},
                    "400",
                    "invalid trace setting :trace file name is not given",
                ),
                (
                    {"trace_file": "x"},
                    "501",
                    "trace file location can not be updated through network protocol",
                ),
                ({"trace_rate": "x"}, "400", "Unable to parse 'trace_rate', got: x"),
                ({"trace_rate": 5}, "500", "attempt to access JSON non-string as string"),
            ):
                with pytest.raises(InferenceServerException) as caught:
                    client.update_trace_settings(settings=settings)
                assert (caught.value.status(), text in str(caught.value)) == (status, True), caught.value
            assert (
                client.update_trace_settings(settings={"loud": "1", "trace_level": ["LOUD"]})["trace_file"]
                == ""
            )
            with pytest.raises(InferenceServerException, match="Request for unknown model : nope"):
                client.get_trace_settings("nope")


class Collector:
    """Takes spans by OTLP over HTTP."""

    def __init__(self) -> None:
        self.resources: dict[str, str] = {}
        self.spans: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for of_resource in request.resource_spans:
            told = of_resource.resource.attributes
            self.resources |= {one.key: one.value.string_value for one in told}
            for scope in of_resource.scope_spans:
                self.spans += scope.spans

    def await_spans(self, count: int) -> list[Any]:
        until(lambda: len(self.spans) >= count, lambda: f"{[span.name for span in self.spans]}")
        assert len(self.spans) == count, [span.name for span in self.spans]
        return self.spans

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with contextlib.closing(Collector()) as made:
        yield made


def spans_to(collector: Collector, *settings: str) -> list[str]:
    told = ("mode=opentelemetry", f"opentelemetry,url={collector.url}", "opentelemetry,bsp_schedule_delay=50")
    return [f"--trace-config={text}" for text in (*told, "level=TIMESTAMPS", *settings)]


def test_spans(tmp_path: Path, repository: Path, collector: Collector) -> None:
    flags = spans_to(collector, "rate=1", "opentelemetry,resource=service.version=7")
    with tritonserver(tmp_path / "log", "--model-repository", repository, *flags) as server:
        with contextlib.closing(triton.InferenceServerClient(server.address("http"))) as client:
            client.infer("both", [given("x", np.array([1, 2], np.float32))], request_id="e")
            settings = client.get_trace_settings()
        assert (settings["trace_mode"], settings["url"]) == ("opentelemetry", collector.url)
        assert "trace_file" not in settings
        spans = collector.await_spans(8)
        assert (
            collector.resources.items()
            >= {"service.name": "triton-inference-server", "service.version": "7"}.items()
        )
        assert len({span.trace_id for span in spans}) == 1
        tree = defaultdict(list)
        name_of = {span.span_id: span.name for span in spans}
        for span in spans:
            tree[name_of.get(span.parent_span_id, "")].append(span.name)
        assert {name: sorted(inner) for name, inner in tree.items()} == {
            "": ["InferRequest"],
            "InferRequest": ["both"],
            "both": ["calls", "double"],
            "calls": ["compute", "double"],
            "double": ["compute", "compute"],
        }
        root = next(span for span in spans if span.name == "InferRequest")
        assert [event.name for event in root.events] == [
            *HTTP_NAMES[:2],
            "INFER_RESPONSE_COMPLETE",
            *HTTP_NAMES[-2:],
        ]
        calls = next(span for span in spans if span.name == "calls")
        context = f"00-{calls.trace_id.hex()}-{calls.span_id.hex()}-01"
        server.await_text("context: " + json.dumps(json.dumps({"traceparent": context}))[1:-1])
        whole = next(span for span in spans if span.name == "both")
        told = {one.key: one.value for one in whole.attributes}
        assert told["triton.model_name"].string_value == "both"
        assert told["triton.model_version"].int_value == 1
        assert told["triton.request_id"].string_value == "e"
        for span in spans:
            assert span.start_time_unix_nano <= span.end_time_unix_nano
            assert root.start_time_unix_nano <= span.start_time_unix_nano


def told(context: str | None) -> dict[str, str] | None:
    return None if context is None else {"traceparent": context}


def test_what_belongs_to_a_trace_is_traced_whatever_the_rate(
    tmp_path: Path, repository: Path, collector: Collector
) -> None:
    flags = spans_to(collector, "rate=0")
    with tritonserver(tmp_path / "log", "--model-repository", repository, *flags) as server:
        http = triton.InferenceServerClient(server.address("http"))
        grpc = triton_grpc.InferenceServerClient(server.address("grpc"))
        with contextlib.closing(http), contextlib.closing(grpc):
            for context in (None, CONTEXT, "00-zz"):
                http.infer("double", [given("x", np.array([1, 2], np.float32))], headers=told(context))
                grpc.infer("double", [grpc_given("x", np.array([1, 2], np.float32))], headers=told(context))
        spans = collector.await_spans(6)
        assert {span.trace_id.hex() for span in spans} == {CONTEXT.split("-")[1]}
        outer = [span for span in spans if span.name == "InferRequest"]
        assert [span.parent_span_id.hex() for span in outer] == [CONTEXT.split("-")[2]] * 2


def test_our_own_command_traces_whoever_asks_for_it(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    file = tmp_path / "traces.json"
    flags = ("--trace-file", file, "--trace-levels", "timestamps", "--trace-rate", "0")
    row = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    with serve(tmp_path / "log", tmp_path / "models", *flags) as serving:
        for name, fields in (("no", b""), ("yes", b"traceparent: " + CONTEXT.encode() + b"\r\n")):
            body = json.dumps({"id": name, "inputs": [row]}).encode()
            answer = serving.ask(post("/v2/models/echo/infer", body, fields))
            assert answer.status == 200, answer
        until(file.exists, serving.said)
    records = json.loads(file.read_text())
    assert [one["request_id"] for one in models_of(records)] == ["yes"]
    assert names(records, 1) == HTTP_NAMES


def test_spans_of_our_own_command_have_neutral_names(tmp_path: Path, collector: Collector) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    flags = ("--trace-endpoint", collector.url, "--trace-delay", "0.05")
    flags += ("--trace-levels", "timestamps", "--trace-rate", "1")
    row = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    with serve(tmp_path / "log", tmp_path / "models", *flags) as serving:
        body = json.dumps({"id": "e", "inputs": [row]}).encode()
        assert serving.ask(post("/v2/models/echo/infer", body)).status == 200
        spans = collector.await_spans(3)
        scrape = serving.ask(get("/metrics", b"Accept: application/openmetrics-text\r\n")).body.decode()
    shown = {
        (family.name, sample.exemplar.labels["trace_id"])
        for family in text_string_to_metric_families(scrape)
        for sample in family.samples
        if sample.exemplar is not None
    }
    trace = spans[0].trace_id.hex()
    assert shown == {("trivium_request_seconds", trace), ("trivium_queue_wait_seconds", trace)}
    assert sorted(span.name for span in spans) == ["echo", "execution", "request"]
    model = next(span for span in spans if span.name == "echo")
    attributes = {one.key: one.value for one in model.attributes}
    assert attributes["trivium.model.name"].string_value == "echo"
    assert attributes["trivium.request.id"].string_value == "e"
    assert {event.name for event in model.events} == {"started", "queued", "ended"}


BATCHED = """
backend: "python"
max_batch_size: 3
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 60000000 }
"""
ECHO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        xs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]) for x in xs]
"""


def test_executions_of_requests_that_ran_together_link_to_one_another(
    tmp_path: Path, collector: Collector
) -> None:
    (tmp_path / "models" / "m" / "1").mkdir(parents=True)
    (tmp_path / "models" / "m" / "config.pbtxt").write_text(BATCHED)
    (tmp_path / "models" / "m" / "1" / "model.py").write_text(ECHO)
    flags = ("--trace-endpoint", collector.url, "--trace-delay", "0.05")
    flags += ("--trace-levels", "timestamps", "--trace-rate", "1")
    row = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}
    with serve(tmp_path / "log", tmp_path / "models", *flags) as serving:
        until(serving.is_ready, serving.said)
        bodies = [json.dumps({"id": name, "inputs": [row]}).encode() for name in "abc"]
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda body: serving.ask(post("/v2/models/m/infer", body)), bodies))
        assert [answer.status for answer in answers] == [200] * 3
        spans = collector.await_spans(9)
    models_spans = {span.span_id for span in spans if span.name == "m"}
    executions = [span for span in spans if span.name == "execution"]
    assert len(models_spans) == len(executions) == 3
    for span in executions:
        assert {link.span_id for link in span.links} == models_spans - {span.parent_span_id}
        assert {link.trace_id for link in span.links} == {s.trace_id for s in spans} - {span.trace_id}


DJL_HANDLER = """
from djl_python import Output

def handle(inputs):
    if inputs.is_empty():
        return None
    return Output().add(inputs.get_property("traceparent"))
"""
TORCHSERVE_HANDLER = """
def handle(data, context):
    return None if data is None else [context.get_request_header(0, "traceparent")]
"""


def test_handlers_see_the_context_of_their_requests_own_span(tmp_path: Path, collector: Collector) -> None:
    djl, torchserve = tmp_path / "djl", tmp_path / "torchserve"
    djl.mkdir()
    (djl / "serving.properties").write_text("engine=Python\n")
    (djl / "model.py").write_text(DJL_HANDLER)
    (torchserve / "MAR-INF").mkdir(parents=True)
    manifest = {
        "model": {"modelName": "torchserve", "modelVersion": "1.0", "handler": "h.py:handle"},
        "runtime": "python",
    }
    (torchserve / "MAR-INF" / "MANIFEST.json").write_text(json.dumps(manifest))
    (torchserve / "h.py").write_text(TORCHSERVE_HANDLER)
    flags = ("--trace-endpoint", collector.url, "--trace-delay", "0.05", "--trace-levels", "timestamps")
    with serve(tmp_path / "log", djl, torchserve, *flags) as serving:
        until(serving.is_ready, serving.said)
        fields = b"traceparent: " + CONTEXT.encode() + b"\r\n"
        seen = {}
        for name in ("djl", "torchserve"):
            answer = serving.ask(post(f"/predictions/{name}", b"{}", fields))
            assert answer.status == 200, answer
            seen[name] = answer.body.decode()
        spans = collector.await_spans(6)
    for name, context in seen.items():
        span = next(span for span in spans if span.name == name)
        assert context == f"00-{CONTEXT.split('-')[1]}-{span.span_id.hex()}-01"
