"""TorchServe's continuous batching over the real server: requests join and leave, fail, and are left."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPResponse, IncompleteRead

import pytest
from tests.harness.raw_http import connect, get, post
from tests.harness.server_process import ServerProcess, serve_handlers, until
from tests.harness.torchserve_management import archive

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
ODD = """
import time
from ts.handler_utils.utils import send_intermediate_predict_response as send
TEXT = {}
def handle(data, context):
    if data is None:
        return None
    time.sleep(0.002)
    names = [context.get_request_id(i) for i in range(len(data))]
    TEXT.update((name, bytes(row["body"]).decode()) for name, row in zip(names, data) if row)
    asked = [TEXT[name] for name in names]
    context.stopping_criteria = [lambda _, text=text: text != "never" for text in asked]
    for text in asked:
        if text == "fewer": return asked[1:]
        if text == "more": return asked + ["x"]
        if text == "no list": return "text"
        if text == "fewer parts": send([], context.request_ids, "ok", 200, context)
        if text == "strange parts": send(["p "] * len(data), {99: "strange"}, "ok", 200, context)
        if text == "strange place": context.set_response_header(len(data) + 5, "a", "b")
        if text == "strange status": context.set_response_status(200, "", 99)
        if text == "strange ids": context.request_ids = {i + 7: "strange" for i in range(len(data))}
        if text == "strange sequence": context.set_response_header(0, context.header_key_sequence_end, "strange;;x")
        if text == "criteria by ids": context.stopping_criteria = {"strange": lambda _: True}
        if text == "one criterion more": context.stopping_criteria += [lambda _: True]
        if text == "criterion raises": context.stopping_criteria = [lambda _: 1 / 0] * len(data)
        if text == "unwritable": return [object()] * len(data)
        if text == "hangs": time.sleep(600)
    return [text + " " for text in asked]
"""
WRONG = {
    "fewer": (503, "number of batch response mismatched", "returned 1 elements for 2 requests"),
    "more": (503, "number of batch response mismatched", "returned 3 elements for 2 requests"),
    "no list": (503, "Invalid model predict output", "The handler returned a str"),
    "fewer parts": (503, "number of batch response mismatched", "returned 0 elements for 2 requests"),
    "strange place": (503, "Prediction failed", "IndexError"),
    "strange status": (503, "Prediction failed", "IndexError"),
    "criteria by ids": (503, "Prediction failed", "1 entries for 2 requests"),
    "one criterion more": (503, "Prediction failed", "3 entries for 2 requests"),
    "criterion raises": (503, "Prediction failed", "ZeroDivisionError"),
    "unwritable": (503, "Unsupported model output data type.", "The handler returned a object"),
    "hangs": (500, "Worker died.", "run deadline"),
}
"""What the handler does -> status and text of the answer, and what the log has of it."""

CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 8\nmaxBatchDelay: 5000\ncontinuousBatching: true\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("store")
    archive(root, "count", code=HANDLER, config=CONFIG)
    archive(root, "odd", code=ODD, config=CONFIG + "responseTimeout: 2\n")
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


@pytest.fixture
def stream(server: ServerProcess) -> Iterator[HTTPResponse]:
    """A request that the odd handler never finishes, once its answer has begun. Its client leaves at the end."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as client:
        client.request("POST", "/predictions/odd", b"never")
        response = client.getresponse()
        assert response.read(12) == b"never never "
        yield response


def odd(server: ServerProcess, text: str) -> tuple[int, bytes]:
    answer = server.ask(post("/predictions/odd", text.encode()))
    return answer.status, answer.body


def serves_on(server: ServerProcess) -> None:
    """The same model and its neighbour are there for others, and the server is well."""
    until(lambda: odd(server, "x") == (200, b"x "), server.said)
    assert ask(server, count=3) == (200, counted(3))
    assert server.ask(get("/ping")).document == {"status": "Healthy"}


@pytest.mark.parametrize("text", WRONG)
def test_what_a_step_does_wrong_ends_those_in_it_and_nobody_else(
    server: ServerProcess, stream: HTTPResponse, text: str
) -> None:
    status, message, told = WRONG[text]
    logged = len(server.said())
    found, body = odd(server, text)
    assert (found, json.loads(body)["message"]) == (status, message)
    with pytest.raises(IncompleteRead):  # what was in the same step has begun, and breaks off
        stream.read()
    until(lambda: told in server.said()[logged:], lambda: server.said()[logged:])
    serves_on(server)


@pytest.mark.parametrize("text", ["strange parts", "strange ids", "strange sequence"])
def test_ids_that_no_request_has_are_nobodys(server: ServerProcess, stream: HTTPResponse, text: str) -> None:
    with connect(server.port) as plug:
        plug.sendall(post("/predictions/odd", text.encode(), b"Connection: close\r\n"))
        found = b""
        while part := plug.recv(2**16):
            found += part
    assert found.startswith(b"HTTP/1.1 200")
    assert text.encode() in found
    assert b"never" in stream.read(2**10)
    serves_on(server)


def test_requests_without_an_end_leave_room_for_others_until_their_clients_go(server: ServerProcess) -> None:
    with ExitStack() as clients:
        for _ in range(8):  # as many as a batch has
            client = clients.enter_context(closing(HTTPConnection("127.0.0.1", server.port, timeout=60)))
            client.request("POST", "/predictions/odd", b"never")
            assert client.getresponse().read(6) == b"never "
        with ThreadPoolExecutor(1) as thread:
            waits = thread.submit(odd, server, "x")
            assert ask(server, count=3) == (200, counted(3))
            assert not waits.done()
            clients.close()
            assert waits.result() == (200, b"x ")
    serves_on(server)
