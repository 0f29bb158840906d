"""The route tables of all protocols: complete, true, and a manager's where they do not say otherwise."""

import re
from collections.abc import Iterator, Mapping

import pytest
from tritonclient.grpc import service_pb2

from trivium.catalogue import CATALOGUE
from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.types.access import AccessScope, Endpoint
from trivium.types.by_type import ByType
from trivium.types.errors import ServeError
from trivium.types.interfaces import RpcProtocol, WireProtocol
from trivium.types.operations import changes_something
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, RpcCall, Target

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW", "get")
ALL_ON = ByType(TorchServeConfig(open_inference=True, kserve=True))
ROWS = [(name, row) for name, entry in CATALOGUE.http.items() for row in entry.ENDPOINTS]


def protocols() -> Iterator[tuple[str, WireProtocol]]:
    """Each protocol as its original speaks it and as we do, with everything allowed that can be."""
    for name, entry in CATALOGUE.http.items():
        for as_original in (False, True):
            context = ProtocolContext(
                as_original=as_original, may_change=True, shares_memory=True, own=ALL_ON
            )
            yield name, entry.make(context)


PROTOCOLS = list(protocols())


def examples(path: str) -> list[str]:
    """Paths that a row names."""
    plain = re.sub(r"{(\w+)}", r"\1", path)
    if not plain.endswith("/..."):
        return [plain]
    plain = plain.removesuffix("/...")
    return [plain, f"{plain}/", f"{plain}/a/b"]


def neighbours(path: str) -> Iterator[str]:
    """The path, and others near it that somebody may try."""
    yield path
    yield path + "/"
    yield path + "/x"
    yield path + "//"
    yield path + "%2F"
    yield path + ";x=1"
    yield path + "%00"
    yield "/" + path
    yield path.upper()
    yield path.replace("/", "//")
    yield path.replace("/v2/", "/v2/./")
    yield path.replace("/v2/", "/v2/../v2/")
    segments = path.split("/")
    for i in range(1, len(segments)):
        yield "/".join(segments[:i] + segments[i + 1 :])
        yield "/".join([*segments[:i], "", *segments[i + 1 :]])
        yield "/".join([*segments[:i], "%" + segments[i].encode().hex("%"), *segments[i + 1 :]])
        yield "/".join([*segments[:i], "models", *segments[i + 1 :]])
        yield "/".join([*segments[:i], "x", *segments[i:]])


PATHS = sorted(
    {near for _, row in ROWS for path in examples(row.path) for near in neighbours(path)}
    | {"/", "", "/favicon.ico", "/v1/models", "/models", "/models/m", "/workflows", "/api-description"}
)


def found(protocol: WireProtocol, method: str, path: str) -> Target | None:
    try:
        return protocol.head(Head(method, path, "", {}))
    except ServeError:
        return None


def literals(row: Endpoint) -> tuple[int, ...]:
    """Say of each segment how much of it a row says literally: the one that says most, and first, goes before."""
    segments = row.path.removesuffix("/...").split("/")
    return tuple(2 if segment[:1] != "{" else int(segment[-1:] != "}") for segment in segments)


@pytest.mark.parametrize(("name", "row"), ROWS, ids=str)
def test_what_a_table_says_is_answered_with_that_scope(name: str, row: Endpoint) -> None:
    methods = ("GET", "POST", "PUT", "DELETE", "BREW") if row.method == "*" else (row.method,)
    for _, protocol in [each for each in PROTOCOLS if each[0] == name]:
        for method in methods:
            for path in examples(row.path):
                assert row.matches(method, path)
                target = found(protocol, method, path)
                assert target is not None, (method, path)
                assert target.scope is row.scope, (method, path)


