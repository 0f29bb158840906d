"""A tiny language model over the gRPC of DJL and of TorchServe, and by DJL's deferred answers: the tokens of HTTP, bad
requests, clients that leave, a worker that is killed.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.harness.language_models import text, write
from tests.harness.scripted_server import copied_source, script, scripted
from tests.harness.server_process import ServerProcess, serve_handlers, until

from trivium.codecs.protobuf_schema import classes_of

MESSAGES = classes_of(
    "clients",
    {
        "DjlRequest": "1 string model_name\n2 string model_version\n4 map<string,bytes> headers\n5 bytes input",
        "DjlResponse": "1 int32 code\n2 map<string,bytes> headers\n3 bytes output",
        "Request": "1 string model_name\n2 string model_version\n3 map<string,bytes> input\n"
        "4 oneof=_sequence_id string sequence_id",
        "Status": "1 int32 code\n2 string message",
        "Response": "1 bytes prediction\n2 oneof=_sequence_id string sequence_id\n3 oneof=_status Status status",
    },
)
TORCHSERVE = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"
PROMPT, COUNT, END = "The value of an expression", 12, "<|endoftext|>"
ENDLESS = {"max_new_tokens": 10**6}
LONG = text(5, 8000)
"""A prompt beyond the context."""


class Client:
    """One channel, and how the model is asked over it."""

    def __init__(self, channel: grpc.Channel) -> None:
        request, response = MESSAGES["Request"], MESSAGES["Response"]
        codecs = (request.SerializeToString, response.FromString)
        self._predict = channel.unary_unary(f"{TORCHSERVE}Predictions", *codecs)
        self._stream = channel.unary_stream(f"{TORCHSERVE}StreamPredictions", *codecs)
        self._stream_2 = channel.stream_stream(f"{TORCHSERVE}StreamPredictions2", *codecs)
        self._djl = channel.unary_stream(
            "/ai.djl.serving.grpc.proto.Inference/Predict",
            MESSAGES["DjlRequest"].SerializeToString,
            MESSAGES["DjlResponse"].FromString,
        )

    def predictions(self, **fields: object) -> str:
        """The whole text."""
        return str(self._predict(llm_api(fields), timeout=120).prediction.decode())

    def stream(self, **fields: object) -> Any:
        """A call whose messages have pieces of text."""
        return self._stream(llm_api(fields), timeout=120)

    def lmi(self, **document: object) -> Any:
        """A call whose messages have pieces of LMI's answer."""
        return self._djl(djl(json.dumps(document).encode()), timeout=120)

    def raw(self, data: bytes) -> Any:
        """The same with this body."""
        return self._djl(djl(data), timeout=120)

    def sequences(self, *asked: tuple[str, dict[str, object]]) -> Any:
        """A call with several requests, each with an id."""
        requests = [
            MESSAGES["Request"](model_name="tiny", input=inputs(fields), sequence_id=name)
            for name, fields in asked
        ]
        return self._stream_2(iter(requests), timeout=120)


def inputs(fields: dict[str, object]) -> dict[str, bytes]:
    return {
        name: value if isinstance(value, bytes) else str(value).encode() for name, value in fields.items()
    }


def llm_api(fields: dict[str, object]) -> Any:
    return MESSAGES["Request"](model_name="tiny", input=inputs(fields))


