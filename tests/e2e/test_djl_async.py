"""Asynchronous DJL handlers over the real server: many requests in work in one worker, and what each is owed."""

import json
import os
import re
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from tests.harness.server_process import ServerProcess, serve_handlers, until

HANDLER = """
import asyncio, json, os
from djl_python import Output

events, seen = {}, {"now": 0, "peak": 0, "cancelled": 0, "made": 0}

def event(name):
    return events.setdefault(name, asyncio.Event())

async def handle(inputs):
    if inputs.is_empty():
        return None
    seen["now"] += 1
    seen["peak"] = max(seen["peak"], seen["now"])
    try:
        return await act(json.loads(inputs.get_as_string("data")))
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    finally:
        seen["now"] -= 1

async def act(told):
    if "sets" in told:
        event(told["sets"]).set()
    if "waits" in told:
        await event(told["waits"]).wait()
    if "pieces" in told:
        return pieces(told)
    if "meets" in told:  # goes on when so many are here
        while seen["peak"] < told["meets"]:
            await asyncio.sleep(0.002)
    if "file" in told:
        open("%s.%d" % (told["file"], told["number"]), "w").close()
    while "file" in told and not os.path.exists(told["file"]):
        await asyncio.sleep(0.002)
    if "dies" in told:
        os._exit(3)
    return Output().add_as_json(dict(seen, pid=os.getpid(), number=told.get("number")))

async def pieces(told):
    for number in range(told["pieces"]):
        if "steps" in told:
            await event("step %d" % number).wait()
        last = number == told["pieces"] - 1
        seen["made"] += 1
        yield Output().add(Output.binary_encode({"data": told["text"] * told.get("times", 1), "last": last}))
"""
PLAIN = """
import json, os, time
from djl_python import Output
seen = {"now": 0, "peak": 0}
def handle(inputs):
    if inputs.is_empty():
        return None
    seen["now"] += 1
    seen["peak"] = max(seen["peak"], seen["now"])
    time.sleep(0.01)
    seen["now"] -= 1
    return Output().add_as_json(dict(seen, number=json.loads(inputs.get_as_string("data"))["number"]))
"""
ONE = "engine=Python\nminWorkers=1\nmaxWorkers=1\n"


def lay_out(root: Path, name: str, code: str, more: str = "") -> None:
    model = root / name
    model.mkdir(parents=True)
    (model / "model.py").write_text(code)
    (model / "serving.properties").write_text(ONE + more)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("async")
    root = folder / "models"
    lay_out(root, "many", HANDLER, "option.async_mode=true\n")
    lay_out(root, "few", HANDLER, "trivium_in_flight=8\n")
    lay_out(root, "brief", HANDLER, "option.predict_timeout=2\n")
    lay_out(root, "plain", PLAIN)
    with serve_handlers(folder / "log", root) as running:
        yield running


def begin(server: ServerProcess, model: str, **told: object) -> HTTPConnection:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("POST", f"/predictions/{model}", json.dumps(told))
    return connection


def ask(server: ServerProcess, model: str, **told: object) -> tuple[int, dict[str, object]]:
    """Status and document of an answer."""
    with closing(begin(server, model, **told)) as connection:
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def together(
    count: int, one: Callable[[int], tuple[int, dict[str, object]]]
) -> list[tuple[int, dict[str, object]]]:
    with ThreadPoolExecutor(count) as clients:
        return list(clients.map(one, range(count)))


def seen(server: ServerProcess, model: str, key: str) -> object:
    return ask(server, model)[1][key]


def test_a_hundred_requests_are_in_one_worker_at_once(server: ServerProcess) -> None:
    answers = together(100, lambda number: ask(server, "many", number=number, meets=100))
    assert [status for status, _ in answers] == [200] * 100
    assert [document["number"] for _, document in answers] == list(range(100))
    assert len({document["pid"] for _, document in answers}) == 1
    assert seen(server, "many", "peak") == 100


def test_the_bound_is_kept_and_the_rest_wait_their_turn(server: ServerProcess) -> None:
    answers = together(40, lambda number: ask(server, "few", number=number, meets=8))
    assert [document["number"] for _, document in answers] == list(range(40))
    assert seen(server, "few", "peak") == 8


def test_a_plain_handler_gets_one_request_at_a_time(server: ServerProcess) -> None:
    answers = together(20, lambda number: ask(server, "plain", number=number))
    assert [(status, document["number"], document["peak"]) for status, document in answers] == [
        (200, number, 1) for number in range(20)
    ]


def test_a_stream_reaches_its_client_piece_by_piece(server: ServerProcess) -> None:
    with closing(begin(server, "many", pieces=4, text="x", steps=True)) as connection:
        answer = None
        for number in range(4):
            assert ask(server, "many", sets=f"step {number}")[0] == 200
            answer = answer or connection.getresponse()
            assert answer.read(1) == b"x"
        assert isinstance(answer, HTTPResponse)
        assert (answer.status, answer.getheader("Transfer-Encoding"), answer.read()) == (200, "chunked", b"")


