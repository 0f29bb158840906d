"""Wrong requests to the whole server: the right status, a message that teaches, nothing left of them; and odd
requests that are right. What needs a client that behaves strangely over time is in `test_withstand_clients`.
"""

import json
import math
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.wrong_requests import CASES, LIMIT
from tests.fixtures import models
from tests.harness.raw_http import (
    Answer,
    connect,
    echo_request,
    infer_request,
    post,
    read_answer,
    reset,
    tensor,
)
from tests.harness.server_process import ServerProcess, serve, withstanding


@pytest.fixture(scope="module")
def server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("withstand")
    point = models.bare_add(folder, "point", [])
    with serve(folder / "log", repository, point, "--max-body-bytes", str(LIMIT)) as server:
        yield server


@pytest.mark.parametrize(("request_bytes", "status", "words"), CASES.values(), ids=CASES)
def test_what_is_wrong_is_said(server: ServerProcess, request_bytes: bytes, status: int, words: str) -> None:
    answer = server.ask(request_bytes)
    assert (answer.status, words in answer.error) == (status, True), answer
    assert len(answer.error) < 5000
    assert server.is_ready()


def test_all_of_them_many_times_over_leave_nothing(server: ServerProcess) -> None:
    cases = list(CASES.values()) * 20
    with withstanding(server), ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(server.ask, (request_bytes for request_bytes, _, _ in cases)))
    assert [answer.status for answer in answers] == [status for _, status, _ in cases]


def test_right_and_wrong_on_one_connection(server: ServerProcess) -> None:
    """A request that can be told apart from the next one does not cost its neighbours the connection."""
    kept = [case for name, case in CASES.items() if not name.startswith("http")]
    with withstanding(server), connect(server.port) as plug:
        for number, (request_bytes, status, _) in enumerate(kept):
            plug.sendall(request_bytes + echo_request("echo", [[number, 0, 0, 0]]))
            assert read_answer(plug).status == status
            assert read_answer(plug).document["outputs"][0]["data"] == [number, 0, 0, 0]


@pytest.mark.parametrize("size", [100, LIMIT - 1])
def test_bodies_cut_short(server: ServerProcess, size: int) -> None:
    half = post("/v2/models/echo/infer", bytes(size))[: -size // 2]
    with withstanding(server):
        for _ in range(100):
            with connect(server.port) as plug:
                plug.sendall(half)
                plug.shutdown(socket.SHUT_WR)
                answer = read_answer(plug)
                assert answer.status == 400
                assert "cut short" in answer.error
            plug = connect(server.port)
            plug.sendall(half)
            reset(plug)


# -- odd, but right ----------------------------------------------------------------------------------------


def outputs(answer: Answer) -> list[Any]:
    assert answer.status == 200, answer
    return [output["data"] for output in answer.document["outputs"]]


def test_numbers_that_are_none(server: ServerProcess) -> None:
    (data,) = outputs(
        server.ask(infer_request("echo", tensor("x", [math.nan, math.inf, -math.inf, 0], [1, 4])))
    )
    assert math.isnan(data[0])
    assert data[1:] == [math.inf, -math.inf, 0]


def test_a_number_beyond_the_datatype_is_infinite(server: ServerProcess) -> None:
    (data,) = outputs(server.ask(infer_request("echo", tensor("x", [1e39, -(10**300), 1e-50, 1], [1, 4]))))
    assert data == [math.inf, -math.inf, 0, 1]


def test_the_greatest_integers(server: ServerProcess) -> None:
    a, b = ([2**31 - 1, -(2**31), 0, 1], [0, 0, 2**31 - 1, -2])
    inputs = (tensor(name, data, [4], "INT32") for name, data in (("a", a), ("b", b)))
    (data,) = outputs(server.ask(infer_request("sum_and_difference", *inputs, outputs=[{"name": "sum"}])))
    assert data == [2**31 - 1, -(2**31), 2**31 - 1, -1]


def test_tensors_without_dimensions(server: ServerProcess) -> None:
    two = tensor("a", [2.5], []), tensor("b", [4], [])
    answer = server.ask(infer_request("point", *two))
    assert outputs(answer) == [[6.5]]
    assert answer.document["outputs"][0]["shape"] == []
    answer = server.ask(infer_request("point", two[0] | {"data": 2.5}, two[1]))
    assert answer.status == 400
    assert "Put the elements into brackets" in answer.error


def test_tensors_without_elements(server: ServerProcess) -> None:
    answer = server.ask(infer_request("bytes", tensor("x", [], [0], "BYTES")))
    assert outputs(answer) == [[]]
    assert answer.document["outputs"][0]["shape"] == [0]


def test_large_bodies_that_are_right(server: ServerProcess) -> None:
    """JSON of this size is decoded in a thread, binary data is received in place."""
    texts = ["x" * 30_000] * 20
    with withstanding(server), ThreadPoolExecutor(8) as threads:
        request_bytes = infer_request("bytes", tensor("x", texts, [20], "BYTES"))
        for answer in threads.map(server.ask, [request_bytes] * 100):
            assert outputs(answer) == [texts]


def test_extra_keys_are_no_fault(server: ServerProcess) -> None:
    document = {"inputs": [tensor("x", [1, 2, 3, 4], [1, 4]) | {"note": {"any": 1}}], "comment": [None]}
    answer = server.ask(post("/v2/models/echo/infer", json.dumps(document).encode()))
    assert outputs(answer) == [[1, 2, 3, 4]]
