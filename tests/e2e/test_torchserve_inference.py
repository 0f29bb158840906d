"""TorchServe's inference over HTTP as its clients see it, under the command: every route, what a handler sees of each,
and the documents that describe them.
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import httpx
import pytest
from tests.fixtures import models
from tests.harness.raw_http import Answer, connect, get, post, read_answer
from tests.harness.server_process import serve_handlers, until
from tests.harness.torchserve_command import TorchServeFolder, TorchServeProcess, torchserve

import requests

SPY = """
import json
def handle(data, context):
    if data is None:
        return None
    answers = []
    for index, row in enumerate(data):
        shown = {name: repr(value) for name, value in row.items()}
        answers.append(json.dumps({"row": shown, "headers": dict(context.get_all_request_header(index))}))
    return answers
"""
TEXT = "bytearray(b'hi')"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchServeProcess]:
    folder = TorchServeFolder(tmp_path_factory.mktemp("torchserve"))
    folder.model("spy", SPY)
    text = "disable_token_authorization=true\nts_open_inference_protocol=true\n"
    text += "load_models=spy\nmax_request_size=100000\n"
    with torchserve(folder, text=text) as serving:
        serving.serves("spy")
        yield serving


def seen(answer: Answer) -> Any:
    assert (answer.status, answer.fields.get("content-type")) == (200, None), answer
    assert answer.fields["connection"] == "keep-alive"
    return answer.document


@pytest.mark.parametrize(
    ("path", "row", "added"),
    [
        ("/predictions/spy?a=1", {"body": TEXT}, {"explain": "False", "url_path": ""}),
        ("/predictions/spy/1.0/a/b", {"body": TEXT}, {"explain": "False", "url_path": "a/b"}),
        ("/explanations/spy/1.0/a/", {"body": TEXT}, {"explain": "True", "url_path": "a"}),
        ("/v1/models/spy:predict?a=1", {"body": TEXT}, {"explain": "False"}),
        ("/v1/models/spy:explain", {"body": TEXT}, {"explain": "True"}),
        ("/v2/models/spy/infer?a=1", {"body": TEXT}, {"explain": "False"}),
        ("/v2/models/spy/explain", {"body": TEXT}, {"explain": "True"}),
        ("/invocations?a=1&model_name=spy", {"a": "bytearray(b'1')", "model_name": "bytearray(b'spy')"}, {}),
        ("/models/spy/invoke?a=1&a=2", {"a": "bytearray(b'2')"}, {}),
        ("/spy/predict?a=1&body=q", {"a": "bytearray(b'1')"}, {}),
        ("/spy/1.0/predict/", {}, {}),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_every_route_and_what_a_handler_sees_of_it(
    server: TorchServeProcess, method: str, path: str, row: dict[str, str], added: dict[str, str]
) -> None:
    found = seen(server.ask("Inference", method, path, b"hi", "X-Own: a\r\nX-Own: b\r\n"))
    assert found["row"] == {**row, "body": TEXT}
    inputs = {name: {"content-type": ""} for name in found["row"]}
    assert found["headers"] == {**inputs, "Host": "localhost", "Content-Length": "2", "X-Own": "b", **added}


def test_what_is_added_is_what_came_last(server: TorchServeProcess) -> None:
    """On the routes where the server adds it; elsewhere it is the client's."""
    fields = "explain: mine\r\nurl_path: mine\r\n"
    for path, explain, url_path in (
        ("/predictions/spy", "False", ""),
        ("/explanations/spy", "True", ""),
        ("/v1/models/spy:predict", "False", "mine"),
        ("/spy/predict", "mine", "mine"),
    ):
        headers = seen(server.ask("Inference", "POST", path, b"", fields))["headers"]
        assert (headers["explain"], headers["url_path"]) == (explain, url_path), path


@pytest.mark.parametrize(
    ("request_bytes", "headers"),
    [
        (get("/spy/predict"), {"Host": "localhost", "content-length": "0"}),
        (
            b"POST /spy/predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            {"Host": "localhost", "content-length": "2"},
        ),
        (
            post("/spy/predict", b"hi", b"Expect: 100-continue\r\nTE: trailers\r\n"),
            {"Host": "localhost", "Content-Length": "2", "TE": "trailers"},
        ),
    ],
)
def test_how_a_body_came_is_taken_away_and_its_length_is_added(
    server: TorchServeProcess, request_bytes: bytes, headers: dict[str, str]
) -> None:
    with connect(server.port("Inference")) as plug:
        plug.sendall(request_bytes)
        found = seen(read_answer(plug))
    assert found["headers"] == {"body": {"content-type": ""}, **headers}


def test_the_content_type_of_each_input(server: TorchServeProcess) -> None:
    files = {
        "text": ("a.txt", b"hi", "text/plain; charset=utf-8"),
        "nothing": ("a.bin", b"hi"),
        "field": (None, b"hi", "text/plain"),
    }
    url = f"http://127.0.0.1:{server.port('Inference')}/predictions/spy"
    found = requests.post(url, files=files, timeout=60).json()
    assert found["row"] == {"text": "'hi'", "nothing": TEXT, "field": TEXT}
    assert [found["headers"][name]["content-type"] for name in files] == [
        "text/plain",
        "application/octet-stream",
        "",
    ]
    body = seen(
        server.ask("Inference", "POST", "/predictions/spy", b"{}", "Content-Type: application/json; a=b\r\n")
    )
    assert (body["row"], body["headers"]["body"]) == ({"body": "{}"}, JSON)


