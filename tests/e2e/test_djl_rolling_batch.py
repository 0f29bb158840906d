"""A DJL handler with a rolling batch of its own over the real server: one token per request and step, joins, faults."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

import pytest
from tests.harness.server_process import ServerProcess, serve_handlers, until

HANDLER = """
import json, time
from djl_python import Output
from djl_python.request import Request
from djl_python.request_io import TextInput, Token
from djl_python.rolling_batch.rolling_batch import RollingBatch

most = 0

class Words(RollingBatch):
    def preprocess_requests(self, requests):
        return requests

    def inference(self, requests):
        for request in self.get_new_requests(requests):
            request.words = request.input_text.split()
        for request in self.active_requests:
            word = request.words.pop(0)
            if word == "raise":
                raise ValueError("as told")
            word = str(most) if word == "most" else word
            done = not request.words
            why = "length" if done else None
            request.set_next_token(Token(1, word + " ", -0.5), last_token=done, finish_reason=why)
        return self.postprocess_results()

batch = Words()

def handle(inputs):
    global most
    if inputs.is_empty():
        return None
    time.sleep(0.002)
    if inputs.get_property("reset_rollingbatch"):
        batch.reset()
    requests = []
    for index, one in enumerate(inputs.get_batches()):
        body = json.loads(one.get_as_string() or "{}")
        told = body.get("parameters", {})
        requests.append(Request(TextInput(index, None, told, told, input_text=body.get("inputs"))))
    most = max(most, len(requests))
    outputs = Output()
    for index, result in enumerate(batch.inference(requests)):
        kind = result.pop("content_type")
        outputs.add(Output.binary_encode(result), key="data", batch_index=index)
        outputs.add_property("batch_%d_Content-Type" % index, kind)
    return outputs
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("store")
    (root / "words").mkdir()
    (root / "words" / "model.py").write_text(HANDLER)
    properties = "option.rolling_batch=auto\noption.max_rolling_batch_size=6\nminWorkers=1\nmaxWorkers=1\n"
    (root / "words" / "serving.properties").write_text(properties)
    with serve_handlers(tmp_path_factory.mktemp("log") / "log", root, "--profile", "djl") as serving:
        until(serving.is_ready, serving.said)
        yield serving


def ask(server: ServerProcess, text: str, **parameters: object) -> tuple[int, str, str]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as client:
        body = json.dumps({"inputs": text, "parameters": parameters})
        client.request("POST", "/predictions/words", body, {"Content-Type": "application/json"})
        response = client.getresponse()
        return response.status, response.headers["Content-Type"], response.read().decode()


def test_requests_join_and_leave(server: ServerProcess) -> None:
    texts = [" ".join(f"{number}-{word}" for word in range(1 + number % 17)) for number in range(60)]
    with ThreadPoolExecutor(15) as pool:
        answers = list(pool.map(lambda text: ask(server, text), texts))
    for text, (status, kind, body) in zip(texts, answers, strict=True):
        assert (status, kind) == (200, "application/json")
        assert json.loads(body) == {"generated_text": text + " "}
    assert 1 < int(json.loads(ask(server, "most")[2])["generated_text"]) <= 6


def test_a_stream_has_a_line_per_token(server: ServerProcess) -> None:
    status, kind, body = ask(server, "one two three", stream=True, details=True)
    assert (status, kind) == (200, "application/jsonlines")
    lines = [json.loads(line) for line in body.splitlines()]
    assert [line["token"]["text"] for line in lines] == ["one ", "two ", "three "]
    assert lines[-1]["details"]["finish_reason"] == "length"


def test_a_step_that_raises_ends_its_requests_and_the_next_are_served(server: ServerProcess) -> None:
    with ThreadPoolExecutor(2) as pool:
        begun = pool.submit(ask, server, "word " * 5000, stream=True)
        until(lambda: ask(server, "most")[0] == 200, server.said)
        status, _, body = ask(server, "a raise")
        assert (status, "as told" in body) == (424, True)
        whole, _, lines = begun.result()
        assert whole == 200
        assert json.loads(lines.splitlines()[-1])["code"] == 424
    assert ask(server, "and on")[0] == 200
