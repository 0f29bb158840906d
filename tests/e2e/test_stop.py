"""SIGTERM and SIGINT whatever hangs: the process is gone, its status says what was cut off, and nothing is left."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.fixtures import models
from tests.harness.onnx_models import looping
from tests.harness.python_models import place
from tests.harness.raw_http import connect, get, infer_request, post, tensor
from tests.harness.server_process import COMMAND, ServerProcess, environment, started, until

SECONDS = 60.0
"""For an end that takes five where the machine has nothing else to do; what hangs here hangs for ten minutes."""

PLUGS: list[socket.socket] = []
"""What the present test has opened and not closed."""

GRACE = "0.5"
SLOW = "time.sleep(600)"
HOLDS_LOCK = "__import__('ctypes').PyDLL(None).sleep(600)"


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while PLUGS:
        PLUGS.pop().close()


def asked(model: str, datatype: str = "INT32", data: int = 1) -> bytes:
    shape = [1] if datatype == "INT64" else [1, 1]
    name = "x" if datatype == "INT64" else "IN"
    return infer_request(model, tensor(name, [data], shape, datatype))


def python(root: Path, execute: str, more: str = "", config: str = "") -> None:
    answers = "return [answer(OUT=of(r, 'IN')) for r in requests]"
    place(
        root, "m", f"    def execute(self, requests):\n        {execute}\n        {answers}\n{more}", config
    )


def in_flight(server: ServerProcess, request: bytes) -> socket.socket:
    plug = connect(server.port)
    PLUGS.append(plug)
    plug.sendall(request)
    time.sleep(0.3)  # the request reaches the model, or waits for it: either way it is in work
    return plug


Act = Callable[[ServerProcess], object]
Scene = Callable[[Path], Act]


def worker_sleeps(root: Path) -> Act:
    python(root, SLOW)
    return lambda server: in_flight(server, asked("m"))


def worker_holds_the_lock(root: Path) -> Act:
    python(root, HOLDS_LOCK)
    return lambda server: in_flight(server, asked("m"))


def worker_is_stopped(root: Path) -> Act:
    python(root, "pass")
    return lambda server: [worker.suspend() for worker in server.workers()]


def worker_is_stopped_at_work(root: Path) -> Act:
    python(root, SLOW)

    def act(server: ServerProcess) -> object:
        plug = in_flight(server, asked("m"))
        for worker in server.workers():
            worker.suspend()
        return plug

    return act


def worker_ignores_the_end(root: Path) -> Act:
    python(root, "pass", "    def finalize(self):\n        time.sleep(600)\n")
    return lambda server: server.ask(asked("m"))


def worker_has_children(root: Path) -> Act:
    python(root, "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=False); " + SLOW)
    return lambda server: in_flight(server, asked("m"))


def onnx_runs_for_ever(root: Path) -> Act:
    folder = root / "counts" / "1"
    folder.mkdir(parents=True)
    looping(folder)
    (root / "counts" / "config.pbtxt").write_text('backend: "onnxruntime"\n' + models.ONE_INSTANCE)
    return lambda server: in_flight(server, asked("counts", "INT64", 2**62))


def thread_sleeps(root: Path) -> Act:
    models.identity(root, "sleeps", delay_ms=600_000, datatype="INT64", dims="1")
    return lambda server: in_flight(server, infer_request("sleeps", tensor("x", [1], [1], "INT64")))


def answers_without_end(root: Path) -> Act:
    execute = (
        "s = requests[0].get_response_sender()\n        while True: s.send(answer(OUT=of(requests[0], 'IN')))"
    )
    python(root, execute, config="model_transaction_policy { decoupled: true }")
    request = post("/v2/models/m/generate_stream", b'{"IN": 1}')
    return lambda server: in_flight(server, request)


def body_never_comes(root: Path) -> Act:
    models.identity(root, "echo", rows=16)
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{"
    return lambda server: in_flight(server, head)


def nobody_reads_the_answer(root: Path) -> Act:
    models.identity(root, "wide", datatype="FP32", dims="-1")
    request = infer_request("wide", tensor("x", [0.5] * 3_000_000, [3_000_000]))

    def act(server: ServerProcess) -> object:
        plug = socket.socket()
        PLUGS.append(plug)
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.connect(("127.0.0.1", server.port))
        plug.sendall(request)
        time.sleep(1.0)
        return plug

    return act


CUT_OFF: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        worker_sleeps, worker_holds_the_lock, worker_is_stopped, worker_is_stopped_at_work, worker_ignores_the_end,
        worker_has_children, onnx_runs_for_ever, thread_sleeps, answers_without_end, body_never_comes,
        nobody_reads_the_answer,
    )
}  # fmt: skip
SIGNALS = [signal.SIGTERM, signal.SIGINT]


@contextlib.contextmanager
def leaving_nothing(folder: Path) -> Iterator[dict[str, str]]:
    """Give an environment whose temporary files go into `folder`, which is empty in the end."""
    scratch = folder / "temporary"
    scratch.mkdir()
    yield dict(environment()) | {"TMPDIR": str(scratch)}
    until(lambda: not list(scratch.glob("trivium-*")), lambda: str(list(scratch.iterdir())), SECONDS)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", CUT_OFF)
def test_it_stops_whatever_hangs(tmp_path: Path, kind: str, number: signal.Signals) -> None:
    root, log = tmp_path / "models", tmp_path / "log"
    root.mkdir()
    act = CUT_OFF[kind](root)
    words = ("serve", "--http-port", "0", "--no-grpc", "--drain-timeout", GRACE, root)
    with leaving_nothing(tmp_path) as variables, started(log, *COMMAND, *words, variables=variables) as child:
        server = ServerProcess(child, log)
        act(server)
        family = server.process.children(recursive=True)
        server.signal(number)
        assert child.wait(SECONDS) == 1, server.said()
        until(lambda: not alive(family), lambda: str(alive(family)), SECONDS)
        assert "Traceback" not in server.said().replace("Traceback (most recent call last) in a handler", "")
        with pytest.raises(ConnectionRefusedError):
            connect(server.port)


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_idle_ends_with_0_at_the_default_grace(tmp_path: Path, number: signal.Signals) -> None:
    root, log = tmp_path / "models", tmp_path / "log"
    python(root, "pass")
    with (
        leaving_nothing(tmp_path) as variables,
        started(log, *COMMAND, "serve", "--http-port", "0", "--no-grpc", root, variables=variables) as child,
    ):
        server = ServerProcess(child, log)
        with connect(server.port):
            server.signal(number)
            assert child.wait(SECONDS) == 0, server.said()


EXECUTE = "    def execute(self, requests):\n        pass\n"
LOADING = {
    "a probe hangs": f"    @staticmethod\n    def auto_complete_config(config):\n        {SLOW}\n{EXECUTE}",
    "an opening hangs": f"    def initialize(self, args):\n        {SLOW}\n{EXECUTE}",
}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("what", LOADING)
def test_it_stops_while_it_loads(tmp_path: Path, what: str, number: signal.Signals) -> None:
    root, log = tmp_path / "models", tmp_path / "log"
    place(root, "m", LOADING[what], "")
    words = ("serve", "--http-port", "0", "--no-grpc", "--drain-timeout", GRACE, root)
    with leaving_nothing(tmp_path) as variables, started(log, *COMMAND, *words, variables=variables) as child:
        process = psutil.Process(child.pid)
        until(lambda: len(process.children(recursive=True)) >= 2, log.read_text)
        time.sleep(0.5)
        family = process.children(recursive=True)
        child.send_signal(number)
        child.wait(SECONDS)
        until(lambda: not alive(family), lambda: str(alive(family)), SECONDS)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_configuration_that_is_a_named_pipe_does_not_make_it_deaf(
    tmp_path: Path, number: signal.Signals
) -> None:
    os.mkfifo(tmp_path / "config.toml")
    words = ("serve", "--config", tmp_path / "config.toml", tmp_path)
    with started(tmp_path / "log", *COMMAND, *words) as child:
        time.sleep(2.0)
        child.send_signal(number)
        assert child.wait(SECONDS) != 0


@pytest.mark.parametrize("number", SIGNALS)
def test_nobody_reads_its_log(tmp_path: Path, number: signal.Signals) -> None:
    root = tmp_path / "models"
    noisy = "[print('x' * 1000) for _ in range(20)]"
    python(root, noisy)
    command = [
        *map(str, COMMAND),
        "serve",
        "--http-port",
        "0",
        "--no-grpc",
        "--drain-timeout",
        GRACE,
        str(root),
    ]
    with leaving_nothing(tmp_path) as variables, (tmp_path / "log").open("wb") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env=variables)
        try:
            server = ServerProcess(child, tmp_path / "log")
            with ThreadPoolExecutor(4) as clients:  # more than a pipe holds, and nobody reads it
                answers = list(clients.map(lambda _: server.ask(asked("m")).status, range(200)))
            assert set(answers) == {200}
            server.signal(number)
            assert child.wait(SECONDS) in (0, 1)
        finally:
            child.kill()
            child.wait()
            assert child.stderr is not None
            child.stderr.close()


def test_a_hangup_opens_logs_anew_and_stops_nothing(tmp_path: Path) -> None:
    root, log, access = tmp_path / "models", tmp_path / "log", tmp_path / "access"
    models.identity(root, "sleeps", delay_ms=3000, datatype="INT64", dims="1")
    words = ("serve", "--http-port", "0", "--no-grpc", "--access-log", access, root)
    with started(log, *COMMAND, *words) as child:
        server = ServerProcess(child, log)
        server.ask(get("/v2/health/live"))
        until(access.exists, server.said)
        access.rename(tmp_path / "access.1")
        server.signal(signal.SIGHUP)
        until(lambda: bool(server.ask(get("/v2/health/live")) and access.exists()), server.said)
        plug = in_flight(server, infer_request("sleeps", tensor("x", [1], [1], "INT64")))
        server.terminate()
        server.signal(signal.SIGHUP)  # while it drains
        assert child.wait(SECONDS) == 0, server.said()
        assert b"200 OK" in plug.recv(4096)


def alive(family: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
