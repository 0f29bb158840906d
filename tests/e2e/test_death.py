"""SIGKILL of the server under load: nothing of it lives on, and the next one sweeps what it left and serves."""

import contextlib
import threading
from pathlib import Path

import psutil
import pytest
from tests.fixtures import models
from tests.harness.python_models import place
from tests.harness.raw_http import ask, echo_request
from tests.harness.server_process import COMMAND, ServerProcess, environment, started, until

KINDS = {
    "sleeps": "time.sleep(600)",
    "holds_the_lock": "__import__('ctypes').PyDLL(None).sleep(600)",
    "has_children": "[__import__('subprocess').Popen(['sleep', '600']) for _ in range(3)]; time.sleep(600)",
    "leaves_its_group": "__import__('subprocess').Popen(['sleep', '600'], process_group=0); time.sleep(600)",
    "deaf": "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(600)",
    "stopped": "os.kill(os.getpid(), 19)",
}
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


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


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
                lambda server=server: len(server.process.children(recursive=True)) >= len(KINDS) + 5,
                server.said,
            )
            family = server.process.children(recursive=True)
            child.kill()
            until(lambda family=family: not any(map(lives, family)), lambda family=family: str(family), 30.0)
            for thread in threads:
                thread.join(60)
    until(lambda: not list(scratch.glob("trivium-*")), lambda: str(list(scratch.iterdir())))


def test_nothing_outlives_a_server_that_was_killed(tmp_path: Path) -> None:
    rounds(tmp_path, 10)


@pytest.mark.soak
def test_nothing_outlives_a_hundred(tmp_path: Path) -> None:
    rounds(tmp_path, 100)
