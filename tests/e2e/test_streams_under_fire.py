"""Streams whose clients leave, or read slowly, and requests that are late: what it costs the model and the memory.

Real clients over both wires, a Python model that notes what it does. A gated model sends a part only once the test
has let it: so it is known just how many it could have sent.
"""

import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.raw_http import PATIENCE, ask, connect, get, infer_request, post, reset, tensor
from tests.harness.server_process import GROWTH, ServerProcess, serve, until
from tests.harness.triton_grpc import calling, given
from tritonclient.utils import InferenceServerException

TALK = '''
import json, pathlib, threading, time, numpy as np, triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Says `count` things of `size` bytes, until nobody wants any more; a note tells how many, and how it ended."""

    def initialize(self, args):
        self.folder = pathlib.Path(args["model_repository"])

    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.say, args=(request, request.get_response_sender())).start()

    def say(self, request, sender):
        told = json.loads(pb_utils.get_input_tensor_by_name(request, "told").as_numpy().item())
        name, sent = told["name"], 0
        self.note(name, "0")
        while sent < told["count"] and not sender.is_cancelled():
            if told.get("gated") and not (self.folder / f"{name}.may.{sent}").exists():
                time.sleep(0.001)
                continue
            said = np.array([str(sent).ljust(told.get("size", 1), ".")], object)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("said", said)]))
            sent += 1
            self.note(name, str(sent))
        self.note(name, f"{sent} cancelled" if sender.is_cancelled() else f"{sent} ended")
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def note(self, name, text):
        new = self.folder / f"{name}.new"
        new.write_text(text)
        new.rename(self.folder / name)
'''
BUSY = """
import pathlib, time, numpy as np, triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        self.folder = pathlib.Path(args["model_repository"])
    def execute(self, requests):
        for request in requests:
            with (self.folder / "seen").open("a") as seen:
                seen.write(request.request_id() + "\\n")
        while not (self.folder / "go").exists():
            time.sleep(0.001)
        return [pb_utils.InferenceResponse([pb_utils.get_input_tensor_by_name(r, "x")]) for r in requests]
"""
STRINGS = '{ name: "%s" data_type: TYPE_STRING dims: 1 }'
NUMBERS = '{ name: "x" data_type: TYPE_FP32 dims: 1 }'
CONFIGS = {
    "talk": (
        f'backend: "python" input {STRINGS % "told"} output {STRINGS % "said"} '
        "model_transaction_policy { decoupled: true }",
        TALK,
    ),
    "busy": (
        f'backend: "python" max_batch_size: 1 input {NUMBERS} output {NUMBERS} dynamic_batching {{ '
        "default_queue_policy { default_timeout_microseconds: 200000 timeout_action: REJECT } }",
        BUSY,
    ),
    "echo": (
        'backend: "identity" max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: -1 } '
        'output { name: "y" data_type: TYPE_FP32 dims: -1 }',
        None,
    ),
    "relayed": (
        f'platform: "ensemble" input {STRINGS % "told"} output {STRINGS % "said"} ensemble_scheduling {{ step {{ '
        'model_name: "talk" model_version: -1 input_map { key: "told" value: "told" } '
        'output_map { key: "said" value: "said" } } }',
        None,
    ),
}
SIZE = 2**16
"""Bytes of a part that is sent to slow readers."""
PARTS = 1600
"""So many of them are half as much again as a process may grow by."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fire") / "models"
    for name, (config, code) in CONFIGS.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(config)
        if code is not None:
            (root / name / "1" / "model.py").write_text(code)
    return root


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serve(tmp_path_factory.mktemp("log") / "log", root) as server:
        yield server


class Speech:
    """What the model is told to say, and its note about it."""

    def __init__(self, root: Path, name: str, count: int, size: int = 1, gated: bool = False) -> None:
        self.told = json.dumps({"name": name, "count": count, "size": size, "gated": gated})
        self._folder, self._name = root / "talk", name

    def allow(self, *parts: int) -> None:
        """Those may be said."""
        for part in parts:
            (self._folder / f"{self._name}.may.{part}").touch()

    @property
    def note(self) -> str:
        """As it is now."""
        file = self._folder / self._name
        return file.read_text() if file.exists() else ""

    @property
    def sent(self) -> int:
        """Parts that user code has sent."""
        return int(self.note.split()[0])

    def ended(self) -> str:
        """The note, once the model is done with it."""
        until(lambda: " " in self.note, lambda: f"the model goes on, after {self.note}")
        return self.note

    def stands(self) -> int:
        """Parts sent, once no more are: for half a second nothing has happened."""
        seen, since = "", time.monotonic()

        def has_stood() -> bool:
            nonlocal seen, since
            if self.note != seen:
                seen, since = self.note, time.monotonic()
            return bool(seen) and time.monotonic() - since > 0.5

        until(has_stood, lambda: f"it never stands still: {seen}")
        return self.sent


class HttpListener:
    """Asks by generate_stream, over a socket that takes in little by itself."""

    def __init__(self, server: ServerProcess, speech: Speech, model: str = "talk") -> None:
        self.plug = socket.socket()
        self.plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**18)
        self.plug.settimeout(PATIENCE)
        self.plug.connect(("127.0.0.1", server.port))
        body = json.dumps({"told": speech.told}).encode()
        self.plug.sendall(post(f"/v2/models/{model}/generate_stream", body))
        self._answer: HTTPResponse | None = None

    def hear(self, count: int) -> list[int]:
        """The numbers of that many further parts."""
        if self._answer is None:
            self._answer = HTTPResponse(self.plug)
            self._answer.begin()
        heard: list[int] = []
        while len(heard) < count:
            line = self._answer.readline()
            assert line, f"the answer ends behind {heard}"
            if line != b"\n":
                heard.append(int(json.loads(line.removeprefix(b"data: "))["said"].rstrip(".")))
        return heard

    def leave(self) -> None:
        """A reset."""
        if self._answer is not None:
            self._answer.close()  # it has a hold on the socket, too
        reset(self.plug)

    def close(self) -> None:
        """A polite end, which a half-closed client sends, too."""
        if self._answer is not None:
            self._answer.close()
        self.plug.close()


class GrpcListener:
    """Asks on a stream of NVIDIA's client, which reads no further while nobody listens."""

    def __init__(self, server: ServerProcess, speech: Speech, model: str = "talk") -> None:
        self._calling = calling(server.grpc_address)
        self._client = self._calling.__enter__()
        self._heard: queue.Queue[tuple[Any, Any]] = queue.Queue(maxsize=1)
        self._leaves = threading.Event()
        self._client.start_stream(self._take)
        told = given("told", np.array([speech.told.encode()], object), "BYTES")
        self._client.async_stream_infer(model, [told])

    def _take(self, result: Any, error: Any) -> None:
        while not self._leaves.is_set():
            try:
                self._heard.put((result, error), timeout=0.01)
                return
            except queue.Full:
                continue

    def hear(self, count: int) -> list[int]:
        heard = []
        for _ in range(count):
            result, error = self._heard.get(timeout=PATIENCE)
            assert error is None, error
            heard.append(int(result.as_numpy("said").item().rstrip(b".")))
        return heard

    def leave(self) -> None:
        self._leaves.set()
        self._client.stop_stream(cancel_requests=True)
        self._calling.__exit__(None, None, None)