@pytest.mark.parametrize("nth", [15, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CATALOGUE.http)
def test_what_is_answered_is_in_the_table_with_its_scope(name: str, nth: int) -> None:
    rows = CATALOGUE.http[name].ENDPOINTS
    for _, protocol in [each for each in PROTOCOLS if each[0] == name]:
        for method in METHODS:
            for path in PATHS[::nth]:
                target = found(protocol, method, path)
                if target is not None:
                    fitting = [row for row in rows if row.matches(method, path)]
                    most = max(map(literals, fitting), default=())
                    scopes = {row.scope for row in fitting if literals(row) == most}
                    assert scopes == {target.scope}, (method, path)


@pytest.mark.parametrize(("name", "row"), ROWS, ids=str)
@pytest.mark.parametrize("data", [b"", b"{}", b'{"log_verbose_level":1,"trace_rate":"5","parameters":{}}'])
def test_nothing_changes_by_a_route_that_is_not_a_managers(name: str, row: Endpoint, data: bytes) -> None:
    if row.scope is AccessScope.MANAGE:
        return
    head = Head("POST" if row.method == "*" else row.method, examples(row.path)[0], "", {}, len(data))
    for _, protocol in [each for each in PROTOCOLS if each[0] == name]:
        target = protocol.head(head)
        try:
            operation, _ = protocol.decode(head, target, Body(data))
        except ServeError:
            continue
        assert not changes_something(operation)


@pytest.mark.parametrize(
    ("row", "path", "is_one"),
    [
        ("/v1/{model}:predict", "/v1/m:predict", True),
        ("/v1/{model}:predict", "/v1/a:b:predict", True),
        ("/v1/{model}:predict", "/v1/:predict", False),
        ("/v1/{model}:predict", "/v1/m:predicts", False),
        ("/v1/{model}:predict", "/v1/m:predict/x", False),
        ("/v1/{model}", "/v1/m:predict", True),
        ("/v1/{model}", "/v1/", False),
        ("/v1/{model}:predict/...", "/v1/m:predict/x", True),
    ],
)
def test_which_paths_are_those_of_a_row(row: str, path: str, is_one: bool) -> None:
    assert Endpoint("*", row).matches("GET", path) is is_one


def test_what_says_nothing_is_a_managers() -> None:
    assert Target("new").scope is AccessScope.MANAGE
    assert Endpoint("GET", "/new").scope is AccessScope.MANAGE
    for entry in CATALOGUE.rpc.values():
        assert entry.make(ProtocolContext()).scope("/new.Service/New") is AccessScope.MANAGE


SERVICE = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
KNOWN = [f"/{SERVICE.full_name}/{method.name}" for method in SERVICE.methods]


def is_served(protocol: RpcProtocol, method: str) -> bool:
    try:
        protocol.kind(method)
    except ServeError:
        return False
    return True


def test_every_method_that_is_answered_is_in_the_table() -> None:
    for entry in CATALOGUE.rpc.values():
        protocol = entry.make(ProtocolContext(may_change=True))
        near = {near for method in (*KNOWN, *entry.SCOPES) for near in neighbours(method)}
        near |= {
            f"/{service}/{name}"
            for services in entry.SERVICES.values()
            for service in services
            for name in ("Watch", "Check", "New", "")
        }
        for method in near:
            assert is_served(protocol, method) == (method in entry.SCOPES), method
            if method in entry.SCOPES:
                assert protocol.scope(method) is entry.SCOPES[method]


def change_of(name: str) -> bytes:
    """A message that would change something, where there is such a one."""
    if name == "TraceSetting":
        request = service_pb2.TraceSettingRequest()
        request.settings["trace_rate"].value.append("5")
    elif name == "LogSettings":
        request = service_pb2.LogSettingsRequest()
        request.settings["log_verbose_level"].uint32_param = 1
    else:
        return b""
    return bytes(request.SerializeToString())


@pytest.mark.parametrize("entry", CATALOGUE.rpc.values(), ids=CATALOGUE.rpc)
def test_only_settings_change_by_a_method_that_is_not_a_managers(entry: object) -> None:
    scopes: Mapping[str, AccessScope] = entry.SCOPES  # type: ignore[attr-defined]
    protocol: RpcProtocol = entry.make(ProtocolContext(may_change=True))  # type: ignore[attr-defined]
    changing = []
    for method, scope in scopes.items():
        name = method.rpartition("/")[2]
        for message in {b"", change_of(name)}:
            if scope is AccessScope.MANAGE:
                continue
            try:
                operation, _ = protocol.decode(RpcCall(method), message)
            except ServeError:
                continue
            changing += [(name, bool(message))] * changes_something(operation)
    there = [
        (name, True)
        for name in ("LogSettings", "TraceSetting")
        if any(m.endswith(f"/{name}") for m in scopes)
    ]
    assert sorted(changing) == there
