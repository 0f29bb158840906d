"""The extensions of the v2 protocol over HTTP against the whole server, by NVIDIA's own client where it has the call.

Each model answers what a test can compute by itself; those in Python need no more than numpy.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from tests.fixtures import models
from tests.harness.raw_http import get
from tests.harness.server_process import ServerProcess, serve, until
from tests.harness.triton_http import LABELLED, TEACHER, TEACHER_CONFIG, sent, write
from tests.harness.triton_tensors import A, B, given, objects, two, wanted
from tritonclient.utils import InferenceServerException

GENERATOR = """
import json
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            prompt = pb.get_input_tensor_by_name(request, "PROMPT").as_numpy().ravel()[0].decode()
            given = pb.get_input_tensor_by_name(request, "TIMES")
            times = 1 if given is None else int(given.as_numpy().ravel()[0])
            told = json.loads(request.parameters() or "{}")
            for turn in range(times):
                text = np.array([f"{prompt}{turn} {json.dumps(told, sort_keys=True)}".encode()], object)
                scores = np.arange(3, dtype=np.float32)
                sender.send(pb.InferenceResponse([pb.Tensor("TEXT", text), pb.Tensor("SCORES", scores)]))
            if prompt == "fail":
                sender.send(pb.InferenceResponse(error=pb.TritonError("no more of this")))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
