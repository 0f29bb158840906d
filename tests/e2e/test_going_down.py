"""SIGTERM: what is in work is answered, nobody new is let in, and what could not be finished is told so and named."""

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.raw_http import ask, connect, echo_request, get, infer_request, read_answer, tensor
from tests.harness.server_process import serve, until

SLOW = echo_request("slow", [[1, 2, 3, 4]])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    models.identity(root, "slow", rows=1, delay_ms=100)
    models.identity(root, "endless", rows=1, delay_ms=60_000)
    models.add(root, "add")
    return root


@contextlib.contextmanager
def asking(port: int, *requests: bytes) -> Iterator[list[socket.socket]]:
    """Connections, each with one of the requests in work."""
    with contextlib.ExitStack() as stack:
        plugs = [stack.enter_context(connect(port)) for _ in requests]
        for plug, request_bytes in zip(plugs, requests, strict=True):
            plug.sendall(request_bytes)
        assert ask(port, get("/v2/health/live")).status == 200
        yield plugs


def test_under_load(root: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", root) as server, connect(server.port) as idle:
        with asking(server.port, *[SLOW] * 12) as plugs:
            server.terminate()
            until(lambda: _refuses(server.port), lambda: "new connections are let in")
            for plug in plugs:
                answer = read_answer(plug)
                assert answer.status == 200
                assert answer.document["outputs"][0]["data"] == [1, 2, 3, 4]
                assert answer.fields["connection"] == "close"
                assert plug.recv(1) == b""
        assert idle.recv(1) == b"", "an idle connection is closed without a word"
        assert server.wait() == 0
        # The test's own look at its health is one, and so may be those of `until`.
        said = server.await_line(
            re.compile(r"^Stopped: (\d+) requests answered, none cut off\.$", re.MULTILINE)
        )
        assert int(said[1]) >= 13


def _refuses(port: int) -> bool:
    try:
        connect(port).close()
    except ConnectionRefusedError:
        return True
    return False


def test_clients_that_go_on_asking_are_all_answered(root: Path, tmp_path: Path) -> None:
    """On connections that stay open, each asks again as soon as it has been answered, and is never let down in
    the middle: the last answer says that the connection closes.
    """
    request_bytes = infer_request("add", *(tensor(name, [1, 2, 3, 4], [4]) for name in ("a", "b")))

    answered = [0] * 4

    def live(port: int, number: int) -> None:
        with connect(port) as plug:
            for _ in range(1_000_000):
                try:
                    plug.sendall(request_bytes)
                    answer = read_answer(plug)
                except ConnectionError:  # closed while it was idle: between two requests
                    return
                assert answer.status == 200
                answered[number] += 1
                if answer.fields.get("connection") == "close":
                    return
        raise AssertionError("it was never told to go")

    with serve(tmp_path / "log", root) as server, ThreadPoolExecutor(4) as threads:
        lives = [threads.submit(live, server.port, number) for number in range(4)]
        until(lambda: min(answered) > 10, lambda: f"{answered} answers\n{server.said()}")
        server.terminate()
        for life in lives:
            life.result(120)
        assert server.wait() == 0
        assert "none cut off" in server.said()


def test_what_takes_too_long_is_told_so_and_named(root: Path, tmp_path: Path) -> None:
    endless = echo_request("endless", [[1, 2, 3, 4]])
    with serve(tmp_path / "log", root, "--drain-timeout", "1", status=1) as server:
        with asking(server.port, endless, SLOW, endless) as (first, slow, last):
            began = time.monotonic()
            server.terminate()
            assert read_answer(slow).status == 200
            for plug in (first, last):
                answer = read_answer(plug)
                assert answer.status == 503
                assert "went down before this request was done" in answer.error
            assert server.wait() == 1
            assert time.monotonic() - began >= 1
    assert server.said().count("cut off: POST /v2/models/endless/infer") == 2
    assert "Stopped: 2 requests answered, 2 cut off." in server.said()