def test_who_leaves_cancels_its_own_request(server: ServerProcess) -> None:
    before = seen(server, "many", "cancelled")
    assert isinstance(before, int)
    waiting = [begin(server, "many", waits="leaving", number=number) for number in range(5)]
    until(lambda: seen(server, "many", "now") == 6, server.said)
    for connection in waiting[:3]:
        assert isinstance(connection.sock, socket.socket)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()  # a reset: who only ends its own side may still read
    until(lambda: seen(server, "many", "cancelled") == before + 3, server.said)
    assert ask(server, "many", sets="leaving")[0] == 200
    for connection in waiting[3:]:
        assert connection.getresponse().status == 200
        connection.close()


def test_a_reader_that_does_not_read_holds_nobody_else(server: ServerProcess) -> None:
    size, count = 2**16, 1000
    before = seen(server, "many", "made")
    assert isinstance(before, int)
    with closing(begin(server, "many", pieces=count, text="x", times=size)) as connection:
        assert isinstance(connection.sock, socket.socket)
        for number in range(50):
            assert ask(server, "many", number=number)[1]["number"] == number
        made = seen(server, "many", "made")
        assert isinstance(made, int)
        assert made - before < count  # what it makes waits for its reader
        assert connection.getresponse().read() == b"x" * size * count


def test_the_worker_is_killed_with_many_in_work_and_each_is_answered_once(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Eight are in work and fall with the worker; the others wait in the queue, and the next one serves them."""
    victim, gate = seen(server, "few", "pid"), tmp_path / "gate"
    assert isinstance(victim, int)
    with ThreadPoolExecutor(24) as clients:
        waiting = [clients.submit(ask, server, "few", file=str(gate), number=number) for number in range(24)]
        until(lambda: len(list(tmp_path.iterdir())) == 8 and pending(server, "few") == 16, server.said)
        os.kill(victim, signal.SIGKILL)
        until(lambda: sum(each.done() for each in waiting) == 8, server.said)
        lost = [each for each in waiting if each.done()]
        until(lambda: pending(server, "few") == 8, server.said)
        gate.touch()
        served = [each.result(timeout=60) for each in waiting if each not in lost]
    for status, document in [each.result() for each in lost]:
        assert status == 503
        assert "was killed by SIGKILL" in str(document["message"])
    assert [status for status, _ in served] == [200] * 16
    assert len({document["pid"] for _, document in served} - {victim}) == 1


def test_a_handler_that_ends_its_process_fails_what_was_in_work(server: ServerProcess) -> None:
    with closing(begin(server, "many", waits="death")) as neighbour:
        until(lambda: seen(server, "many", "now") == 2, server.said)
        status, document = ask(server, "many", dies=True)
        assert (status, "ended by itself with status 3" in str(document["message"])) == (503, True)
        assert neighbour.getresponse().status == 503
    assert seen(server, "many", "now") == 1


def test_one_that_hangs_costs_its_worker_while_its_neighbours_are_answered(server: ServerProcess) -> None:
    pid = seen(server, "brief", "pid")
    with closing(begin(server, "brief", waits="for ever")) as hung, ThreadPoolExecutor(1) as clients:
        answer = clients.submit(hung.getresponse)
        answered = 0
        while not answer.done():
            status, document = ask(server, "brief")
            answered += status == 200 and document["pid"] == pid
        assert answer.result().status == 503
        assert "not done with a request after 2 s" in json.loads(answer.result().read())["message"]
    assert answered > 1
    assert seen(server, "brief", "pid") != pid


def test_statistics_are_by_item(server: ServerProcess) -> None:
    before = statistics(server)
    together(12, lambda number: ask(server, "many", number=number))
    until(lambda: statistics(server)["execution_count"] == before["execution_count"] + 12, server.said)
    after = statistics(server)
    assert after["inference_count"] == before["inference_count"] + 12
    counts = {key: row["count"] for key, row in after["inference_stats"].items()}
    assert counts["success"] == counts["queue"] == counts["compute_infer"] == after["inference_count"]


def get(server: ServerProcess, path: str) -> bytes:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()


def pending(server: ServerProcess, model: str) -> int:
    """Count the requests of a model that wait."""
    row = re.search(
        rf'^nv_inference_pending_request_count{{model="{model}".*}} (\d+)',
        get(server, "/metrics").decode(),
        re.M,
    )
    assert row is not None
    return int(row[1])


def statistics(server: ServerProcess) -> dict[str, Any]:
    (row,) = json.loads(get(server, "/v2/models/many/stats"))["model_stats"]
    return dict(row)