"""

GENERATOR_CONFIG = """
backend: "python"
max_batch_size: 0
input [
  { name: "PROMPT" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "TIMES" data_type: TYPE_INT32 dims: [ 1 ] optional: true }
]
output [
  { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "SCORES" data_type: TYPE_FP32 dims: [ 3 ] }
]
model_transaction_policy { decoupled: true }
instance_group { count: 1 kind: KIND_CPU }
"""

TICKER = """
import os
import time
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.file = os.path.join(args["model_repository"], "ticks")

    def execute(self, requests):
        for request in requests:
            sender, ticks = request.get_response_sender(), 0
            while ticks < 1000 and not request.is_cancelled():
                sender.send(pb.InferenceResponse([pb.Tensor("tick", np.array([ticks], np.int32))]))
                ticks += 1
                time.sleep(0.02)
            with open(self.file, "a") as file:
                file.write(f"{ticks}\\n")
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
"""

TICKER_CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "tick" data_type: TYPE_INT32 dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
instance_group { count: 1 kind: KIND_CPU }
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    models.add(root, "add")
    models.identity(root, "echo", rows=16)
    models.identity(root, "bytes", datatype="STRING", dims="1")
    models.identity(root, "wide", dims="-1")
    write(root, "generator", GENERATOR_CONFIG, GENERATOR)
    write(root, "teacher", TEACHER_CONFIG, TEACHER)
    write(root, "ticker", TICKER_CONFIG, TICKER)
    write(root, "pets", LABELLED, labels_txt="cat\ndog\nnewt\n")
    return root


@pytest.fixture(scope="module")
def serving(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    words = ["--client-shared-memory", "--forward-headers", "x-.*"]
    with serve(tmp_path_factory.mktemp("log") / "log", repository, *words) as server:
        yield server


@pytest.fixture
def client(serving: ServerProcess) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(serving.address, network_timeout=120, connection_timeout=120) as client:
        yield client


def streamed(serving: ServerProcess, document: Any) -> tuple[int, list[Any]]:
    """Status and events of an answer in parts, or in one."""
    with closing(HTTPConnection("127.0.0.1", serving.port, timeout=120)) as connection:
        connection.request("POST", "/v2/models/generator/generate_stream", json.dumps(document))
        answer = connection.getresponse()
        events = answer.read().decode().split("\n\n")
        assert events.pop() == "", events
        return answer.status, [json.loads(event.removeprefix("data: ")) for event in events]


# -- bare data ---------------------------------------------------------------------------------------------


def test_a_body_of_one_inputs_data_alone(serving: ServerProcess) -> None:
    values = np.array([1, 2, 3, 4], "<f4")
    answer = sent(
        serving, "/v2/models/echo/infer", values.tobytes(), b"Inference-Header-Content-Length: 0\r\n"
    )
    assert answer.status == 200, answer
    length = int(answer.fields["inference-header-content-length"])
    (output,) = json.loads(answer.body[:length])["outputs"]
    assert (output["name"], output["shape"]) == ("y", [1, 4])
    assert answer.body[length:] == values.tobytes()


def test_the_open_dimension_follows_from_the_size(serving: ServerProcess) -> None:
    bare = b"Inference-Header-Content-Length: 0\r\n"
    answer = sent(serving, "/v2/models/wide/infer", bytes(12), bare)
    assert b'"shape":[3]' in answer.body
    refused = sent(serving, "/v2/models/wide/infer", bytes(11), bare)
    assert (refused.status, "11 bytes" in refused.error) == (400, True)
    refused = sent(serving, "/v2/models/add/infer", bytes(16), bare)
    assert (refused.status, "has one" in refused.error) == (400, True)


def test_one_text_needs_no_length(serving: ServerProcess) -> None:
    answer = sent(serving, "/v2/models/bytes/infer", b"Hello", b"Inference-Header-Content-Length: 0\r\n")
    assert answer.status == 200
    assert answer.body.endswith(b"\x05\0\0\0Hello")


# -- classification ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_binary", [True, False])
def test_classification(client: triton.InferenceServerClient, is_binary: bool) -> None:
    rows = np.array([[0.5, 4, -1, 2], [1, 2, 3, 4]], np.float32)
    asked = triton.InferRequestedOutput("y", binary_data=is_binary, class_count=2)
    result = client.infer("pets", [given("x", rows, "FP32")], outputs=[asked])
    texts = [text.decode() if isinstance(text, bytes) else text for text in result.as_numpy("y").ravel()]
    assert result.as_numpy("y").shape == (2, 2)
    assert texts == ["4.000000:1:dog", "2.000000:3", "4.000000:3", "3.000000:2:newt"]


def test_what_has_no_order_is_not_classified(client: triton.InferenceServerClient) -> None:
    asked = triton.InferRequestedOutput("y", class_count=1)
    with pytest.raises(InferenceServerException, match=r"'y'.*BYTES, which has no order"):
        client.infer("bytes", [given("x", objects(["a"]), "BYTES")], outputs=[asked])


# -- compression -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer_in", ["gzip", "deflate", None])
@pytest.mark.parametrize("request_in", ["gzip", "deflate", None])
def test_compression_both_ways(
    client: triton.InferenceServerClient, request_in: str | None, answer_in: str | None
) -> None:
    x = np.arange(3000, dtype=np.float32)
    for is_binary in (True, False):
        result = client.infer(
            "wide",
            [given("x", x, "FP32", is_binary)],
            outputs=[wanted("y", is_binary)],
            request_compression_algorithm=request_in,
            response_compression_algorithm=answer_in,
        )
        np.testing.assert_array_equal(result.as_numpy("y"), x)


def test_a_compressed_answer_is_marked(serving: ServerProcess) -> None:
    document = {"inputs": [{"name": "x", "shape": [3000], "datatype": "FP32", "data": [0.0] * 3000}]}
    answer = sent(serving, "/v2/models/wide/infer", document, b"Accept-Encoding: gzip;q=0.5, deflate\r\n")
    assert answer.fields["content-encoding"] == "deflate"
    assert json.loads(zlib.decompress(answer.body))["outputs"][0]["shape"] == [3000]
    plain = sent(serving, "/v2/models/wide/infer", document, b"Accept-Encoding: identity, br\r\n")
    assert "content-encoding" not in plain.fields
    small = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [0.0]}]}
    assert (
        "content-encoding"
        not in sent(serving, "/v2/models/wide/infer", small, b"Accept-Encoding: gzip\r\n").fields
    )


def test_a_bomb_is_refused(serving: ServerProcess) -> None:
    bomb = gzip.compress(bytes(300 * 2**20), 9)
    answer = sent(serving, "/v2/models/wide/infer", bomb, b"Content-Encoding: gzip\r\n")
    assert (answer.status, "unpacks to more than" in answer.error) == (413, True)


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [(b"br", b"x", 415), (b"gzip", b"x", 400), (b"gzip", gzip.compress(b"{}", mtime=0)[:-4], 400)],
)
def test_wrong_codings(serving: ServerProcess, coding: bytes, body: bytes, status: int) -> None:
    answer = sent(serving, "/v2/models/wide/infer", body, b"Content-Encoding: %s\r\n" % coding)
    assert answer.status == status, answer
    if status == 415:
        assert answer.fields["accept-encoding"] == "gzip, deflate"


# -- generate ----------------------------------------------------------------------------------------------


def test_generate(serving: ServerProcess) -> None:
    request = {"PROMPT": "hi", "id": "7", "depth": 2, "parameters": {"word": "w", "priority": 1}}
    answer = sent(serving, "/v2/models/generator/generate", request)
    assert answer.status == 200, answer
    document = answer.document
    assert document.pop("TEXT") == 'hi0 {"depth": 2, "id": "7", "word": "w"}'
    assert document == {"SCORES": [0.0, 1.0, 2.0], "id": "7", "model_name": "generator", "model_version": "1"}


def test_generate_by_a_model_that_answers_once(serving: ServerProcess) -> None:
    answer = sent(serving, "/v2/models/echo/generate", {"x": [1, 2.5, 3, 4]})
    assert answer.document == {"y": [1.0, 2.5, 3.0, 4.0], "model_name": "echo", "model_version": "1"}
    answer = sent(serving, "/v2/models/echo/versions/1/generate_stream", {"x": [1, 2.5, 3, 4]})
    assert answer.body == b'data: {"y":[1.0,2.5,3.0,4.0],"model_name":"echo","model_version":"1"}\n\n'
    assert answer.fields["content-type"] == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize(("times", "found"), [(0, "no"), (2, "several")])
def test_generate_answers_exactly_once(serving: ServerProcess, times: int, found: str) -> None:
    answer = sent(serving, "/v2/models/generator/generate", {"PROMPT": "hi", "TIMES": times})
    assert (answer.status, f"sent {found}" in answer.error) == (500, True)


def test_generate_stream(serving: ServerProcess) -> None:
    status, events = streamed(serving, {"PROMPT": "hi", "TIMES": 3})
    assert status == 200
    assert [event["TEXT"][:3] for event in events] == ["hi0", "hi1", "hi2"]
    nothing = sent(serving, "/v2/models/generator/generate_stream", {"PROMPT": "hi", "TIMES": 0})
    assert (nothing.status, nothing.body) == (200, b"")


def test_errors_of_streams(serving: ServerProcess) -> None:
    first = sent(serving, "/v2/models/generator/generate_stream", {"PROMPT": "fail", "TIMES": 0})
    assert (first.status, first.error) == (500, "no more of this")
    status, events = streamed(serving, {"PROMPT": "fail", "TIMES": 1})
    assert (status, len(events), events[1]) == (200, 2, {"error": "no more of this"})
    unary = sent(serving, "/v2/models/generator/generate", {"PROMPT": "fail", "TIMES": 1})
    assert (unary.status, unary.error) == (500, "no more of this")


def ended_ticks(repository: Path, count: int) -> list[int]:
    file = repository / "ticker" / "ticks"
    until(lambda: file.exists() and len(file.read_text().split()) >= count, lambda: "the model ticks on")
    return [int(line) for line in file.read_text().split()]


def test_who_leaves_a_stream_stops_its_model(serving: ServerProcess, repository: Path) -> None:
    with closing(HTTPConnection("127.0.0.1", serving.port, timeout=120)) as connection:
        connection.request("POST", "/v2/models/ticker/generate_stream", b'{"x": 1}')
        assert (
            connection.getresponse().readline()
            == b'data: {"tick":0,"model_name":"ticker","model_version":"1"}\n'
        )
    assert ended_ticks(repository, 1)[0] < 100
    for turn, action in enumerate(("generate", "infer"), start=2):  # both end with the second response
        bare = b"Inference-Header-Content-Length: 0\r\n" if action == "infer" else b""
        body = bytes(4) if action == "infer" else b'{"x": 1}'
        assert sent(serving, f"/v2/models/ticker/{action}", body, bare).status in (500, 501)
        assert ended_ticks(repository, turn)[-1] < 100


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[1]", "no object"),
        (b"{", "no valid JSON"),
        (b'{"PROMPT": [["a"], ["b"]]}', "2 values"),
        (b'{"PROMPT": "a", "other": [1]}', "'other'"),
        (b'{"PROMPT": 7}', "a string"),
        (b'{"PROMPT": "a", "TIMES": [1, 2]}', "2 values"),
        (b'{"PROMPT": "a", "parameters": 1}', "no object"),
        (b'{"PROMPT": "a", "parameters": {"triton_x": 1}}', "reserved"),
        (b"{}", "no input 'PROMPT'"),
    ],
)
def test_wrong_generate_requests(serving: ServerProcess, body: bytes, words: str) -> None:
    for action in ("generate", "generate_stream"):
        answer = sent(serving, f"/v2/models/generator/{action}", body)
        assert (answer.status, words in answer.error) == (400, True), answer


# -- parameters --------------------------------------------------------------------------------------------


def test_headers_become_parameters(serving: ServerProcess) -> None:
    answer = sent(serving, "/v2/models/generator/generate", {"PROMPT": "hi"}, b"X-Name: Val\r\nOther: no\r\n")
    assert answer.document["TEXT"] == 'hi0 {"x-name": "Val"}'


def test_sequences_are_nothing_to_a_model_without(client: triton.InferenceServerClient) -> None:
    result = client.infer("add", two(A, B), sequence_id=5, sequence_start=True, sequence_end=True, priority=9)
    np.testing.assert_array_equal(result.as_numpy("sum"), A + B)


# -- settings ----------------------------------------------------------------------------------------------


def test_log_settings(client: triton.InferenceServerClient) -> None:
    before = client.get_log_settings()
    assert before == {
        "log_file": "",
        "log_info": False,
        "log_warning": True,
        "log_error": True,
        "log_verbose_level": 0,
        "log_format": "default",
    }
    try:
        changed = {"log_verbose_level": 2, "log_info": True, "log_warning": False}
        assert client.update_log_settings(changed) == before | changed
        with pytest.raises(InferenceServerException, match="log_format"):
            client.update_log_settings({"log_format": "ISO8601"})
        with pytest.raises(InferenceServerException, match="redirect"):
            client.update_log_settings({"log_file": "/tmp/x"})
    finally:
        assert client.update_log_settings(before) == before


def test_trace_settings(client: triton.InferenceServerClient, serving: ServerProcess) -> None:
    settings = client.get_trace_settings()
    assert settings["trace_level"] == ["OFF"]
    assert client.get_trace_settings("add") == settings
    assert client.update_trace_settings("add", {"trace_level": ["OFF"], "trace_rate": None}) == settings
    with pytest.raises(InferenceServerException, match="--trace-file"):
        client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})
    assert serving.ask(get("/v2/models/nobody/trace/setting")).status == 404
