"""TorchServe's continuous batching over the real server: requests join and leave, fail, and are left."""

import json
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, IncompleteRead

import pytest
from tests.harness.server_process import ServerProcess, serve_handlers, until

HANDLER = """
import time
LEFT, SEEN = {}, {"steps": 0, "most": 0, "gone": 0}
def handle(data, context):
    if data is None:
        return None
    time.sleep(0.002)
    SEEN["steps"] += 1
    SEEN["most"] = max(SEEN["most"], len(data))
    names = [context.get_request_id(i) for i in range(len(data))]
    SEEN["gone"] += len([name for name in LEFT if name not in names])
    for name in [name for name in LEFT if name not in names]:
        del LEFT[name]
    for name, row in zip(names, data):
        if row:
            LEFT[name] = row["body"]["count"]
            if row["body"].get("seen"):
                LEFT[name] = 1
    if any(LEFT[name] < 0 for name in names):
        LEFT.clear()
        raise ValueError("less than nothing")
    answers = []
    for name in names:
        LEFT[name] -= 1
        answers.append("%d " % LEFT[name])
    if any(row and row["body"].get("seen") for row in data):
        answers = [dict(SEEN) if row and row["body"].get("seen") else one for row, one in zip(data, answers)]
    ended = [name for name in names if LEFT[name] <= 0]
    context.stopping_criteria = [lambda _, name=name: name in ended for name in names]
    for name in ended:
        del LEFT[name]
    return answers
"""
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 8\nmaxBatchDelay: 5000\ncontinuousBatching: true\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("store")
    manifest = {
        "runtime": "python",
        "model": {
            "modelName": "count",
            "handler": "handler.py",
            "modelVersion": "1.0",
            "configFile": "c.yaml",
        },
    }
    with zipfile.ZipFile(root / "count.mar", "w") as archive:
        archive.writestr("handler.py", HANDLER)
        archive.writestr("c.yaml", CONFIG)
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
    log = tmp_path_factory.mktemp("log") / "log"
    with serve_handlers(log, root, "--profile", "torchserve") as serving:
        until(serving.is_ready, serving.said)
        yield serving


def ask(server: ServerProcess, **body: object) -> tuple[int, bytes]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as client:
        client.request("POST", "/predictions/count", json.dumps(body), {"Content-Type": "application/json"})
        response = client.getresponse()
        try:
            return response.status, response.read()
        except IncompleteRead as error:
            return response.status, error.partial


def counted(count: int) -> bytes:
    return b"".join(b"%d " % left for left in range(count - 1, -1, -1))


def seen(server: ServerProcess) -> dict[str, int]:
    status, body = ask(server, count=1, seen=True)
    assert status == 200
    return dict(json.loads(body))


def test_requests_join_and_leave(server: ServerProcess) -> None:
    counts = [1 + number * 7 % 40 for number in range(60)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda count: ask(server, count=count), counts))
    assert answers == [(200, counted(count)) for count in counts]
    assert 1 < seen(server)["most"] <= 8


def test_a_step_that_raises_ends_its_requests_and_the_next_are_served(server: ServerProcess) -> None:
    with ThreadPoolExecutor(4) as pool:
        begun = pool.submit(ask, server, count=10**6)
        before = seen(server)["steps"]
        until(lambda: seen(server)["steps"] > before + 5, server.said)
        status, body = ask(server, count=-1)
        assert (status, b"Prediction failed" in body) == (503, True)
        assert begun.result()[1].startswith(counted(10**6)[:50])
    assert ask(server, count=3) == (200, counted(3))


def test_a_client_that_leaves_is_in_no_further_step(server: ServerProcess) -> None:
    before = seen(server)["gone"]
    client = HTTPConnection("127.0.0.1", server.port, timeout=60)
    client.request(
        "POST", "/predictions/count", json.dumps({"count": 10**6}), {"Content-Type": "application/json"}
    )
    response = client.getresponse()
    assert response.read(20) == counted(10**6)[:20]
    assert response.headers["ts_stream_next"] == "true"
    response.close()
    client.close()
    until(lambda: seen(server)["gone"] > before, server.said)
