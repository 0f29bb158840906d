"""Handlers that misbehave, through HTTP: whoever asked them is told what happened, and nobody else notices."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.fixtures import models
from tests.harness.handlers import (
    ENDLESS,
    HANGS,
    IMPORTS_FOR_LONG,
    IN_THE_BACKGROUND,
    ODD,
    VENDORED,
    djl,
    triton,
)
from tests.harness.raw_http import Answer, ask, connect, get, infer_request, post, read_answer, reset, tensor
from tests.harness.server_process import ServerProcess, serve_handlers, until, withstanding

MEMORY = 128 * 2**20
"""Bytes by which a server may grow, whatever its handlers do."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("handlers")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    root = folder / "models"
    models.identity(root, "echo", rows=16)
    triton(root, "odd", ODD)
    triton(root, "background", IN_THE_BACKGROUND)
    triton(root, "merged", ODD, rows=8)
    config = root / "merged" / "config.pbtxt"
    config.write_text(config.read_text() + "dynamic_batching { max_queue_delay_microseconds: 100000 }\n")
    for version in (1, 2):
        place = triton(root, f"needs_{version}", VENDORED) / "vendored"
        place.mkdir()
        (place / "__init__.py").write_text(f"VERSION = {version}\n")
    endless = djl(folder, "endless", ENDLESS)
    hangs = djl(folder, "hangs", HANGS, "option.predict_timeout=1\n")
    with serve_handlers(folder / "log", root, endless, hangs) as serving:
        yield serving


def request(model: str, act: str = "", number: float = 1) -> bytes:
    return infer_request(model, tensor("x", [number, 2, 3, 4], [1, 4]), id=act)


def ask_for(server: ServerProcess, act: str, model: str = "odd") -> Answer:
    """Its answer, which comes within ten seconds; afterwards the model serves."""
    answer = server.ask(request(model, act))
    assert_serves(server, model)
    return answer


def assert_serves(server: ServerProcess, model: str = "odd") -> None:
    answer = server.ask(request(model))
    assert answer.status == 200, answer
    assert answer.document["outputs"][0]["data"] == [1, 2, 3, 4]


@contextlib.contextmanager
def alone(server: ServerProcess) -> Iterator[None]:
    """A scene in which nobody else is disturbed, and no worker but its own ends."""
    assert_serves(server)
    assert_serves(server, "merged")
    before = {child.pid for child in server.workers()}
    memory = server.footprint().memory
    with withstanding(server):
        yield
        until(lambda: len(server.workers()) == len(before), lambda: str(server.workers()))
    after = {child.pid for child in server.workers()}
    assert len(before - after) <= 1
    assert server.footprint().memory < memory + MEMORY


REFUSED = {
    "raise": (500, "ValueError: as told"),
    "error": (500, "as told"),
    "too_many": (500, "InferenceResponse(s) size is:2"),
    "no_list": (500, "Expected a list in the execute return"),
    "no_response": (500, "Expected an 'InferenceResponse' object"),
    "nothing": (500, ""),
    "no_tensor": (500, ""),
    "memory": (507, "not enough"),
}


@pytest.mark.parametrize("act", REFUSED)
def test_what_goes_wrong_in_it_is_told(server: ServerProcess, act: str) -> None:
    status, words = REFUSED[act]
    with alone(server):
        workers = {child.pid for child in server.workers()}
        answer = ask_for(server, act)
        assert (answer.status, words in answer.error) == (status, True), answer
        assert {child.pid for child in server.workers()} == workers, "that is no reason to end it"


DEADLY = {
    "exit": ("ended by itself with status 3. Its last words: ", "I leave"),
    "sys_exit": ("ended by itself with status 1. Its last words: ", "no more"),
    "kill": ("was killed by SIGKILL",),
    "crash": ("was killed by SIGSEGV",),
    "close": ("perhaps because user code had closed",),
}


@pytest.mark.parametrize("act", DEADLY)
def test_how_it_died_is_told(server: ServerProcess, act: str) -> None:
    with alone(server):
        answer = ask_for(server, act)
        assert answer.status == 500
        assert "An instance of model 'odd' died. Worker odd_0" in answer.error
        assert all(words in answer.error for words in DEADLY[act]), answer.error
        assert len(answer.error) < 10_000


def test_a_thread_of_all_its_coroutines_takes_the_worker_along(server: ServerProcess) -> None:
    with alone(server):
        answer = ask_for(server, "leave", "background")
        assert answer.status == 500
        assert "An instance of model 'background' died" in answer.error
        assert "the background has left" in answer.error


