"""The command `tritonserver` against NVIDIA's own clients: what it prints, when it listens, how it ends."""

import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from tests.fixtures import models
from tests.harness.certificates import pair
from tests.harness.ports import free_port
from tests.harness.raw_http import ask, get, post
from tests.harness.server_process import until
from tests.harness.triton_grpc import ONE_ROW
from tests.harness.triton_grpc import given as grpc_given
from tests.harness.triton_tensors import given
from tests.harness.tritonserver import LINE, TritonServer, rows, told, tritonserver
from tritonclient.utils import InferenceServerException

PARAMETERS = """
import json
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        names = [json.loads(request.parameters() or "{}").get("x-who", "nobody") for request in requests]
        texts = [np.array([name.encode()], object) for name in names]
        return [pb.InferenceResponse([pb.Tensor("who", text)]) for text in texts]
"""
PARAMETERS_CONFIG = """
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "who" data_type: TYPE_STRING dims: [ 1 ] }
"""
WAITS = """
import os, time

class TritonPythonModel:
    def initialize(self, args):
        while not os.path.exists({gate!r}):
            time.sleep(0.01)

    def execute(self, requests):
        return []
"""
LASTS = """
import os, time
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        open({begun!r}, "w").close()
        while not os.path.exists({gate!r}):
            time.sleep(0.01)
        return [pb.InferenceResponse([pb.Tensor("who", np.array([b"done"], object))]) for _ in requests]
"""
FAILS = """
class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("no weights\\nat all")

    def execute(self, requests):
        return []
"""


def handler(root: Path, name: str, code: str, config: str = PARAMETERS_CONFIG) -> None:
    """A model in Python."""
    (root / name / "1").mkdir(parents=True)
    (root / name / "1" / "model.py").write_text(code)
    (root / name / "config.pbtxt").write_text(config)


def over_http(server: TritonServer) -> Any:
    return closing(triton.InferenceServerClient(server.address("http"), network_timeout=120))


