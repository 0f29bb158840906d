"""The documents of OpenAPI: valid, made from the tables of routes, and true about them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from trivium.codecs.openapi import ApiOperation, ApiRoute
from trivium.servers.torchserve.wire.api_description import OwnedRoutes
from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.servers.torchserve.wire.management_routes import MANAGEMENT
from trivium.servers.torchserve.wire.routes import DESCRIPTIONS, OPEN_INFERENCE, PING, PREDICTIONS
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Role
from trivium.types.operations import (
    DescribeAll,
    Live,
    ModelDescriptions,
    Operation,
    Readiness,
    ResponsePart,
    VersionStatus,
)
from trivium.types.state import VersionState
from trivium.types.wire import Body, Head, HttpAnswer

INFERENCE = (*DESCRIPTIONS, PING, *PREDICTIONS, *OPEN_INFERENCE)
ROUTES: Mapping[Role, tuple[ApiRoute, ...]] = {Role.INFERENCE: INFERENCE, Role.MANAGEMENT: tuple(MANAGEMENT)}
SHOWN = [
    (role, route, operation)
    for role, routes in ROUTES.items()
    for route in routes
    for operation in route.operations
]
OWNED = frozenset({"", "ping", "predictions", "v1/...:predict", "v1/...:explain", "models", ".../predict"})


def wire(*roles: Role, **more: Any) -> TorchServeHttp:
    return TorchServeHttp(lambda: "made", True, frozenset(roles or Role), **more)


def asked(protocol: TorchServeHttp, method: str, path: str, answer: Any) -> tuple[Operation, HttpAnswer]:
    head = Head(method, path, "", {}, 0)
    operation, encoder = protocol.decode(head, protocol.head(head), Body(b""))
    part = ResponsePart(error=answer) if isinstance(answer, ServeError) else ResponsePart(answer=answer)
    return operation, encoder.encode(part)


def told(answer: HttpAnswer) -> Any:
    return json.loads(b"".join(answer.buffers))


def described(protocol: TorchServeHttp, method: str, path: str, answer: Any) -> Any:
    _, found = asked(protocol, method, path, answer)
    assert (found.status, found.closes, found.reason) == (200, False, None)
    document = told(found)
    OpenAPIV30SpecValidator(document).validate()
    assert document["openapi"] == "3.0.1"
    return document


def of_server(protocol: TorchServeHttp) -> Any:
    return described(protocol, "OPTIONS", "/", Readiness(True))


def methods(document: Any) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}


def row(model: str, state: VersionState = VersionState.READY, **more: Any) -> VersionStatus:
    return VersionStatus(model, "1.0", state, **more)


def examples(path: str) -> str:
    return re.sub(r"{\w+}", "x", path)


@pytest.mark.parametrize(("role", "route", "operation"), SHOWN, ids=lambda each: getattr(each, "id", ""))
def test_what_is_described_is_answered_by_an_endpoint_of_its_row(
    role: Role, route: ApiRoute, operation: ApiOperation
) -> None:
    path = examples(operation.path)
    assert any(endpoint.matches(operation.method, path) for endpoint in route.endpoints)
    target = wire(role).head(Head(operation.method, path, "", {}))
    assert target.verb


def test_every_row_but_those_of_other_spellings_is_described() -> None:
    undescribed = [
        route.endpoints[0].path for routes in ROUTES.values() for route in routes if not route.operations
    ]
    assert undescribed == ["/models//invoke", "/v2/models/{model}/versions/{version}/..."]


@pytest.mark.parametrize(
    ("roles", "there", "absent"),
    [
        (
            (Role.INFERENCE,),
            {
                ("OPTIONS", "/"),
                ("GET", "/ping"),
                ("GET", "/api-description"),
                ("POST", "/v1/models/{model_name}:predict"),
                ("POST", "/v2/models/{model_name}/infer"),
                ("POST", "/predictions/{model_name}"),
                ("POST", "/predictions/{model_name}/{model_version}"),
                ("POST", "/{model_name}/predict"),
            },
            {("GET", "/models")},
        ),
        (
            (Role.MANAGEMENT,),
            {
                ("OPTIONS", "/"),
                ("GET", "/models"),
                ("POST", "/models"),
                *((method, "/models/{model_name}") for method in ("GET", "PUT", "DELETE")),
                *((method, "/models/{model_name}/{model_version}") for method in ("GET", "PUT", "DELETE")),
                ("PUT", "/models/{model_name}/{model_version}/set-default"),
                ("GET", "/api-description"),
            },
            {("GET", "/ping"), ("POST", "/predictions/{model_name}")},
        ),
        ((), {("GET", "/models"), ("POST", "/predictions/{model_name}")}, set()),
    ],
)
def test_a_listener_describes_what_it_serves(
    roles: tuple[Role, ...], there: set[tuple[str, str]], absent: set[tuple[str, str]]
) -> None:
    document = of_server(wire(*roles))
    assert (document["info"]["title"], document["info"]["version"]) == ("TorchServe APIs", "0.12.0")
    found = methods(document)
    assert there <= found
    assert not absent & found


def test_the_old_path_has_the_same_document() -> None:
    protocol = wire(Role.INFERENCE)
    for method in ("GET", "POST", "OPTIONS"):
        assert described(protocol, method, "/api-description", Readiness(True)) == of_server(protocol)


def test_what_others_own_on_a_listener_is_not_described() -> None:
    found = {path for _, path in methods(of_server(wire(owned=OwnedRoutes(OWNED))))}
    assert {"/v1/models/{model_name}:predict", "/{model_name}/{model_version}/predict", "/models"} <= found
    assert not {path for path in found if path.startswith(("/v2", "/explanations", "/invocations"))}
    assert "/v1/models/{model_name}" not in found
    assert "/v2" not in {
        path for _, path in methods(of_server(wire(owned=OwnedRoutes(open_inference=False))))
    }


@pytest.mark.parametrize(
    "path",
    [
        "/predictions/m",
        "/explanations/m",
        "/m/predict",
        "/v1/models/m:predict",
        "/v2/models/m/infer",
        "/models/m/invoke",
    ],
)
def test_a_model_is_described_by_every_path_that_calls_it(path: str) -> None:
    protocol = wire(Role.INFERENCE)
    operation, _ = asked(protocol, "OPTIONS", path, ModelDescriptions((row("m"),), ()))
    assert operation == DescribeAll("m")
    document = described(protocol, "OPTIONS", path, ModelDescriptions((row("m"),), ()))
    assert document["info"] == {"title": "RESTful API for: m", "version": "1.0.0"}
    assert {
        ("POST", "/predictions/m"),
        ("POST", "/v1/models/m:predict"),
        ("POST", "/v2/models/m/infer"),
    } <= methods(document)
    assert ("POST", "/predictions/m/{model_version}") in methods(document)


@pytest.mark.parametrize(
    "path", ["/models/a%20%7B", "/models/a%20%7B/1.0", "/models/a%20%7B/1.0/set-default"]
)
def test_the_management_of_a_model_is_described(path: str) -> None:
    name = "a {"
    protocol = wire(Role.MANAGEMENT)
    document = described(protocol, "OPTIONS", path, ModelDescriptions((row(name),), ()))
    assert document["info"] == {"title": "RESTful Management API for: a {", "version": "0.12.0"}
    assert ("PUT", "/models/a%20%7B") in methods(document)
    assert "/models" not in document["paths"]


def test_a_version_is_asked_for() -> None:
    operation, _ = asked(wire(), "OPTIONS", "/predictions/m/2.0/x", ModelDescriptions((row("m"),), ()))
    assert operation == DescribeAll("m", "2.0")
    operation, _ = asked(wire(), "OPTIONS", "/ping", Readiness(True))
    assert not isinstance(operation, Live | DescribeAll)


@pytest.mark.parametrize(
    "answer",
    [
        ServeError(Code.NOT_FOUND, "There is no model 'm'."),
        ModelDescriptions((row("m", VersionState.FAILED, at_start=True),), ()),
        ModelDescriptions((), ()),
    ],
)
def test_a_model_that_is_not_there_is_not_described(answer: Any) -> None:
    _, found = asked(wire(), "OPTIONS", "/predictions/m", answer)
    assert (found.status, found.closes) == (404, True)
    assert told(found) == {"code": 404, "type": "ModelNotFoundException", "message": "Model not found: m"}


def test_an_answer_that_is_none_is_an_error() -> None:
    head = Head("OPTIONS", "/", "", {}, 0)
    protocol = wire()
    _, encoder = protocol.decode(head, protocol.head(head), Body(b""))
    assert encoder.encode(ResponsePart(answer=Readiness(True), final=False)).status == 500


def rows_of(document: Any) -> Iterator[Mapping[str, Any]]:
    for operations in document["paths"].values():
        yield from operations.values()


def test_operations_say_what_they_take_and_how_they_fail() -> None:
    document = of_server(wire())
    (predicts,) = [each for each in rows_of(document) if each["operationId"] == "version_predictions"]
    assert [each["name"] for each in predicts["parameters"]] == ["model_name", "model_version"]
    assert "requestBody" in predicts
    assert {"200", "404", "503"} <= set(predicts["responses"])
    (registers,) = [each for each in rows_of(document) if each["operationId"] == "registerModel"]
    assert [each["name"] for each in registers["parameters"] if each["required"]] == ["url"]