def djl(data: bytes) -> Any:
    return MESSAGES["DjlRequest"](model_name="tiny", input=data)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("store")
    write(root / "tiny", "llama")
    log = tmp_path_factory.mktemp("log") / "log"
    settings = "hf.slots=4,hf.threads=1,hf.max_context=512"
    with serve_handlers(log, root, "--engine-parameters", settings) as serving:
        until(serving.is_ready, serving.said)
        yield serving


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with grpc.insecure_channel(server.grpc_address) as channel:
        yield Client(channel)


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server whose model has more to say than anybody waits for."""
    model = script(tmp_path / "tiny", texts={"*": "word " * 100_000, "brief": "one two"}, pause=0.01)
    with scripted(copied_source(tmp_path / "source"), tmp_path / "log", model) as server:
        yield server


def post(server: ServerProcess, document: object, **headers: str) -> tuple[int, HTTPMessage, bytes]:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:
        connection.request("POST", "/predictions/tiny", body, named)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def lmi(**parameters: object) -> dict[str, object]:
    return {"inputs": PROMPT, "parameters": {"max_new_tokens": COUNT, **parameters}}


@pytest.fixture(scope="module")
def expected(server: ServerProcess) -> str:
    """What is answered over HTTP."""
    status, _, body = post(server, lmi())
    assert status == 200, body
    return str(json.loads(body)["generated_text"])


def stats(server: ServerProcess) -> dict[str, Any]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("GET", "/v2/models/tiny/stats")
        (row,) = json.loads(connection.getresponse().read())["model_stats"]
        return dict(row["generation_stats"])


# -- the same text -----------------------------------------------------------------------------------------


def test_the_tokens_of_http(client: Client, expected: str) -> None:
    asked = {"text": PROMPT, "max_new_tokens": COUNT}
    for fields in (asked, {"data": json.dumps(asked)}):
        assert client.predictions(**fields) == expected + END
        pieces = [answer.prediction.decode() for answer in client.stream(**fields)]
        assert "".join(pieces) == expected + END
        assert len(pieces) > 2


@pytest.mark.parametrize(
    "document",
    [
        lmi(),
        lmi(details=True, top_n_tokens=2, return_full_text=True),
        {**lmi(), "stream": True},
        lmi(output_formatter="sse", details=True),
    ],
)
def test_each_form_of_lmi_as_over_http(
    client: Client, server: ServerProcess, document: dict[str, Any]
) -> None:
    status, headers, body = post(server, document)
    answers = list(client.lmi(**document))
    assert (status, {answer.code for answer in answers}) == (200, {200})
    assert answers[0].headers["content-type"].decode() == headers["content-type"]
    assert b"".join(answer.output for answer in answers) == body
    assert (len(answers) > 2) is (b"generated_text" not in answers[0].output)
    assert all(not answer.headers for answer in answers[1:])


def test_a_chat_over_djls_grpc(client: Client) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "temperature": 0}
    (whole,) = client.lmi(**chat)
    choice = json.loads(whole.output)["choices"][0]
    chunks = b"".join(answer.output for answer in client.lmi(**chat, stream=True)).splitlines()
    streamed = [json.loads(chunk)["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(streamed) == choice["message"]["content"]


def test_texts_of_one_stream_of_requests(client: Client, expected: str) -> None:
    asked = {"text": PROMPT, "max_new_tokens": COUNT}
    found: dict[str, str] = {}
    refused = {}
    for answer in client.sequences(("a", asked), ("b", {"text": PROMPT, "temprature": 1}), ("c", asked)):
        if answer.status.code:
            refused[answer.sequence_id] = answer.status.message
        else:
            found[answer.sequence_id] = found.get(answer.sequence_id, "") + answer.prediction.decode()
    assert found == {"a": expected + END, "c": expected + END}
    assert list(refused) == ["b"]
    assert "temprature" in refused["b"]


# -- what is refused ---------------------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[Client], Any], str]] = [
    (lambda client: client.predictions(data=b"hello"), "no JSON object"),
    (lambda client: list(client.stream(data=b"{")), "no JSON object"),
    (lambda client: client.predictions(), "Exactly one of 'text'"),
    (lambda client: list(client.stream(text=PROMPT, temprature=1)), "temprature"),
    (lambda client: client.predictions(text=PROMPT, num_beams=4), "num_beams"),
    (lambda client: client.predictions(text=LONG), "context"),
    (lambda client: list(client.stream(text=LONG)), "context"),
    (lambda client: list(client.raw(b"hello")), "JSON"),
    (lambda client: list(client.lmi(inputs="")), "inputs"),
    (lambda client: list(client.lmi(inputs="a", parameters={"temprature": 1})), "parameters.temprature"),
    (lambda client: list(client.lmi(inputs=LONG, stream=True)), "context"),
]


@pytest.mark.parametrize(("ask", "words"), REFUSED)
def test_a_bad_request_is_refused_with_what_to_send(
    client: Client, expected: str, ask: Callable[[Client], Any], words: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        ask(client)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert words in caught.value.details()
    assert client.predictions(text=PROMPT, max_new_tokens=COUNT) == expected + END


# -- fetched later -----------------------------------------------------------------------------------------


def fetched(server: ServerProcess, token: str, most: int) -> tuple[int, str, list[bytes]]:
    """The status and the content type of the first page, and all pages: each is asked for until it is there."""
    pages: list[bytes] = []
    first, kind = 0, ""
    while token:
        status, headers, body = post(server, b"", x_starting_token=token, x_max_items=str(most))
        if status == 202:
            time.sleep(0.01)
            continue
        if not pages:
            first, kind = status, headers.get("content-type", "")
            again = post(server, b"", x_starting_token=token, x_max_items="1")
            assert body.startswith(again[2])
        pages.append(body)
        token = headers.get("x-next-token", "")
    return first, kind, pages


@pytest.mark.parametrize("most", [1, 5, 0])
@pytest.mark.parametrize(
    "document", [lmi(), {**lmi(details=True), "stream": True}, lmi(output_formatter="sse")]
)
def test_an_answer_that_is_fetched_later(server: ServerProcess, document: dict[str, Any], most: int) -> None:
    _, headers, expected = post(server, document)
    status, told, body = post(server, document, x_synchronous="false")
    assert (status, body) == (200, b"")
    first, kind, pages = fetched(server, told["x-next-token"], most)
    assert (first, kind, b"".join(pages)) == (200, headers["content-type"], expected)
    assert most != 1 or len(pages) >= (1 if kind == "application/json" else 3)


def test_what_is_wrong_with_a_request_that_is_fetched_later(server: ServerProcess) -> None:
    status, _, body = post(server, {"inputs": "a", "temprature": 1}, x_synchronous="false")
    assert (status, json.loads(body)["code"], b"temprature" in body) == (424, 424, True)
    status, told, _ = post(server, {"inputs": LONG}, x_synchronous="false")
    assert status == 200
    first, _, pages = fetched(server, told["x-next-token"], 0)
    assert (first, json.loads(pages[0])["code"], b"context" in pages[0]) == (424, 424, True)
    told = post(server, b"{" + b" " * 2**17, x_synchronous="false")[1]
    first, _, pages = fetched(server, told["x-next-token"], 0)  # so long a body is read elsewhere
    assert (first, json.loads(pages[0])["code"], b"JSON" in pages[0]) == (424, 424, True)


# -- what ends in the middle -------------------------------------------------------------------------------


def test_who_cancels_ends_its_generation(endless: ServerProcess) -> None:
    def calls(client: Client) -> Iterator[Any]:
        yield client.stream(text="x", **ENDLESS)
        yield client.lmi(inputs="x", stream=True, parameters=ENDLESS)
        yield client.sequences(("s", {"text": "x", **ENDLESS}))

    with grpc.insecure_channel(endless.grpc_address) as channel:
        for call in calls(Client(channel)):
            wasted = stats(endless)["wasted_tokens"]
            next(call)
            until(lambda: stats(endless)["running"] == 1, endless.said)
            call.cancel()
            until(lambda wasted=wasted: stats(endless)["wasted_tokens"] > wasted, endless.said)
            until(lambda: not stats(endless)["running"], endless.said)


def test_a_killed_worker_ends_what_had_begun(endless: ServerProcess) -> None:
    document = {"inputs": "x", "stream": True, "parameters": ENDLESS}
    with grpc.insecure_channel(endless.grpc_address) as channel:
        client = Client(channel)
        calls = [client.stream(text="x", **ENDLESS), client.lmi(**document)]
        sequence = client.sequences(("s", {"text": "x", **ENDLESS}))
        for call in (*calls, sequence):
            next(call)
        token = post(endless, document, x_synchronous="false")[1]["x-next-token"]
        until(lambda: post(endless, b"", x_starting_token=token)[0] == 200, endless.said)
        (worker,) = endless.workers()
        os.kill(worker.pid, signal.SIGKILL)
        for call in calls:
            with pytest.raises(grpc.RpcError) as caught:
                list(call)
            assert caught.value.code() is grpc.StatusCode.INTERNAL
            assert "died" in caught.value.details()
        *_, last = sequence
        assert (last.sequence_id, last.status.code) == ("s", grpc.StatusCode.INTERNAL.value[0])
        status, _, pages = fetched(endless, token, 0)
        assert status == 200
        assert "died" in json.loads(b"".join(pages).splitlines()[-1])["error"]
        assert client.predictions(text="brief") == f"one two{END}"