@pytest.mark.parametrize(
    "act", ["flood", "errors", "long_line", "fork", "child", "threads", "leak", "no_output"]
)
def test_bad_manners_are_answered_for_all_that(server: ServerProcess, act: str) -> None:
    with alone(server):
        answer = ask_for(server, act)
        assert answer.status == 200, answer
        ask_for(server, "kill")  # what it hoards goes with it


def test_a_flood_does_not_fill_the_log(server: ServerProcess) -> None:
    before = len(server.said())
    ask_for(server, "errors")
    ask_for(server, "kill")
    until(lambda: "lines more were not logged" in server.said()[before:], server.said)
    assert 5_000 < len(server.said()) - before < 50_000


def test_what_it_started_does_not_outlive_it(server: ServerProcess) -> None:
    ask_for(server, "child")
    (left,) = [p for p in server.workers(recursive=True) if p.name() == "sleep"]
    ask_for(server, "kill")
    until(lambda: not left.is_running() or left.status() == psutil.STATUS_ZOMBIE, lambda: str(left))


def test_a_batch_is_told_together_and_the_next_one_is_not(server: ServerProcess) -> None:
    with alone(server), ThreadPoolExecutor(6) as threads:
        requests = [request("merged", "raise" if n == 0 else "", n) for n in range(6)]
        answers = list(threads.map(server.ask, requests))
        assert answers[0].status == 500
        for number, answer in enumerate(answers):
            if answer.status == 200:
                assert answer.document["outputs"][0]["data"][0] == number
            else:
                assert "ValueError: as told" in answer.error
        assert_serves(server, "merged")


def test_a_client_that_leaves_takes_nobody_along(server: ServerProcess) -> None:
    with alone(server):
        plugs = [connect(server.port) for _ in range(4)]
        for plug in plugs:
            plug.sendall(request("odd", "slow"))
        for plug in plugs[:3]:
            reset(plug)
        with plugs[3] as last:
            assert read_answer(last).status == 200
        assert_serves(server)


def test_what_hangs_is_ended_by_its_deadline(server: ServerProcess) -> None:
    with alone(server):
        answer = server.ask(post("/predictions/hangs", b"hang"))
        assert answer.status >= 500
        assert b"was not done with a batch after 1 s, the run deadline" in answer.body
        answer = server.ask(post("/predictions/hangs", b"go on"))
        assert (answer.status, answer.body) == (200, b"well")


def test_a_stream_to_a_client_that_has_left_is_stopped(server: ServerProcess, folder: Path) -> None:
    stopped = folder / "endless" / "stopped"
    stopped.unlink(missing_ok=True)
    with alone(server):
        plug = connect(server.port)
        plug.sendall(post("/predictions/endless", b"go"))
        came = b""
        while came.count(b"more") < 2000:
            came += plug.recv(2**16)
        assert b"Transfer-Encoding: chunked" in came
        assert not stopped.exists()
        reset(plug)
        until(stopped.exists, lambda: "it goes on and on")


def test_a_client_that_reads_nothing_holds_up_nobody(server: ServerProcess, folder: Path) -> None:
    stopped = folder / "endless" / "stopped"
    stopped.unlink(missing_ok=True)
    with alone(server), connect(server.port) as plug:
        plug.sendall(post("/predictions/endless", b"go"))
        for _ in range(10):
            assert_serves(server)
            time.sleep(0.1)
        assert server.footprint().memory < 2**30
        reset(plug)
        until(stopped.exists, lambda: "it goes on and on")


def test_two_versions_of_a_library_side_by_side(server: ServerProcess) -> None:
    for version in (1, 2):
        answer = server.ask(request(f"needs_{version}"))
        assert answer.document["outputs"][0]["data"] == [version] * 4


def test_imports_that_take_long_hold_up_nobody(tmp_path: Path) -> None:
    root = tmp_path / "models"
    models.identity(root, "echo", rows=16)
    triton(root, "late", IMPORTS_FOR_LONG)
    began = time.monotonic()
    with serve_handlers(tmp_path / "log", root) as serving:
        assert time.monotonic() - began > 3
        with withstanding(serving):
            answer = ask(serving.port, request("late"))
            assert answer.document["outputs"][0]["data"] == [3] * 4
            (worker,) = serving.workers()
            worker.kill()
            assert ask(serving.port, get("/v2/health/live")).status == 200
            plug = connect(serving.port)
            plug.sendall(request("late"))
            assert read_answer(plug).status == 200  # once it has been imported again
            plug.close()
