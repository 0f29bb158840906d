"""Clients that behave strangely, to the whole server: too slow, too many, gone too early, more than it can do.

The server's time-outs are short here, so that a test need not wait for them long.
"""

import json
import resource
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.raw_http import Answer, ask, connect, echo_request, get, infer, post, read_answer, reset
from tests.harness.server_process import GROWTH, ServerProcess, serve, until, withstanding

USUAL_DESCRIPTORS = 1024
"""The soft limit that most systems start a process with."""

IDLE = 2000
REQUESTS = 60
SHORT_QUEUE, SHORT_RUN = 8, 0.3
TIME_OUTS = (
    "--header-timeout",
    "1",
    "--body-timeout",
    "1",
    "--write-timeout",
    "1",
    "--slowest-rate",
    "1000000",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("clients")
    bound = f"dynamic_batching {{ default_queue_policy {{ max_queue_size: {SHORT_QUEUE} }} }}\n"
    root = folder / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "wide", dims="-1")
    models.identity(root, "slow", dims="-1", delay_ms=1000)
    models.identity(root, "short", rows=1, delay_ms=SHORT_RUN * 1000, extra=models.ONE_INSTANCE + bound)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (USUAL_DESCRIPTORS, hard))
    try:
        with serve(folder / "log", root, *TIME_OUTS) as server:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            yield server
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def wide_request(model: str, count: int) -> bytes:
    """FP32[count] by the binary extension, to be answered in the same form."""
    parameters = {"binary_data_size": 4 * count}
    entry = {"name": "x", "shape": [count], "datatype": "FP32", "parameters": parameters}
    text = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
    fields = b"Inference-Header-Content-Length: %d\r\n" % len(text)
    return post(f"/v2/models/{model}/infer", text + bytes(4 * count), fields)


# -- too slow ----------------------------------------------------------------------------------------------


def test_one_byte_per_second(server: ServerProcess) -> None:
    small, large = echo_request("echo", [[1, 2, 3, 4]]), wide_request("wide", 100_000)
    cuts = [(small, 6), (small, 40), (small, len(small) - 30), (large, 100_000)]
    with withstanding(server), ThreadPoolExecutor(len(cuts)) as threads:
        drips = [threads.submit(_drip, server.port, whole[:cut], whole[cut:]) for whole, cut in cuts]
        for answer, sent, size in (drip.result(120) for drip in drips):
            assert answer.status == 408
            assert "did not come in time" in answer.error
            assert sent < size, "it waited for all of it"


def _drip(port: int, start: bytes, rest: bytes) -> tuple[Answer, int, int]:
    """A byte a second until there is an answer; how many of how many were sent."""
    sent = 0
    with connect(port) as plug:
        plug.sendall(start)
        for byte in rest:
            if select.select([plug], [], [], 1)[0]:
                break
            plug.sendall(bytes([byte]))
            sent += 1
        return read_answer(plug), sent, len(rest)


def test_clients_that_never_read(server: ServerProcess) -> None:
    """Each is left with a few megabytes of answers in the system's buffers, and then given up."""
    request_bytes = wide_request("wide", 500_000)
    before = server.footprint().memory
    with withstanding(server), ThreadPoolExecutor(10) as threads:
        lives = [threads.submit(_never_read, server.port, request_bytes) for _ in range(10)]
        assert max(life.result(120) for life in lives) < REQUESTS, "they were answered without end"
        assert server.footprint().memory < before + GROWTH


def _never_read(port: int, request_bytes: bytes) -> int:
    """Requests sent until the server had enough and cut the connection."""
    with socket.socket() as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.settimeout(60)
        plug.connect(("127.0.0.1", port))
        for count in range(REQUESTS):
            try:
                plug.sendall(request_bytes)
            except (BrokenPipeError, ConnectionResetError):
                return count
    return REQUESTS


# -- too many ----------------------------------------------------------------------------------------------


def test_two_thousand_idle_connections(server: ServerProcess) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < IDLE + 100:
        pytest.skip(f"this machine allows a process {hard} descriptors, and {IDLE + 100} are needed")
    before = server.footprint()
    with withstanding(server):
        plugs = [connect(server.port) for _ in range(IDLE)]
        until(
            lambda: server.footprint().descriptors >= before.descriptors + IDLE, lambda: "not all were let in"
        )
        used, began = sum(server.process.cpu_times()[:2]), time.monotonic()
        time.sleep(1)
        share = (sum(server.process.cpu_times()[:2]) - used) / (time.monotonic() - began)
        assert share < 0.5, "they cost half a processor"
        assert server.footprint().memory < before.memory + GROWTH
        assert infer(server.port, "echo", [[5, 6, 7, 8]]) == [[5, 6, 7, 8]]
        plugs[IDLE // 2].sendall(get("/v2/health/live"))
        assert read_answer(plugs[IDLE // 2]).status == 200
        for plug in plugs:
            plug.close()


def test_connections_beyond_the_limit(repository: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", repository / "echo", "--max-connections", "10") as server:
        plugs = [connect(server.port) for _ in range(10)]
        for plug in plugs:  # they are in once they have been answered
            plug.sendall(get("/v2/health/live"))
            assert read_answer(plug).status == 200
        with connect(server.port) as late:
            answer = read_answer(late)
        assert answer.status == 503
        assert "10 connections are open" in answer.error
        for plug in plugs:
            plug.sendall(echo_request("echo", [[1, 2, 3, 4]]))
            assert read_answer(plug).status == 200
            plug.close()
        until(server.is_ready, lambda: "it lets nobody in again")


def test_a_full_queue_says_when_to_come_back(server: ServerProcess) -> None:
    request_bytes = echo_request("short", [[1, 2, 3, 4]])
    assert server.ask(request_bytes).status == 200
    with withstanding(server), ThreadPoolExecutor(SHORT_QUEUE + 12) as threads:
        asked = [threads.submit(ask, server.port, request_bytes) for _ in range(SHORT_QUEUE + 12)]
        answers = [life.result(120) for life in asked]
        refused = [answer for answer in answers if answer.status == 503]
        assert len(answers) - len(refused) >= SHORT_QUEUE
        assert all(answer.status in (200, 503) for answer in answers)
        assert refused, "the queue had no bound"
        for answer in refused:
            assert "queue of model 'short' is full" in answer.error
            assert int(answer.fields["retry-after"]) >= int(SHORT_QUEUE * SHORT_RUN), answer
        assert server.ask(request_bytes).status == 200


# -- gone too early ----------------------------------------------------------------------------------------


def test_a_thousand_cancelled_requests(server: ServerProcess) -> None:
    """Half of them have bodies large enough to be received into lent buffers."""
    few, many = wide_request("slow", 4), wide_request("slow", 100_000)
    before = _counts(server)
    with withstanding(server):
        for _ in range(10):
            plugs = [connect(server.port) for _ in range(100)]
            for number, plug in enumerate(plugs):
                plug.sendall(few if number % 2 else many)
            assert server.ask(get("/v2/health/live")).status == 200
            for plug in plugs:
                reset(plug)
        assert server.ask(few).status == 200
    succeeded, failed = (after - count for after, count in zip(_counts(server), before, strict=True))
    assert failed > 800, "the requests did not get as far as the queue"
    assert succeeded < 200, "it ran what nobody waited for"


def _counts(server: ServerProcess) -> tuple[int, int]:
    (version,) = server.ask(get("/v2/models/slow/stats")).document["model_stats"]
    statistics = version["inference_stats"]
    return statistics["success"]["count"], statistics["fail"]["count"]
