"""The description of a real server: valid, its examples work, programs that read it find no fault, and /docs shows it.

With SCHEMATHESIS_CASES=1500 that many requests are made of it, else a seeded sample.
"""

import gzip
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.fixtures import models
from tests.harness import described_models
from tests.harness.browser import chromium
from tests.harness.keys import KEYS, key_file
from tests.harness.raw_http import Answer, ask, get
from tests.harness.server_process import ServerProcess, serve, serve_handlers

from trivium.catalogue import CATALOGUE

SCHEMATHESIS = Path(__file__).parents[2] / ".venv-schemathesis" / "bin" / "schemathesis"
PROGRAM = os.environ.get("SCHEMATHESIS", str(SCHEMATHESIS))
CASES = int(os.environ.get("SCHEMATHESIS_CASES", "0"))
MODELS = ("Words", "add", "chatty", "counts", "digits", "djl", "echo", "python", "scripted")
CHECKS = ",".join(
    (
        *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
        *("response_schema_conformance", "response_headers_conformance"),
    )
)
NOT_ASKED = "events|unload|unregister|scale|device_register"
"""Operations that end never, take away what others ask for, or are refused with 501 whatever they are sent."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("models")
    paths = described_models.write(root)
    with serve_handlers(root / "log", *paths, "--client-shared-memory") as running:
        yield running


@pytest.fixture(scope="module")
def document(server: ServerProcess) -> Any:
    return shown(server.port)


def shown(port: int, fields: bytes = b"") -> Any:
    answer = ask(port, get("/openapi.json", fields))
    assert answer.status == 200, answer
    return answer.document


def post(port: int, path: str, body: object) -> Answer:
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return ask(
        port, head.encode() + b"Accept: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text
    )


def test_the_description_is_valid_and_has_all_models(document: Any) -> None:
    OpenAPIV31SpecValidator(document).validate()
    assert [tag["name"] for tag in document["tags"]][: len(MODELS)] == [f"Model {name}" for name in MODELS]


def test_every_example_works(server: ServerProcess, document: Any) -> None:
    asked = []
    for path, item in document["paths"].items():
        for operation in item.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                examples = [content["example"]] if "example" in content else []
                examples += [each["value"] for each in content.get("examples", {}).values()]
                for example in examples:
                    answer = post(server.port, path, example)
                    assert answer.status == 200, (path, example, answer)
                    asked.append(path)
    assert len(asked) == len(set(asked)) >= len(MODELS)


@pytest.mark.skipif(
    not Path(PROGRAM).exists(), reason="schemathesis is not installed: make .venv-schemathesis/.made"
)
def test_requests_made_of_it_by_schemathesis_find_neither_a_fault_nor_an_undescribed_answer(
    server: ServerProcess, document: Any, tmp_path: Path
) -> None:
    operations = sum(len(item) for item in document["paths"].values())
    each = max(2, -(-CASES // operations))
    phases = "examples,coverage,fuzzing" if CASES else "examples,fuzzing"
    command = [PROGRAM, "run", f"http://127.0.0.1:{server.port}/openapi.json", "--checks", CHECKS]
    command += [
        "--phases",
        phases,
        "--exclude-operation-id-regex",
        NOT_ASKED,
        "-n",
        str(each),
        "--seed",
        "39",
    ]
    command += ["--generation-database", "none", "--warnings", "off", "--no-color", "--no-shrink"]
    command += ["--continue-on-failure", "--request-timeout", "120", "--suppress-health-check", "all"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout[-20_000:]
    (made,) = re.findall(r"(\d+) generated", done.stdout)
    print(f"{made} cases over {operations} operations")
    assert int(made) >= CASES


def test_it_is_made_anew_when_other_models_serve_and_else_is_the_same(server: ServerProcess) -> None:
    first = ask(server.port, get("/openapi.json"))
    tag = first.fields["etag"].encode()
    assert ask(server.port, get("/openapi.json", b"If-None-Match: %b\r\n" % tag)).status == 304
    assert post(server.port, "/v2/repository/models/echo/unload", {}).status == 200
    without = ask(server.port, get("/openapi.json", b"If-None-Match: %b\r\n" % tag))
    assert without.status == 200
    assert "/v2/models/echo/infer" not in without.document["paths"]
    assert post(server.port, "/v2/repository/models/echo/load", {}).status == 200
    assert shown(server.port)["paths"].keys() == first.document["paths"].keys()


def test_the_page_is_sent_compressed_to_who_takes_that(server: ServerProcess) -> None:
    page = ask(server.port, get("/docs"))
    assert "style-src 'self' 'unsafe-inline'" in page.fields["content-security-policy"]
    assert not re.search(rb"<script>|\son\w+=|https?://", page.body)
    packed = ask(server.port, get("/docs/swagger-ui-bundle.js", b"Accept-Encoding: gzip\r\n"))
    plain = ask(server.port, get("/docs/swagger-ui-bundle.js"))
    assert packed.fields["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert plain.fields["content-type"] == "text/javascript; charset=utf-8"
    assert ask(server.port, get("/docs/no.js")).status == 404


def test_who_may_infer_may_read_it(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo")
    keys = key_file(tmp_path / "keys")
    with serve(tmp_path / "log", tmp_path / "models", "--keys", keys) as running:
        assert ask(running.port, get("/openapi.json")).status == 401
        assert ask(running.port, get("/docs")).status == 200
        for scope, key in KEYS.items():
            answer = ask(running.port, get("/openapi.json", key.header))
            assert answer.status == (403 if scope == "observe" else 200), scope


@pytest.mark.parametrize("profile", ["triton", "djl", "torchserve"])
def test_other_profiles_have_neither_unless_asked_to(profile: str, tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo")
    with serve(tmp_path / "log", tmp_path / "models", "--profile", profile) as running:
        assert {ask(running.port, get(path)).status for path in ("/openapi.json", "/docs")} <= {404, 405}
        with grpc.insecure_channel(running.grpc_address) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                ProtoReflectionDescriptorDatabase(channel).get_services()
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    with serve(tmp_path / "log", tmp_path / "models", "--profile", profile, "--console") as running:
        OpenAPIV31SpecValidator(shown(running.port)).validate()


def test_services_are_listed_and_called_by_what_they_say_of_themselves(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.grpc_address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        names = database.get_services()
        assert set(names) == {
            name for each in CATALOGUE.rpc.values() for some in each.SERVICES.values() for name in some
        }
        pool = DescriptorPool(database)
        methods = {
            f"/{name}/{each.name}": each for name in names for each in pool.FindServiceByName(name).methods
        }
        assert methods.keys() == {method for each in CATALOGUE.rpc.values() for method in each.SCOPES}
        for method, fields in {
            "/inference.GRPCInferenceService/ModelMetadata": {"name": "add"},
            "/grpc.health.v1.Health/Check": {},
            "/ai.djl.serving.grpc.proto.Inference/Ping": {},
            "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping": {},
            "/org.pytorch.serve.grpc.management.ManagementAPIsService/ListModels": {"limit": 5},
            "/org.pytorch.serve.grpc.openinference.GRPCInferenceService/ServerReady": {},
        }.items():
            request = GetMessageClass(methods[method].input_type)(**fields)
            read = GetMessageClass(methods[method].output_type).FromString
            answer = channel.unary_unary(method, type(request).SerializeToString, read)(request, timeout=60)
            assert answer.ByteSize(), method


def test_a_model_is_tried_out_on_the_page(server: ServerProcess) -> None:
    faults: list[str] = []
    url = f"http://127.0.0.1:{server.port}"
    with chromium() as browser:
        page = browser.new_context().new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((url, "data:", "blob:")) else faults.append(request.url)
            ),
        )
        page.goto(f"{url}/docs")
        page.get_by_text("Model add", exact=True).click()
        page.get_by_text("/v2/models/add/infer", exact=True).click()
        page.get_by_role("button", name="Execute").click()
        answer = page.locator(".responses-table.live-responses-table")
        answer.get_by_text("200", exact=True).first.wait_for()
        assert '"model_name": "add"' in answer.inner_text()
    assert not faults, faults