Listener = Callable[[ServerProcess, Speech, str], HttpListener | GrpcListener]
WIRES = pytest.mark.parametrize("listener", [HttpListener, GrpcListener], ids=["http", "grpc"])
MODELS = pytest.mark.parametrize("model", ["talk", "relayed"])


@MODELS
@WIRES
def test_a_dropped_stream_stops_its_model_at_once(
    server: ServerProcess, root: Path, listener: Listener, model: str
) -> None:
    speech = Speech(root, f"dropped.{listener.__name__}.{model}", 1000, gated=True)
    speech.allow(0, 1, 2)
    failed = counted(server, "talk", "fail")
    hearing = listener(server, speech, model)
    assert hearing.hear(3) == [0, 1, 2]
    hearing.leave()
    assert speech.ended() == "3 cancelled"
    until(lambda: counted(server, "talk", "fail") == failed + 1, lambda: "the cancellation is not counted")


def test_a_client_that_has_closed_its_connection_is_found_out_with_the_next_response(
    server: ServerProcess, root: Path
) -> None:
    speech = Speech(root, "closed", 1000, gated=True)
    speech.allow(0, 1, 2)
    hearing = HttpListener(server, speech)
    assert hearing.hear(3) == [0, 1, 2]
    hearing.close()
    speech.allow(3)
    assert speech.ended() == "4 cancelled"


@MODELS
@WIRES
def test_a_model_that_runs_on_is_stopped_by_the_end_of_its_reader(
    server: ServerProcess, root: Path, listener: Listener, model: str
) -> None:
    speech = Speech(root, f"running.{listener.__name__}.{model}", 1_000_000)
    hearing = listener(server, speech, model)
    assert hearing.hear(5) == [0, 1, 2, 3, 4]
    hearing.leave()
    assert speech.ended().endswith("cancelled")


