"""SIGKILL of the server under load: nothing of it lives on, and the next one sweeps what it left and serves."""

import contextlib
import threading
from pathlib import Path

import psutil
import pytest
from tests.fixtures import models
from tests.harness.python_models import place
from tests.harness.raw_http import ask, echo_request
from tests.harness.server_process import COMMAND, ServerProcess, environment, living, started, until

KINDS = {
    "sleeps": "time.sleep(600)",
    "holds_the_lock": "__import__('ctypes').PyDLL(None).sleep(600)",
    "has_children": "[__import__('subprocess').Popen(['sleep', '600']) for _ in range(3)]; time.sleep(600)",
    "leaves_its_group": "__import__('subprocess').Popen(['sleep', '600'], process_group=0); time.sleep(600)",
    "leaves_its_session": "__import__('subprocess').Popen(['sleep', '600'], start_new_session=True); time.sleep(600)",
    "leaves_its_family": "os.system('setsid sleep 600 &'); time.sleep(600)",
    "deaf": "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(600)",
    "stopped": "os.kill(os.getpid(), 19)",
}
CHILDREN = 6
"""Processes that these start altogether."""
ENDS = (
    'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
)


def lay_out(root: Path) -> None:
    models.identity(root, "echo", rows=16)
    for name, act in KINDS.items():
        place(root, name, f"    def execute(self, requests):\n        {act}\n", "", ENDS)


def body(name: str) -> bytes:
    text = b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1,1],"data":[1]}]}'
    head = f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def begin(port: int, name: str) -> threading.Thread:
    """Ask a model that does not answer, in a thread that ends with the connection."""

    def go() -> None:
        with contextlib.suppress(OSError, AssertionError, ValueError):
            ask(port, body(name))

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    return thread


def rounds(folder: Path, count: int) -> None:
    root, scratch = folder / "models", folder / "temporary"
    scratch.mkdir()
    lay_out(root)
    variables = dict(environment()) | {"TMPDIR": str(scratch)}
    words = ("serve", "--http-port", "0", "--no-grpc", root)
    for number in range(count):
        log = folder / f"log{number}"
        with started(log, *COMMAND, *words, variables=variables) as child:
            server = ServerProcess(child, log)
            assert ask(server.port, echo_request("echo", [[1, 2, 3, 4]])).status == 200
            assert len(list(scratch.glob("trivium-*"))) == 1, "what the last one left is still there"
            threads = [begin(server.port, name) for name in KINDS]
            until(
                lambda: (
                    len(living(scratch)) >= len(KINDS) + 1 + 1 + CHILDREN
                ),  # the guard, the server, and workers
                server.said,
            )
            child.kill()
            until(lambda: not living(scratch), lambda: str(living(scratch)), 30.0)
            for thread in threads:
                thread.join(60)
    until(lambda: not list(scratch.glob("trivium-*")), lambda: str(list(scratch.iterdir())))


def test_nothing_outlives_a_server_that_was_killed(tmp_path: Path) -> None:
    rounds(tmp_path, 10)


@pytest.mark.soak
def test_nothing_outlives_a_hundred(tmp_path: Path) -> None:
    rounds(tmp_path, 100)


def left(scratch: Path) -> list[psutil.Process]:
    return [process for process in living(scratch) if process.name() == "sleep"]


def test_nothing_outlives_the_model_that_started_it(tmp_path: Path) -> None:
    root, scratch = tmp_path / "models", tmp_path / "temporary"
    scratch.mkdir()
    models.identity(root, "echo", rows=16)
    leaves = "os.system('setsid sleep 600 &'); __import__('subprocess').Popen(['sleep', '600'], start_new_session=True)"
    answers = "return [answer(OUT=of(r, 'IN')) for r in requests]"
    place(root, "m", f"    def execute(self, requests):\n        {leaves}\n        {answers}\n", "", ENDS)
    variables = dict(environment()) | {"TMPDIR": str(scratch)}
    words = ("serve", "--http-port", "0", "--no-grpc", root)
    with started(tmp_path / "log", *COMMAND, *words, variables=variables) as child:
        server = ServerProcess(child, tmp_path / "log")
        for change in (b"load", b"unload"):  # a load replaces the worker
            assert ask(server.port, body("m")).status == 200
            until(
                lambda: len(left(scratch)) == 2, lambda: str(living(scratch))
            )  # the shell's may not be one yet
            head = b"POST /v2/repository/models/m/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
            assert ask(server.port, head % change).status == 200
            until(lambda: not left(scratch), lambda: str(living(scratch)))
        server.terminate()
        assert server.wait() == 0, server.said()
    assert not living(scratch)
