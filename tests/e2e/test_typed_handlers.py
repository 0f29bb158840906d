"""Typed handlers in the real server: by path and as folders, over HTTP and gRPC, in batches, streams and at once."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import tritonclient.grpc as v2_rpc
import tritonclient.http as v2
from tests.harness.server_process import ServerProcess, serve, serve_handlers

APP = """
from dataclasses import dataclass
from typing import Annotated, AsyncIterator, Iterator
import asyncio
import numpy as np
from trivium_handler import Refusal, batched, concurrent, tensor


@dataclass
class Label:
    name: str
    score: float


class Sentiment:
    def setup(self, context):
        self.good = {"good", "love"}

    def predict(self, text: str, top_k: int = 2) -> list[Label]:
        if not text:
            raise Refusal("an empty text has no sentiment", 422)
        share = len(self.good & set(text.split())) / len(text.split())
        return [Label("positive", share), Label("negative", 1 - share)][:top_k]


class Sums:
    @batched(max_rows=8, max_delay=0.05)
    def predict(
        self, x: Annotated[np.ndarray, tensor("FP32", [-1, 3])]
    ) -> Annotated[np.ndarray, tensor("FP32", [-1])]:
        return x.sum(axis=1)


class Words:
    def predict(self, text: str) -> Iterator[str]:
        for word in text.split():
            yield word + " "


class Together:
    async def setup(self, context):
        self.there, self.all = 0, asyncio.Event()

    @concurrent(4)
    async def predict(self, n: int) -> int:
        self.there += 1
        if self.there == n:
            self.all.set()
        await self.all.wait()
        return n


class Late:
    async def predict(self, n: int) -> AsyncIterator[dict[str, int]]:
        for i in range(n):
            yield {"i": i}


class Picture:
    def predict(self, image: bytes) -> bytes:
        return b"\\x89PNG\\r\\n\\x1a\\n" + image