@pytest.mark.parametrize(
    ("method", "path", "status", "document"),
    [
        (
            "GET",
            "/v2",
            200,
            {"name": "Torchserve", "version": "0.12.0", "extenstion": ["kserve", "kubeflow"]},
        ),
        ("POST", "/v2/health/live", 200, {"live": True}),
        ("GET", "/v2/health/ready", 200, {"ready": True}),
        ("GET", "/v2/models/spy/versions/1.0", 501, {"error": "Model versioning is not yet supported."}),
    ],
)
def test_open_inference(
    server: TorchServeProcess, method: str, path: str, status: int, document: dict[str, Any]
) -> None:
    answer = server.ask("Inference", method, path)
    assert (answer.status, answer.document) == (status, document)
    assert answer.fields["connection"] == ("keep-alive" if status < 400 else "close")


def is_live(server: TorchServeProcess, key: str = "") -> Any:
    """What TorchServe's open inference service says of the server, or the status of its refusal."""
    service = "org.pytorch.serve.grpc.openinference.GRPCInferenceService"
    with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
        call = channel.unary_unary(f"/{service}/ServerLive", None, None)
        try:
            return call(b"", metadata=[("authorization", f"Bearer {key}")] if key else None, timeout=60)
        except grpc.RpcError as error:
            return error.code().name


def test_open_inference_over_grpc(server: TorchServeProcess) -> None:
    assert is_live(server) == b"\x08\x01"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/nobody/predict", "ModelNotFoundException"),
        ("/spy/9.0/predict", "ModelVersionNotFoundException"),
        ("/spy/1.0/predict/x", "ResourceNotFoundException"),
        ("/v1/models/nobody:predict", "ModelNotFoundException"),
        ("/v1/models/:predict", "ModelNotFoundException"),
        ("/v2/models/nobody/infer", "ModelNotFoundException"),
        ("/v2/models/spy/ready", "ResourceNotFoundException"),
        ("/v2/models/spy", "ResourceNotFoundException"),
    ],
)
def test_what_there_is_not(server: TorchServeProcess, path: str, kind: str) -> None:
    answer = server.ask("Inference", "POST", path)
    assert (answer.status, answer.document["type"], answer.fields["connection"]) == (404, kind, "close")


def test_the_api_is_not_described(server: TorchServeProcess) -> None:
    for api, path in (("Inference", "/"), ("Inference", "/predictions/spy"), ("Management", "/models/spy")):
        answer = server.ask(api, "OPTIONS", path)
        assert (answer.status, answer.document["code"]) == (501, 501)
        assert "table of all routes" in answer.document["message"]


