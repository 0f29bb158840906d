"""An authorizer is asked about every request, before room is made for a body or a message is read."""

from typing import Any, ClassVar

import pytest
from tests.harness.echo_rpc import SERVER_STREAM, SERVICE, STREAM, UNARY, EchoRpc
from tests.harness.fake_core import EchoProtocol
from tests.harness.h2_session import H2SessionHarness
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.app import Site, http_routes
from trivium.catalogue import CATALOGUE, configured
from trivium.frontends.http import reader
from trivium.frontends.http.request import read_head
from trivium.frontends.http.state import HttpState
from trivium.frontends.limits import SMALL_BODY
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, RpcEncoder
from trivium.types.listeners import Listener, Role, Transport
from trivium.types.operations import Operation, Unload
from trivium.types.wire import Body, Head, RpcCall, Target
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc import SERVICES, KServeGrpc

ROUTES = [
    (name, listener, prefix)
    for name, profile in CATALOGUE.profiles.items()
    for listener in profile.listeners
    if listener.transport is Transport.HTTP
    for prefix in (*(route.prefix for route in listener.routes), "unknown")
]


class Refuse:
    """Refuses everybody, and keeps what was asked."""

    def __init__(self, code: Code = Code.UNAUTHENTICATED) -> None:
        self.code = code
        self.asked: list[tuple[AccessScope, Head | RpcCall]] = []

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        self.asked.append((scope, request))
        raise ServeError(self.code, "Say who you are.")


@pytest.mark.parametrize("code", [Code.UNAUTHENTICATED, Code.FORBIDDEN])
@pytest.mark.parametrize(("profile", "listener", "segment"), ROUTES)
def test_every_route_of_every_profile_is_refused(
    profile: str, listener: Listener, segment: str, code: Code
) -> None:
    owners, fallback = http_routes(Site(CATALOGUE, configured(profile=profile)), listener)
    stage = HttpHarness(authorizer=Refuse(code))
    limits, offload = stage.site.limits, stage.site.offload
    stage.site = HttpState(stage.core, owners, fallback, limits, offload, authorizer=Refuse(code))
    stage.connect()
    for method in ("GET", "POST", "DELETE"):
        stage.send(f"{method} /{segment}/models/m HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".encode())
        stage.connect()
        stage.send(f"{method} /{segment} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".encode())
        status = {Code.UNAUTHENTICATED: 401, Code.FORBIDDEN: 403}[code]
        assert stage.statuses
        assert set(stage.statuses) == {status}
        stage.connect()
    assert not stage.core.tickets


def test_it_is_asked_again_about_a_head_that_is_repeated_and_before_a_large_body() -> None:
    guard = Refuse()
    stage = HttpHarness(authorizer=guard)
    for _ in range(3):
        stage.send(get("a"))
    assert [scope for scope, _ in guard.asked] == [AccessScope.MANAGE] * 3  # as nothing says otherwise
    stage.connect()
    stage.send(post("a", bytes(SMALL_BODY + 1))[:200])
    assert len(guard.asked) == 4
    assert (stage.core.tickets, stage.lent) == ([], 0)
    assert stage.is_closed


@pytest.mark.parametrize(("code", "status"), [(Code.UNAUTHENTICATED, 16), (Code.FORBIDDEN, 7)])
def test_every_call_over_grpc_is_refused(code: Code, status: int) -> None:
    talk = H2SessionHarness()
    guard = talk.site.authorizer = Refuse(code)
    kserve = KServeGrpc("somebody", "1", KServeOptions(may_change=True))
    talk.site.services = {**talk.site.services, **dict.fromkeys(SERVICES[Role.INFERENCE], kserve)}
    talk.greet()
    methods = [
        UNARY,
        STREAM,
        SERVER_STREAM,
        "/no/such",
        *(f"/{name}/Any" for name in SERVICES[Role.INFERENCE]),
    ]
    for number, method in enumerate(methods):
        heard = talk.call(2 * number + 1, method, b"echo x")
        assert (heard.status, heard.details) == (status, "Say who you are.")
    assert [request.method for _, request in guard.asked] == methods
    assert not talk.core.tickets


