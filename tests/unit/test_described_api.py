"""Every route that a listener serves is in its description, and every path of the description is served."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tests.harness.virtual_models import make_spec

from trivium import app
from trivium.catalogue import CATALOGUE, configured
from trivium.described_api import descriptors_of
from trivium.frontends.renamed_service import RenamedService
from trivium.server_record import CONSOLE, REFLECTION
from trivium.types.access import Endpoint
from trivium.types.datatype import DataType
from trivium.types.described import SupportsDescription, SupportsReflection
from trivium.types.interfaces import WireProtocol
from trivium.types.listeners import Listener, Transport, is_below
from trivium.types.spec import Batching, Handler, ModelSpec, TensorSpec
from trivium.types.wire import Head

PROFILES = ("native", "triton", "djl", "torchserve", "torchserve-command")
TYPED = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TENSORS = make_spec(
    Batching(batch_axis=True, max_rows=4),
    inputs=(TensorSpec("x", DataType.FP32, (-1, 2)), TensorSpec("s", DataType.BYTES, (1,), optional=True)),
)


def handler(**settings: Any) -> ModelSpec:
    return make_spec(inputs=(), outputs=(), handler=Handler(settings=settings))


def listeners(profile: str, **options: Any) -> Iterator[tuple[app.Site, Listener]]:
    config = configured(profile=profile, console=True, **options)
    site = app.Site(CATALOGUE, config)
    for listener in app.listeners(CATALOGUE, config):
        if listener.transport is Transport.HTTP and CONSOLE in listener.protocols:
            yield site, listener


def described(site: app.Site, listener: Listener, *specs: ModelSpec) -> Any:
    return json.loads(site.description(listener).document(specs))


CASES = [
    *((profile, {}) for profile in PROFILES),
    ("native", {"management_port": 9, "console_port": 10}),
    ("torchserve", {"torchserve_kserve": True, "management_port": 9}),
    ("torchserve-command", {"torchserve_open_inference": True, "torchserve_kserve": True}),
]


def owner(listener: Listener, path: str) -> str:
    fitting = [route.prefix for route in listener.routes if is_below(route.prefix, path)]
    return min(fitting, key=lambda prefix: (prefix[:1] == ".", "..." not in prefix))


def filled(path: str) -> str:
    return re.sub(r"{(\w+)}", r"\1", path)


def shapes(row: Endpoint) -> set[str]:
    """The paths by which a row may stand in the document, without names."""
    plain = re.sub(r"{\w+}", "{}", row.path)
    whole = plain.removesuffix("/...")
    return {plain, plain.rstrip("/"), whole, f"{whole}/{{}}"}


@pytest.mark.parametrize(("profile", "options"), CASES)
def test_every_path_of_the_description_is_served(profile: str, options: Mapping[str, Any]) -> None:
    found = 0
    for site, listener in listeners(profile, **options):
        routes, _ = app.http_routes(site, listener)
        document = described(site, listener, TENSORS)
        for path, item in document["paths"].items():
            for method in item:
                protocol: WireProtocol = routes[owner(listener, filled(path))]
                protocol.head(Head(method.upper(), filled(path), "", {}))
                found += 1
    assert found > 20


@pytest.mark.parametrize(("profile", "options"), CASES)
def test_every_route_that_is_served_is_in_the_description(profile: str, options: Mapping[str, Any]) -> None:
    for site, listener in listeners(profile, **options):
        routes, _ = app.http_routes(site, listener)
        paths = {
            re.sub(r"{\w+}", "{}", path): item for path, item in described(site, listener)["paths"].items()
        }
        for route in listener.routes:
            for row in site.catalogue.http[route.protocol].ENDPOINTS:
                path = filled(row.path.removesuffix("..."))
                if not is_below(route.prefix, path) or owner(listener, path) != route.prefix:
                    continue
                methods = ("GET", "POST") if row.method == "*" else (row.method,)
                if not all(_is_served(routes[route.prefix], method, path) for method in methods):
                    continue
                items = [paths[shape] for shape in shapes(row) if shape in paths]
                if row.method == "OPTIONS":  # of paths that other listeners have, and that fit one of this
                    items += [
                        item
                        for known, item in paths.items()
                        if Endpoint("OPTIONS", known).matches("OPTIONS", path.rstrip("/"))
                    ]
                assert any(method.lower() in item for item in items for method in methods), row


def _is_served(protocol: WireProtocol, method: str, path: str) -> bool:
    try:
        return bool(protocol.head(Head(method, path, "", {})))
    except Exception:
        return False


def test_every_protocol_of_the_catalogue_describes_itself() -> None:
    assert all(isinstance(entry, SupportsDescription) for entry in CATALOGUE.http.values())
    assert all(isinstance(entry, SupportsReflection) for entry in CATALOGUE.rpc.values())


def test_operations_have_names_that_are_theirs_alone() -> None:
    for profile in PROFILES:
        for site, listener in listeners(profile):
            document = described(site, listener, TENSORS, handler(request=TYPED, answer=TYPED, example="x"))
            names = [each["operationId"] for item in document["paths"].values() for each in item.values()]
            assert len(names) == len(set(names))
            plain = [re.sub(r"{\w+}", "{}", path) for path in document["paths"]]
            assert len(plain) == len(set(plain)), "paths that differ in names alone are one"


def test_a_model_of_tensors_is_described_with_its_inputs_and_an_example_that_fits() -> None:
    ((site, listener),) = listeners("native")
    post = described(site, listener, TENSORS)["paths"]["/v2/models/m/infer"]["post"]
    content = post["requestBody"]["content"]["application/json"]
    inputs = content["schema"]["properties"]["inputs"]
    assert (inputs["minItems"], inputs["maxItems"]) == (1, 2)
    first, second = inputs["items"]["anyOf"]
    assert first["properties"]["name"] == {"const": "x"}
    assert first["properties"]["datatype"] == {"const": "FP32"}
    assert first["properties"]["shape"]["maxItems"] == 3
    assert second["properties"]["data"]["items"]["anyOf"][0] == {"type": "string"}
    assert content["example"]["inputs"] == [
        {"name": "x", "shape": [1, 1, 2], "datatype": "FP32", "data": [0, 0]}
    ]
    answer = post["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer["required"] == ["model_name", "model_version", "outputs"]


def test_a_typed_handler_is_described_by_the_schemas_of_its_hints() -> None:
    ((site, listener),) = listeners("native")
    spec = handler(request=TYPED, answer={"type": "number"}, example={"text": "good"})
    post = described(site, listener, spec)["paths"]["/predictions/m"]["post"]
    assert post["requestBody"]["content"] == {
        "application/json": {"schema": TYPED, "example": {"text": "good"}}
    }
    assert post["responses"]["200"]["content"] == {"application/json": {"schema": {"type": "number"}}}


def test_a_language_model_is_an_example_of_the_route_that_its_body_names_it_at(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    ((site, listener),) = listeners("native")
    spec = ModelSpec("chat", "1", tmp_path, "hf", "", inputs=(), outputs=())
    paths = described(site, listener, spec)["paths"]
    examples = paths["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert examples["chat"]["value"]["model"] == "chat"
    assert "text_input" in json.dumps(paths["/v2/models/chat/generate"]["post"]["requestBody"])


def test_names_that_are_no_plain_paths_stay_one_segment() -> None:
    ((site, listener),) = listeners("native")
    spec = ModelSpec("a/{b} c", "1", Path("/x"), "identity", "", inputs=TENSORS.inputs[:1], outputs=())
    assert "/v2/models/a%2F%7Bb%7D%20c/infer" in described(site, listener, spec)["paths"]


def test_with_keys_every_operation_but_the_open_ones_asks_for_one(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("")
    ((site, listener),) = listeners("native", keys=str(keys))
    document = described(site, listener)
    assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    assert document["paths"]["/v2/models/{model}/infer"]["post"]["security"] == [{"key": []}]
    assert document["paths"]["/v2/health/live"]["get"]["security"] == []


@pytest.mark.parametrize("profile", ["triton", "djl", "torchserve", "torchserve-command"])
def test_other_servers_have_neither_pages_nor_reflection(profile: str) -> None:
    config = configured(profile=profile)
    for listener in app.listeners(CATALOGUE, config):
        assert CONSOLE not in listener.protocols
        assert REFLECTION not in listener.protocols
        assert not {"docs", "openapi.json"} & {route.prefix for route in listener.routes}


@pytest.mark.parametrize("name", CATALOGUE.rpc)
def test_the_descriptors_of_a_protocol_have_those_rpcs_that_it_answers(name: str) -> None:
    entry = CATALOGUE.rpc[name]
    files = [FileDescriptorProto.FromString(data) for data in descriptors_of([entry])]
    told = {
        f"/{file.package}.{service.name}/{method.name}"
        for file in files
        for service in file.service
        for method in service.method
    }
    assert told == set(entry.SCOPES)


def test_a_service_under_another_name_has_files_of_its_own() -> None:
    (entry,) = [each for each in CATALOGUE.rpc.values() if isinstance(each, RenamedService)]
    files = [FileDescriptorProto.FromString(data) for data in entry.descriptors()]
    (service,) = [service for file in files for service in file.service]
    assert service.method[0].input_type.startswith(".org.pytorch.serve.grpc.openinference.")
    assert all("inference" in file.name for file in files)