@pytest.mark.parametrize("path", ["/predictions/spy", "/v1/models/spy:predict", "/spy/predict"])
@pytest.mark.parametrize(
    ("words", "row"),
    [
        (["-T", "FILE"], {"body": TEXT}),
        (["-F", "data=@FILE;type=text/plain"], {"data": "'hi'"}),
        (["-F", "data=hi"], {"data": TEXT}),
        (["-d", "data=hi"], {"data": TEXT}),
        (["-d", "hi"], {}),
        (["--data-binary", "@FILE", "-H", "Content-Type: text/plain"], {"body": "'hi'"}),
        (["-H", "Content-Type: application/json", "-d", '{"a": 1}'], {"body": "{'a': 1}"}),
    ],
)
def test_the_forms_of_curl(
    server: TorchServeProcess, tmp_path: Path, path: str, words: list[str], row: dict[str, str]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"hi")
    url = f"http://127.0.0.1:{server.port('Inference')}{path}"
    given = [word.replace("FILE", str(file)) for word in words]
    done = subprocess.run(["curl", "-sS", "--fail", url, *given], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["row"] == row


def test_other_clients(server: TorchServeProcess) -> None:
    url = f"http://127.0.0.1:{server.port('Inference')}"
    with httpx.Client(base_url=url, timeout=60) as client:  # one connection for all
        for path in ("/predictions/spy", "/v2/models/spy/infer", "/invocations?model_name=spy"):
            assert client.post(path, json={"a": 1}).json()["row"]["body"] == "{'a': 1}"

    async def pieces() -> AsyncIterator[bytes]:
        yield b"h"
        yield b"i"

    async def ask() -> Any:
        async with aiohttp.ClientSession(url) as session:
            async with session.post("/spy/1.0/predict", data=pieces()) as answer:
                return json.loads(await answer.read())

    found = asyncio.run(ask())
    assert (found["row"], found["headers"]["content-length"]) == ({"body": TEXT}, "2")
    assert "transfer-encoding" not in {name.lower() for name in found["headers"]}


def test_descriptions_need_no_key_and_all_else_does(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("spy", SPY)
    with torchserve(folder, text="load_models=spy\n") as server:
        until(lambda: (folder.path / "key_file.json").exists(), server.said)
        key = f"Authorization: Bearer {folder.key('inference')}\r\n"
        server.serves("spy", key)
        for api in ("Inference", "Management"):
            assert server.ask(api, "OPTIONS", "/").status == 501
            assert server.ask(api, "GET", "/api-description").status == 501
        for path in ("/spy/predict", "/v1/models/spy:predict", "/v2/models/spy/infer"):
            assert server.ask("Inference", "POST", path).document["type"] == "InvalidKeyException"
            assert seen(server.ask("Inference", "POST", path, b"", key))["row"] == {"body": "bytearray(b'')"}
        assert server.ask("Inference", "OPTIONS", "/predictions/spy").status == 400
        assert server.ask("Inference", "OPTIONS", "/predictions/spy", b"", key).status == 501
        assert server.ask("Inference", "GET", "/v2", b"", key).status == 404  # open inference is off
        assert is_live(server, folder.key("inference")) == "UNIMPLEMENTED"


@pytest.mark.parametrize("profile", ["torchserve", "torchserve-command"])
def test_under_v2_a_handler_sees_json_and_a_model_gets_tensors(tmp_path: Path, profile: str) -> None:
    folder = TorchServeFolder(tmp_path)
    models.identity(tmp_path / "models", "echo", rows=16)
    spy = folder.model("spy", SPY)
    document = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1.5, 2.5, 3.5, 4.5]}]}
    with serve_handlers(tmp_path / "log", "--profile", profile, tmp_path / "models", spy) as server:
        told = requests.post(f"{server.url}/v2/models/spy/infer", json=document, timeout=60).json()
        tensors = requests.post(f"{server.url}/v2/models/echo/infer", json=document, timeout=60)
        assert tensors.json()["outputs"][0]["data"] == [1.5, 2.5, 3.5, 4.5], tensors.text
        if profile == "torchserve":
            assert told["model_name"] == "spy", told  # the v2 protocol's answer
        else:
            assert told["row"] == {"body": repr(document)}
            assert "x-request-id" in tensors.headers


INSTANCES = """
def handle(data, context):
    if data is None:
        return None
    return [[number * 2 for number in each["data"]] if isinstance(each, dict) else each * 2 for each in data]
"""


@pytest.mark.parametrize(
    ("envelope", "path", "asked", "answer"),
    [
        ("body", "/predictions/m", 4, 8),
        ("json", "/predictions/m", {"instances": [1, 2, 3]}, {"predictions": [2, 4, 6]}),
        ("kserve", "/v1/models/m:predict", {"instances": [1, 2]}, {"predictions": [2, 4]}),
        ("kserve", "/v1/models/m:explain", {"instances": [1, 2]}, {"explanations": [2, 4]}),
        (
            "kservev2",
            "/v2/models/m/infer",
            {"id": "i", "inputs": [{"name": "x", "shape": [2], "datatype": "INT64", "data": [1, 2]}]},
            {
                "id": "i",
                "model_name": "m",
                "model_version": "1.0",
                "outputs": [{"name": "x", "datatype": "INT64", "data": [2, 4], "shape": [2]}],
            },
        ),
    ],
)
def test_envelopes(tmp_path: Path, envelope: str, path: str, asked: Any, answer: Any) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("m", INSTANCES, "batchSize: 2\nmaxBatchDelay: 50\n")
    text = f"disable_token_authorization=true\nload_models=m\nservice_envelope={envelope}\n"
    with torchserve(folder, text=text) as server:
        body, kind = json.dumps(asked).encode(), "Content-Type: application/json\r\n"
        until(lambda: server.ask("Inference", "POST", path, body, kind).status == 200, server.said)
        assert server.ask("Inference", "POST", path, body, kind).document == answer
        refused = server.ask("Inference", "POST", path, b"{", kind)
        if envelope != "body":
            assert (refused.status, refused.document["message"]) == (503, "Prediction failed")
        assert server.ask("Inference", "POST", path, body, kind).document == answer


def test_an_envelope_that_there_is_not_ends_the_start(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    with torchserve(folder, text="service_envelope=kserv\n", listens=False, status=1) as server:
        assert server.wait() == 1
        assert "service_envelope: 'kserv'" in server.said()
        assert "one of body, json, kserve, kservev2" in server.said()


def test_with_decode_input_request_off_every_input_is_bytes(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("spy", SPY)
    text = "disable_token_authorization=true\nload_models=spy\ndecode_input_request=false\n"
    with torchserve(folder, text=text) as server:
        server.serves("spy")
        for kind in ("application/json", "text/plain"):
            answer = server.ask("Inference", "POST", "/predictions/spy", b"1", f"Content-Type: {kind}\r\n")
            assert seen(answer)["row"] == {"body": "bytearray(b'1')"}
        url = f"http://127.0.0.1:{server.port('Inference')}/predictions/spy"
        files = {"f": ("a.json", b"{}", "application/json")}
        assert requests.post(url, files=files, timeout=60).json()["row"] == {"f": "bytearray(b'{}')"}
