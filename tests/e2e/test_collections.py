"""No garbage collection stops the server for a tenth of a second, however much it holds."""

import json
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures import models
from tests.harness.hostile_input import GREETING
from tests.harness.memory import with_site
from tests.harness.raw_http import HOST, PATIENCE, get, post, read_answer
from tests.harness.server_process import ServerProcess, running, until

MOST_SECONDS = 0.1
MARGIN = 2
"""On a machine whose caches others use as well, the same work takes up to twice the processor time."""

MILLION = """
import gc, sys, time
from trivium.commands.collector import COLLECTIONS
longest, began = 0.0, 0.0
def hear(phase, info):
    global longest, began
    if phase == "start":
        began = time.thread_time()
    else:
        longest = max(longest, time.thread_time() - began)
gc.callbacks.append(hear)
if sys.argv[1] == "short":
    COLLECTIONS.start()
kept = []
for number in range(250_000):
    kept.append({"a": [number], "b": {"c": []}})
if sys.argv[1] == "whole":
    gc.collect()
print(longest)
"""
"""A million live objects that come one after the other. `whole`: what a collection of all of them takes."""


def longest_at_a_million(how: str) -> float:
    done = subprocess.run([sys.executable, "-c", MILLION, how], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.alone
def test_no_collection_goes_through_a_million_objects() -> None:
    whole, longest = longest_at_a_million("whole"), longest_at_a_million("short")
    print(f"all at once: {whole * 1000:.0f} ms; as the server does it: {longest * 1000:.0f} ms at most")
    assert longest < MOST_SECONDS


class Watched:
    """A server that tells how long its collections took."""

    def __init__(self, server: ServerProcess, file: Path) -> None:
        self.server = server
        self._file = file

    def told(self) -> dict[str, Any]:
        self._file.unlink(missing_ok=True)
        self.server.signal(signal.SIGUSR1)
        until(self._file.exists, self.server.said)
        found: dict[str, Any] = json.loads(self._file.read_text())
        return found


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    file = tmp_path / "collections"
    root = tmp_path / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "endless", rows=1, delay_ms=60_000)
    words = ("--max-connections", "30000", "--deferred-answers", "100000", "--drain-timeout", "1")
    variables = {**with_site("collector_watched"), "COLLECTIONS_FILE": str(file)}
    with running(tmp_path / "log", "serve", *words, root, variables=variables) as server:
        yield Watched(server, file)


@contextmanager
def connections(port: int, count: int, said: bytes) -> Iterator[None]:
    """So many that wait, from a hundred addresses."""
    with ExitStack() as stack:
        for number in range(count):
            source = (f"127.0.0.{1 + number % 100}", 0)
            plug = stack.enter_context(
                socket.create_connection((HOST, port), PATIENCE, source_address=source)
            )
            plug.sendall(said)
            plug.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # they leave by a reset
        yield


def defer(server: ServerProcess, count: int) -> None:
    """So many answers are kept."""
    request = post(
        "/predictions/echo",
        b'{"x": [[1, 2, 3, 4]]}',
        b"Content-Type: application/json\r\nx-synchronous: false\r\n",
    )
    with socket.create_connection((HOST, server.port), PATIENCE) as plug:
        for _ in range(count):
            plug.sendall(request)
            assert read_answer(plug).status == 200


@pytest.mark.soak
def test_a_server_that_holds_much_is_never_stopped_for_long(watched: Watched) -> None:
    """Idle connections of both wires, requests that wait and kept answers: as many as descriptors allow."""
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 20_000) - 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + 900, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    server = watched.server
    grpc_port = int(server.grpc_address.rpartition(":")[2])
    waiting = post(
        "/v2/models/endless/infer",
        json.dumps(
            {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [0, 0, 0, 0]}]}
        ).encode(),
    )
    with (
        connections(server.port, most // 4, get("/v2/health/live")),
        connections(server.port, most // 4, waiting),
        connections(grpc_port, most // 4, GREETING),
    ):
        defer(server, 10_000)
        told = watched.told()
    for _ in range(5):
        with connections(server.port, most // 4, get("/v2/health/live")):
            pass
    after = watched.told()
    print(f"{told['objects']} objects: {told}; when most had gone {after}")
    assert max(told["longest"] + after["longest"]) < MARGIN * MOST_SECONDS
    assert after["objects"] < told["objects"] / 2, "what had gone is still there"