class Admit:
    """Lets in who shows a key, and keeps the rights that were asked for."""

    def __init__(self) -> None:
        self.scopes: list[AccessScope] = []

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        self.scopes.append(scope)
        shown = request.headers if isinstance(request, Head) else request.metadata
        assert {*shown} & {b"authorization", "authorization"}


class Observed(EchoProtocol):
    """Keeps the headers that it sees."""

    seen: ClassVar[list[dict[bytes, bytes]]] = []

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        self.seen.append(dict(head.headers))
        return super().decode(head, target, body)


def test_a_protocol_over_http_sees_no_key() -> None:
    stage = HttpHarness(authorizer=Admit())
    stage.site.routes = {"echo": Observed()}
    Observed.seen.clear()
    for _ in range(3):
        stage.send(post("a", b"body", b"Authorization: Bearer x\r\nX-Other: y\r\n"))
    assert stage.statuses == [200, 200, 200]
    assert len(Observed.seen) == 3
    for headers in Observed.seen:
        assert (b"authorization" in headers, headers[b"x-other"]) == (False, b"y")


class ObservedRpc(EchoRpc):
    """Keeps the metadata that it sees, and changes the server by every request but an echo."""

    seen: ClassVar[list[dict[str, str]]] = []

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, RpcEncoder]:
        self.seen.append(dict(call.metadata))
        if message == b"change":
            return Unload("m"), self
        return super().decode(call, message)


def test_a_protocol_over_grpc_sees_no_key_and_a_change_needs_a_managers() -> None:
    talk = H2SessionHarness()
    guard = talk.site.authorizer = Admit()
    talk.site.services = {SERVICE: ObservedRpc()}
    ObservedRpc.seen.clear()
    talk.greet()
    more = (("authorization", "Bearer x"), ("x-other", "y"))
    assert talk.call(1, UNARY, b"echo x", more=more).status == 0
    assert guard.scopes == [AccessScope.INFER]
    assert ObservedRpc.seen == [{"x-other": "y"}]
    refusing = Refuse(Code.FORBIDDEN)
    talk.site.authorizer = OnlyInfers(refusing)
    heard = talk.call(3, UNARY, b"change", more=more)
    assert (heard.status, heard.details) == (7, "Say who you are.")
    assert [scope for scope, _ in refusing.asked] == [AccessScope.MANAGE]
    assert "authorization" in refusing.asked[0][1].metadata  # type: ignore[union-attr]


class OnlyInfers:
    """Lets everybody infer, and leaves the rest to another."""

    def __init__(self, other: Refuse) -> None:
        self._other = other

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        if scope is not AccessScope.INFER:
            self._other.authorize(scope, request)


class Revocable:
    """Lets in who shows the key, until it is revoked."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_revoked = False

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        self.asked += 1
        shown = request.headers.get(b"authorization") if isinstance(request, Head) else b""
        if self.is_revoked or shown != b"Bearer x":
            raise ServeError(Code.UNAUTHENTICATED, "Say who you are.")


@pytest.mark.parametrize("body", [b"body", bytes(SMALL_BODY + 1)], ids=["small", "large"])
def test_a_head_that_is_repeated_is_not_parsed_again_and_refused_once_its_key_is_gone(
    monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    parsed = []

    def counted(*words: Any) -> Head:
        parsed.append(words)
        return read_head(*words)

    monkeypatch.setattr(reader, "read_head", counted)
    guard = Revocable()
    stage = HttpHarness(authorizer=guard)
    request = post("a", body, b"Authorization: Bearer x\r\n")
    for number in range(1, 6):
        stage.send(request)
        assert (stage.statuses, len(parsed)) == ([200] * number, 1)
        assert guard.asked >= number
    stage.send(post("a", body, b"Authorization: Bearer y\r\n"))
    assert stage.statuses[5:] == [401]
    stage.connect()
    stage.send(request)
    stage.send(request)
    assert stage.statuses[-2:] == [200, 200]
    guard.is_revoked = True
    stage.send(request)
    assert stage.statuses[-1] == 401
    assert stage.site.held_bytes == 0
    assert stage.lent == 0