@MODELS
@WIRES
def test_a_slow_reader_bounds_memory_and_hears_everything_in_the_end(
    server: ServerProcess, root: Path, listener: Listener, model: str
) -> None:
    speech = Speech(root, f"slow.{listener.__name__}.{model}", PARTS, SIZE)
    before = resident(server)
    hearing = listener(server, speech, model)
    assert hearing.hear(3) == [0, 1, 2]
    sent = speech.stands()
    assert sent * SIZE < GROWTH, f"{sent} parts were sent for a client that has read three"
    grown = {pid: memory - before[pid] for pid, memory in resident(server).items() if pid in before}
    assert max(grown.values()) < GROWTH, grown
    assert infer_echo(server), "others are served"
    for first in range(3, PARTS - 100, 100):
        assert hearing.hear(100) == list(range(first, first + 100))
    hearing.hear((PARTS - 3) % 100)
    assert speech.ended() == f"{PARTS} ended"
    hearing.leave()


def test_a_slow_stream_holds_nobody_elses(server: ServerProcess, root: Path) -> None:
    slow = Speech(root, "one.slow", PARTS, SIZE)
    hearing = GrpcListener(server, slow)
    hearing.hear(1)
    slow.stands()
    for turn, listener in enumerate((GrpcListener, HttpListener)):
        quick = Speech(root, f"one.quick.{turn}", 200, 1000)
        other = listener(server, quick)
        assert other.hear(200) == list(range(200))
        assert quick.ended() == "200 ended"
        other.leave()
    hearing.leave()
    slow.ended()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_ensemble_of_a_decoupled_model_is_asked_as_that_model_is(
    server: ServerProcess, root: Path, count: int
) -> None:
    answers = []
    for model in ("talk", "relayed"):
        told = Speech(root, f"once.{model}.{count}", count).told
        answers.append(server.ask(infer_request(model, tensor("told", [told], [1], "BYTES"))))
    plain, whole = answers
    assert (whole.status, whole.body) == (plain.status, plain.body.replace(b"'talk'", b"'relayed'"))
    assert plain.status == (501 if count else 500), "it ends with a response of its own, empty"


def test_a_deadline_that_passes_in_the_queue_costs_no_compute(server: ServerProcess, root: Path) -> None:
    x = tensor("x", [[1]], [1, 1])
    with connect(server.port) as plug, calling(server.grpc_address) as client:
        plug.sendall(infer_request("busy", x, id="first"))
        seen = root / "busy" / "seen"
        until(lambda: seen.exists() and seen.read_text() == "first\n", lambda: "the first does not begin")
        late = server.ask(infer_request("busy", x, id="late"))
        assert late.status == 504
        array = given("x", np.ones((1, 1), np.float32))
        with pytest.raises(InferenceServerException, match="DEADLINE_EXCEEDED"):
            client.infer("busy", [array], request_id="too late", client_timeout=0.15)
        until(lambda: counted(server, "busy", "fail") == 2, lambda: "two are late")
        (root / "busy" / "go").touch()
        assert b" 200 " in plug.recv(100)
    client_again = server.ask(infer_request("busy", x, id="second"))
    assert client_again.status == 200
    assert seen.read_text().split() == ["first", "second"]
    assert statistics(server, "busy")["execution_count"] == 2
    assert counted(server, "busy", "success") == 2
    assert counted(server, "busy", "fail") == 2
    metrics = server.ask(get("/metrics")).body.decode().splitlines()
    assert 'trivium_request_failures_total{code="expired",model="busy",version="1"} 2' in metrics


def infer_echo(server: ServerProcess) -> bool:
    return server.ask(infer_request("echo", tensor("x", [[1]], [1, 1]))).status == 200


def statistics(server: ServerProcess, model: str) -> Any:
    return ask(server.port, get(f"/v2/models/{model}/stats")).document["model_stats"][0]


def counted(server: ServerProcess, model: str, what: str) -> int:
    count = statistics(server, model)["inference_stats"][what]["count"]
    assert isinstance(count, int)
    return count


def resident(server: ServerProcess) -> dict[int, int]:
    """Bytes of the server's memory and of each of its workers', by process."""
    processes = [server.process, *server.process.children(recursive=True)]
    return {process.pid: process.memory_info().rss for process in processes if process.is_running()}