"""
CLASSES = ("Sentiment", "Sums", "Words", "Together", "Late", "Picture")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("typed")
    (root / "app.py").write_text(APP)
    with serve_handlers(root / "log", *(f"{root}/app.py:{name}" for name in CLASSES)) as server:
        yield server


def asked(server: ServerProcess, model: str, data: object, **options: object) -> httpx.Response:
    url = f"http://127.0.0.1:{server.port}/predictions/{model}"
    return httpx.post(url, json=data, timeout=60, **options)  # type: ignore[arg-type]


def test_a_body_is_json_a_form_or_text(serving: ServerProcess) -> None:
    labels = [{"name": "positive", "score": 0.5}, {"name": "negative", "score": 0.5}]
    assert asked(serving, "Sentiment", {"text": "love it"}).json() == labels
    assert asked(serving, "Sentiment", "love it", params={"top_k": 1}).json() == labels[:1]
    url = f"http://127.0.0.1:{serving.port}/predictions/Sentiment"
    assert httpx.post(url, data={"text": "love it", "top_k": 1}).json() == labels[:1]
    assert httpx.post(url, files={"text": b"love it"}).json() == labels
    assert httpx.post(url, content=b"love it", headers={"Content-Type": "text/plain"}).json() == labels
    called_form = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d calls it
    assert httpx.post(url, content=b'{"text": "love it"}', headers=called_form).json() == labels
    missing = httpx.post(url, content=b"love it", headers=called_form)
    assert (missing.status_code, "text is missing" in missing.json()["message"]) == (400, True)


def test_a_wrong_request_names_its_field_and_a_refusal_has_its_status(serving: ServerProcess) -> None:
    wrong = asked(serving, "Sentiment", {"text": 3})
    assert wrong.status_code == 400
    assert wrong.json()["message"] == "Model 'Sentiment': text is a whole number, 3; expected a text."
    refused = asked(serving, "Sentiment", "")
    assert (refused.status_code, refused.json()["message"]) == (422, "an empty text has no sentiment")


def test_v2_clients_see_the_hints_as_tensors(serving: ServerProcess) -> None:
    text = np.array([b"love it"], object)
    rows = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    with v2.InferenceServerClient(f"127.0.0.1:{serving.port}") as client:
        told = client.get_model_metadata("Sentiment")
        assert [(one["name"], one["datatype"], one["shape"]) for one in told["inputs"]] == [
            ("text", "BYTES", [1]),
            ("top_k", "INT64", [1]),
        ]
        given = v2.InferInput("text", [1], "BYTES")
        given.set_data_from_numpy(text)
        output = client.infer("Sentiment", [given]).as_numpy("output")
        assert json.loads(output[0]) == {"name": "positive", "score": 0.5}
        given = v2.InferInput("x", [2, 3], "FP32")
        given.set_data_from_numpy(rows)
        assert client.infer("Sums", [given]).as_numpy("output").tolist() == [6, 15]
    with v2_rpc.InferenceServerClient(serving.grpc_address) as client:
        given = v2_rpc.InferInput("x", [2, 3], "FP32")
        given.set_data_from_numpy(rows)
        assert client.infer("Sums", [given]).as_numpy("output").tolist() == [6, 15]


def test_a_stream_comes_in_pieces(serving: ServerProcess) -> None:
    answer = asked(serving, "Words", "to be or")
    assert (answer.text, answer.headers["content-type"]) == ("to be or ", "text/plain; charset=utf-8")
    answer = asked(serving, "Late", 2)
    assert (answer.text, answer.headers["content-type"]) == ('{"i":0}\n{"i":1}\n', "application/x-ndjson")


def test_async_requests_are_in_work_at_once(serving: ServerProcess) -> None:
    """Each of the three waits until all have come: one at a time none would end."""
    found: list[int] = []
    ask = [
        threading.Thread(target=lambda: found.append(asked(serving, "Together", 3).json())) for _ in range(3)
    ]
    for one in ask:
        one.start()
    for one in ask:
        one.join()
    assert found == [3, 3, 3]


def test_bytes_are_answered_as_what_they_are(serving: ServerProcess) -> None:
    url = f"http://127.0.0.1:{serving.port}/predictions/Picture"
    answer = httpx.post(url, content=b"abc", headers={"Content-Type": "image/png"})
    assert (answer.headers["content-type"], answer.content[-3:]) == ("image/png", b"abc")


def test_folders_are_models_and_one_that_is_wrong_says_where(tmp_path: Path) -> None:
    for name, code in {"good": "x: str) -> str:\n        return x", "bad": "x: set) -> str: ..."}.items():
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / "app.py").write_text(f"class M:\n    def predict(self, {code}\n")
    with serve(tmp_path / "log", tmp_path / "models") as server:
        assert asked(server, "good", "a").text == "a"
        said = server.said()
        assert f"{tmp_path}/models/bad/app.py, line 2: the parameter x of M.predict has the hint set" in said
        answer = asked(server, "bad", "a")
        ends = time.monotonic() + 60
        while answer.status_code == 404 and time.monotonic() < ends:
            answer = asked(server, "bad", "a")
        assert answer.status_code >= 500


def test_the_library_serves_a_class(tmp_path: Path) -> None:
    import asyncio

    import trivium

    (tmp_path / "app.py").write_text(
        "class M:\n    def predict(self, n: int) -> int:\n        return n + 1\n"
    )

    async def ask() -> bytes:
        async with trivium.serving(f"{tmp_path}/app.py:M") as server:
            answer = await server.run("M", b"2", "application/json")
        return bytes(answer.parts[0].data)

    assert asyncio.run(ask()) == b"3"


def test_no_client_names_a_file_of_code(serving: ServerProcess, tmp_path: Path) -> None:
    """Whoever may register models may not run any file of this machine: an operator names it in the command."""
    (tmp_path / "app.py").write_text("raise SystemExit(3)")
    for name in ("app.py", "app.py:M"):
        url = f"http://127.0.0.1:{serving.port}/models"
        answer = httpx.post(url, params={"url": f"{tmp_path}/{name}"}, timeout=60)
        assert (answer.status_code, "is a file of Python" in answer.text) == (403, True)