def over_grpc(server: TritonServer) -> Any:
    return closing(triton_grpc.InferenceServerClient(server.address("grpc")))


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """A repository with one good model."""
    models.identity(tmp_path / "models", "echo", rows=16)
    return tmp_path / "models"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with a model of each of three backends."""
    root = tmp_path_factory.mktemp("models")
    models.identity(root, "echo", rows=16)
    models.add(root, "add")
    handler(root, "who", PARAMETERS)
    return root


@pytest.fixture(scope="module")
def serving(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """It, served with a few flags that disturb nobody."""
    words = ["--model-repository", repository, "--id=me", "--http-header-forward-pattern=X-Who"]
    words += ["--grpc-header-forward-pattern", "x-w.*", "--backend-config=python,shm-default-byte-size=1"]
    words += ["--http-restricted-api=statistics,logging:admin=secret"]
    words += ["--grpc-restricted-protocol=statistics,inference:admin=secret", "--http-max-input-size=100000"]
    with tritonserver(tmp_path_factory.mktemp("log") / "log", *words) as server:
        server.address("metrics")
        yield server


# -- what it prints ----------------------------------------------------------------------------------------


def test_lines_and_tables(serving: TritonServer, repository: Path) -> None:
    said = serving.said()
    for line in said.splitlines():
        assert LINE.match(line) or line == "" or line[0] in "+|", line
    order = ["loading: add:1", "successfully loaded 'who'", "| Repository Agent |", "| Backend ", "| Model "]
    order += ["| Option ", "Started GRPCInferenceService", "Started HTTPService", "Started Metrics Service"]
    places = [said.index(text) for text in order]
    assert places == sorted(places)
    assert rows(said, "Repository Agent") == []
    assert [row[0] for row in rows(said, "Backend")] == ["identity", "onnxruntime", "python"]
    settings = json.loads(rows(said, "Backend")[2][2])["cmdline"]
    assert settings["default-max-batch-size"] == "4"
    assert rows(said, "Model") == [[name, "1", "READY"] for name in ("add", "echo", "who")]
    options = {row[0]: row[1].rstrip("| ") for row in rows(said, "Option")}
    assert options["server_id"] == "me"
    assert options["server_version"] == "2.51.0"
    assert options["model_repository_path[0]"] == str(repository)
    assert options["model_control_mode"] == "MODE_NONE"
    assert "binary_tensor_data" in options["server_extensions"].split()


def test_what_is_wider_and_what_has_no_effect_is_said_once(serving: TritonServer) -> None:
    assert serving.said().count("wider than trivium serve") == 1
    assert serving.said().count("--backend-config=python,shm-default-byte-size (") == 1


def test_it_says_who_it_is(serving: TritonServer) -> None:
    with over_http(serving) as client:
        http = client.get_server_metadata()
    with over_grpc(serving) as client:
        grpc = client.get_server_metadata()
    assert (http["name"], http["version"]) == (grpc.name, grpc.version) == ("me", "2.51.0")
    assert http["extensions"] == list(grpc.extensions)


def test_metrics_have_a_port_of_their_own(serving: TritonServer) -> None:
    answer = ask(serving.port("metrics"), get("/metrics"))
    assert answer.status == 200
    assert b'nv_inference_request_success{model="echo",version="1"}' in answer.body
    assert ask(serving.port("http"), get("/metrics")).status == 404


def test_headers_become_parameters(serving: TritonServer) -> None:
    x = np.zeros(1, np.float32)
    with over_http(serving) as client:
        for name in ("X-Who", "x-who"):
            found = client.infer("who", [given("x", x)], headers={name: "me"}).as_numpy("who")
            assert found.tolist() == [b"me"]
    with over_grpc(serving) as client:
        headers = {"x-who": "me", "triton-grpc-protocol-admin": "secret"}
        assert client.infer("who", [grpc_given("x", x)], headers=headers).as_numpy("who").tolist() == [b"me"]


def test_restricted_apis_and_protocols(serving: TritonServer) -> None:
    with over_http(serving) as client:
        with pytest.raises(InferenceServerException) as caught:
            client.get_inference_statistics()
        assert (caught.value.status(), "'admin'" in caught.value.message()) == ("403", True)
        assert client.get_inference_statistics(headers={"admin": "secret"})["model_stats"]
        assert client.is_server_live()
    with over_grpc(serving) as client:
        with pytest.raises(InferenceServerException) as caught:
            client.get_inference_statistics()
        assert caught.value.status() == "StatusCode.UNAVAILABLE"
        expected = "This protocol is restricted, expecting header 'triton-grpc-protocol-admin'"
        assert caught.value.message() == expected
        key = {"triton-grpc-protocol-admin": "secret"}
        assert client.get_inference_statistics(headers=key).model_stats
        assert client.is_server_live()


def test_a_restricted_stream_ends_with_a_status(serving: TritonServer) -> None:
    ended: list[Any] = []
    over = threading.Event()
    with over_grpc(serving) as client:
        client.start_stream(lambda result, error: (ended.append(error), over.set()))
        with suppress(InferenceServerException):  # the refusal may be there before the request
            client.async_stream_infer("echo", [grpc_given("x", ONE_ROW)])
        assert over.wait(30)
        client.stop_stream()
    assert "expecting header" in ended[0].message()


def test_inputs_beyond_the_largest_size(serving: TritonServer) -> None:
    answer = ask(serving.port("http"), post("/v2/models/echo/infer", b"x" * 100_001))
    assert answer.status == 400
    assert "100000 bytes" in answer.error
    assert "--http-max-input-size" in answer.error
    answer = ask(serving.port("http"), post("/v2/models/echo/infer", b"x" * 100_000))
    assert "--http-max-input-size" not in answer.error  # read, and no JSON


def test_nobody_loads_in_the_mode_none(serving: TritonServer) -> None:
    text = "explicit model load / unload is not allowed if polling is enabled"
    with over_http(serving) as client:
        for call in (client.load_model, client.unload_model):
            with pytest.raises(InferenceServerException) as caught:
                call("echo")
            assert (caught.value.status(), caught.value.message()) == ("503", text)
    with over_grpc(serving) as client, pytest.raises(InferenceServerException) as caught:
        client.load_model("echo")
    assert (caught.value.status(), caught.value.message()) == ("StatusCode.UNAVAILABLE", text)


# -- how it starts -----------------------------------------------------------------------------------------


def test_ports_open_once_models_are_loaded(tmp_path: Path) -> None:
    gate, port = tmp_path / "gate", free_port()
    handler(tmp_path / "models", "slow", WAITS.format(gate=str(gate)))
    words = ("--model-repository", tmp_path / "models", f"--http-port={port}")
    with tritonserver(tmp_path / "log", *words) as server:
        server.await_text("loading: slow:1")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        gate.touch()
        assert server.port("http") == port
        with over_http(server) as client:
            assert client.is_server_ready()


def test_a_signal_while_models_load(tmp_path: Path) -> None:
    handler(tmp_path / "models", "slow", WAITS.format(gate=str(tmp_path / "never")))
    with tritonserver(tmp_path / "log", "--model-repository", tmp_path / "models") as server:
        server.await_text("loading: slow:1")
        server.signal(signal.SIGINT)
        assert server.wait() == 0
        assert "Signal (2) received." in server.said()
        assert "Started" not in server.said()


def test_a_model_that_fails_ends_it(tmp_path: Path, echo: Path) -> None:
    models.corrupt(echo, "damaged", 0.5)
    with tritonserver(tmp_path / "log", "--model-repository", echo, status=1) as server:
        assert server.wait() == 1
        said = server.said()
    assert said.splitlines()[-1] == "error: creating server: Internal - failed to load all models"
    assert "failed to load 'damaged' version 1: " in said
    assert "successfully unloaded 'echo' version 1" in said
    assert "Started" not in said
    assert [row[0] for row in rows(said, "Model")] == ["damaged", "echo"]
    assert rows(said, "Model")[0][2].startswith("UNAVAILABLE: ")


def test_or_it_does_not(tmp_path: Path, echo: Path) -> None:
    models.corrupt(echo, "damaged", 0.5)
    words = ("--model-repository", echo, "--exit-on-error", "off")
    with tritonserver(tmp_path / "log", *words) as server, over_http(server) as client:
        assert not client.is_server_ready()
        assert client.is_model_ready("echo")
        assert '"Internal: failed to load all models"' in server.said()
    with (
        tritonserver(tmp_path / "log", *words, "--strict-readiness=false") as server,
        over_http(server) as client,
    ):
        assert client.is_server_ready()
        assert not client.is_model_ready("damaged")


def test_a_python_model_that_fails_has_its_words_in_the_table(tmp_path: Path) -> None:
    handler(tmp_path / "models", "bad", FAILS)
    words = [*("--model-repository", tmp_path / "models"), "--log-warning=false", "--log-error=false"]
    with tritonserver(tmp_path / "log", *words, status=1) as server:
        assert server.wait() == 1
        status = rows(server.said(), "Model")[0][2]
    assert "no weights\nat all" in status.replace(" |", "")


def test_a_name_in_two_repositories_is_not_available(tmp_path: Path, echo: Path) -> None:
    models.identity(tmp_path / "others", "echo", rows=16)
    models.identity(tmp_path / "others", "alone", rows=16)
    words = ("--model-repository", echo, "--model-store", tmp_path / "others", "--exit-on-error=false")
    with tritonserver(tmp_path / "log", *words) as server, over_http(server) as client:
        assert not client.is_model_ready("echo")
        assert client.is_model_ready("alone")
        index = {entry["name"]: entry for entry in client.get_model_repository_index()}
        assert index["echo"]["state"] == "UNAVAILABLE"
        assert index["alone"]["state"] == "READY"
        with pytest.raises(InferenceServerException):
            client.infer("echo", [given("x", ONE_ROW)])


def test_what_it_cannot_start_with(tmp_path: Path, echo: Path) -> None:
    for words, ending in (
        ([], "Invalid argument - --model-repository must be specified"),
        (["--model-repository=/nowhere/at/all"], "Internal - failed to stat file /nowhere/at/all"),
        (
            [
                "--model-repository",
                echo,
                "--model-control-mode=explicit",
                "--load-model=*",
                "--load-model=echo",
            ],
            "Invalid argument - Wildcard model name '*' must be the ONLY startup model if specified at all.",
        ),
    ):
        status, said = told(*words)
        assert (status, said.splitlines()[-1]) == (1, f"error: creating server: {ending}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nonsense=1"], "unrecognized option '--nonsense'"),
        (["--http-port=x"], "Invalid option value. Got x"),
        (["--load-model=x"], "requires setting '--model-control-mode=explicit'"),
        (["--trace-config=level=LOUD"], "invalid value for trace level option: LOUD"),
    ],
)
def test_words_that_it_cannot_read(words: list[str], says: str) -> None:
    status, said = told(*words)
    assert status == 1
    assert says in said
    assert "Usage: tritonserver [options]" in said


@pytest.mark.parametrize(("service", "name"), [("http", "HTTP"), ("grpc", "GRPC"), ("metrics", "Metrics")])
def test_a_port_that_is_taken(tmp_path: Path, echo: Path, service: str, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = ("--model-repository", echo, f"--{service}-port={port}")
        with tritonserver(tmp_path / "log", *words, status=1) as server:
            assert server.wait() == 1
            expected = (
                f"failed to start {name} service: Unavailable - Socket '127.0.0.1:{port}' already in use "
            )
            assert expected in server.said()


def test_ports_that_are_shared(tmp_path: Path, echo: Path) -> None:
    http, grpc = free_port(), free_port()
    words = ["--model-repository", echo, "--reuse-http-port=true", "--reuse-grpc-port=1"]
    words += [f"--http-port={http}", f"--grpc-port={grpc}", "--allow-metrics=false"]
    with tritonserver(tmp_path / "one", *words) as one, tritonserver(tmp_path / "two", *words) as two:
        assert one.port("http") == two.port("http") == http
        assert one.port("grpc") == two.port("grpc") == grpc


def test_services_that_are_switched_off(tmp_path: Path, echo: Path) -> None:
    words = ["--model-repository", echo, "--allow-http=false", "--allow-metrics=0", "--allow-client-shm=off"]
    with tritonserver(tmp_path / "log", *words) as server, over_grpc(server) as client:
        assert client.is_server_ready()
        assert server.said().count("Started") == 1
        with pytest.raises(InferenceServerException) as caught:
            client.register_system_shared_memory("r", "/nowhere", 16)
        assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
        assert "Start the server with '--allow-client-shm=true' to enable." in caught.value.message()


def test_the_log_goes_to_a_file(tmp_path: Path, echo: Path) -> None:
    words = ["--model-repository", echo, "--log-file", tmp_path / "file", "--log-format=ISO8601"]
    with tritonserver(tmp_path / "log", *words, "--log-warning=off") as server:
        file = tmp_path / "file"
        until(lambda: file.exists() and "Started Metrics" in file.read_text(), server.said)
        text = file.read_text()
        assert re.search(
            r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ I \d+ [\w.]+:\d+\] "loading: echo:1"$', text, re.M
        )
        assert "Z W " not in text
        assert server.said() == ""


def test_nothing_is_completed_if_told(tmp_path: Path) -> None:
    models.add(tmp_path / "models", "add")
    status, said = told("--model-repository", tmp_path / "models", "--disable-auto-complete-config")
    assert status == 1
    assert "nothing is completed on this server" in said
    assert dict(row[:2] for row in rows(said, "Option"))["strict_model_config"].startswith("1")


def test_tls_for_grpc(tmp_path: Path, echo: Path) -> None:
    certificate, key = pair(tmp_path, "server")
    words = ["--model-repository", echo, "--grpc-use-ssl=true", "--grpc-server-cert", certificate]
    words += ["--grpc-server-key", key, "--grpc-infer-response-compression-level=low"]
    with tritonserver(tmp_path / "log", *words) as server:
        options = {"ssl": True, "root_certificates": certificate}
        with closing(triton_grpc.InferenceServerClient(server.address("grpc"), **options)) as client:
            found = client.infer("echo", [grpc_given("x", ONE_ROW)]).as_numpy("y")
            np.testing.assert_array_equal(found, ONE_ROW)


# -- who changes what is served ----------------------------------------------------------------------------


def test_clients_in_the_mode_explicit(tmp_path: Path, echo: Path) -> None:
    for name in ("first", "other"):
        models.identity(echo, name, rows=16)
    words = ("--model-repository", echo, "--model-control-mode", "explicit", "--load-model=first")
    with tritonserver(tmp_path / "log", *words) as server:
        with over_http(server) as client:
            assert client.is_server_ready()
            index = {"echo": None, "first": "READY", "other": None}
            assert {e["name"]: e.get("state") for e in client.get_model_repository_index()} == index
            client.load_model("echo")
            assert client.is_model_ready("echo")
            client.unload_model("first")
            until(lambda: "successfully unloaded 'first' version 1" in server.said(), server.said)
            entries = {e["name"]: e for e in client.get_model_repository_index()}
            assert (entries["first"]["state"], entries["first"]["reason"]) == ("UNAVAILABLE", "unloaded")
            assert client.is_server_ready()
        with over_grpc(server) as client:
            client.load_model("other")
            assert client.is_model_ready("other")
        assert rows(server.said(), "Model") == [["first", "1", "READY"]]
        options = {row[0]: row[1] for row in rows(server.said(), "Option")}
        assert options["model_control_mode"].startswith("MODE_EXPLICIT")
        assert options["startup_models_0"].startswith("first")


def test_an_empty_repository_in_the_mode_explicit(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    words = ("--model-repository", tmp_path / "models", "--model-control-mode=explicit")
    with tritonserver(tmp_path / "log", *words) as server, over_http(server) as client:
        assert client.is_server_ready()
        models.identity(tmp_path / "models", "late", rows=16)
        client.load_model("late")
        np.testing.assert_array_equal(client.infer("late", [given("x", ONE_ROW)]).as_numpy("y"), ONE_ROW)


def test_every_model_or_one_that_is_not_there(tmp_path: Path, echo: Path) -> None:
    explicit = ("--model-repository", echo, "--model-control-mode=explicit")
    with tritonserver(tmp_path / "log", *explicit, "--load-model=*") as server, over_http(server) as client:
        assert client.is_model_ready("echo")
    with tritonserver(tmp_path / "log", *explicit, "--load-model=nope", status=1) as server:
        assert server.wait() == 1
        assert "failed to load all models" in server.said()


def test_folders_in_the_mode_poll(tmp_path: Path, echo: Path) -> None:
    words = ("--model-repository", echo, "--model-control-mode=poll", "--repository-poll-secs=1")
    with tritonserver(tmp_path / "log", *words) as server, over_http(server) as client:
        assert client.is_model_ready("echo")
        models.identity(echo, "new", rows=16)
        until(lambda: bool(client.is_model_ready("new")), server.said)
        with pytest.raises(InferenceServerException) as caught:
            client.unload_model("new")
        assert caught.value.status() == "503"


# -- how it ends -------------------------------------------------------------------------------------------


def test_what_is_in_work_is_finished(tmp_path: Path) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    handler(tmp_path / "models", "slow", LASTS.format(begun=str(begun), gate=str(gate)))
    with tritonserver(tmp_path / "log", "--model-repository", tmp_path / "models") as server:
        with over_http(server) as client, ThreadPoolExecutor(1) as threads:
            later = threads.submit(client.infer, "slow", [given("x", np.zeros(1, np.float32))])
            until(begun.exists, server.said)
            server.signal(signal.SIGTERM)
            server.await_text("Waiting for in-flight requests to complete.")
            gate.touch()
            assert later.result(120).as_numpy("who").tolist() == [b"done"]
        assert server.wait() == 0
        lines = ["Signal (15) received.", "All models are stopped, unloading models"]
        for line in [*lines, "successfully unloaded 'slow' version 1"]:
            assert line in server.said()


def test_what_takes_too_long_is_cut_off(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    handler(tmp_path / "models", "slow", LASTS.format(begun=str(begun), gate=str(tmp_path / "never")))
    words = ("--model-repository", tmp_path / "models", "--exit-timeout-secs=1")
    with tritonserver(tmp_path / "log", *words, status=1) as server:
        with over_http(server) as client, ThreadPoolExecutor(1) as threads:
            later = threads.submit(client.infer, "slow", [given("x", np.zeros(1, np.float32))])
            until(begun.exists, server.said)
            server.signal(signal.SIGTERM)
            error = later.exception(30)
        assert error is not None
        assert server.wait() == 1
        assert "failed to stop server: Internal - Exit timeout expired. Exiting immediately." in server.said()
