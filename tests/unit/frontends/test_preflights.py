"""What browsers ask before a page's request: answered on every path, without a key, once pages are allowed."""

from typing import Any

import pytest
from tests.harness.fake_core import FakeCore, FakeTicket
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.app import Site, http_routes
from trivium.catalogue import CATALOGUE, configured
from trivium.config.listener_options import HttpConfig
from trivium.config.options import ServerConfig
from trivium.frontends.http.state import HttpState
from trivium.frontends.limits import HttpLimits, http_limits
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Listener, Transport
from trivium.types.operations import Live, Operation, Readiness, ResponsePart
from trivium.types.wire import Head

PAGE = "https://app.example"
CHROME = (
    "Host: localhost:8000\r\nConnection: keep-alive\r\nAccept: */*\r\nAccess-Control-Request-Method: {method}\r\n"
    "Access-Control-Request-Headers: authorization,content-type\r\nAccess-Control-Request-Private-Network: true\r\n"
    "Origin: {origin}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/126.0.0.0 Safari/537.36\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: empty\r\n"
    "Referer: {origin}/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-GB,en;q=0.9\r\n\r\n"
)
"""As Chrome 126 sends it for a fetch of JSON with a key."""

ROUTES = [
    (name, listener, prefix)
    for name, profile in CATALOGUE.profiles.items()
    for listener in profile.listeners
    if listener.transport is Transport.HTTP
    for prefix in (*(route.prefix for route in listener.routes), "unknown")
]


def preflight(path: str, origin: str = PAGE, method: str = "POST") -> bytes:
    return f"OPTIONS {path} HTTP/1.1\r\n{CHROME.format(origin=origin, method=method)}".encode()


class NoKey:
    """Lets nobody in, whatever is asked for, as TorchServe's check does."""

    def authorize(self, scope: AccessScope, request: Head) -> None:
        raise ServeError(Code.UNAUTHENTICATED, "Say who you are.")


class LivingCore(FakeCore):
    """Says that it lives."""

    def submit(self, operation: Operation, sink: Any) -> Any:
        if isinstance(operation, Live):
            sink(ResponsePart(answer=Readiness(True)))
            return FakeTicket(operation, sink)
        return super().submit(operation, sink)


def limits(**options: str) -> HttpLimits:
    return http_limits(ServerConfig(http=HttpConfig(**options)))


def stage_of(limited: HttpLimits) -> HttpHarness:
    return HttpHarness(limited, LivingCore(), authorizer=NoKey())


@pytest.mark.parametrize(("profile", "listener", "segment"), ROUTES)
def test_every_route_of_every_profile_answers_a_preflight_before_it_asks_for_a_key(
    profile: str, listener: Listener, segment: str
) -> None:
    owners, fallback = http_routes(Site(CATALOGUE, configured(profile=profile)), listener)
    stage = stage_of(limits(cors=PAGE))
    stage.site = HttpState(
        stage.core, owners, fallback, stage.site.limits, stage.site.offload, authorizer=NoKey()
    )
    stage.connect()
    for method in ("GET", "POST", "DELETE"):
        for _ in range(2):  # the second head is one that is known
            stage.send(preflight(f"/{segment}/models/m", method=method))
    stage.send(f"POST /{segment}/models/m HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".encode())
    *allowed, refused = stage.answers
    assert [answer.status for answer in allowed] == [204] * 6
    for answer in allowed:
        fields = answer.fields
        assert fields[b"access-control-allow-origin"] == PAGE.encode()
        assert method.encode() in fields[b"access-control-allow-methods"]
        assert fields[b"access-control-allow-headers"] == b"*, Authorization"
        assert fields[b"access-control-allow-private-network"] == b"true"
    assert refused.status in (400, 401, 403)
    assert refused.fields[b"access-control-allow-origin"] == PAGE.encode()


@pytest.mark.parametrize(
    ("options", "origin", "is_allowed"),
    [
        ({"cors": PAGE}, PAGE, True),
        ({"cors": f"{PAGE}/"}, PAGE, True),
        ({"cors": "HTTPS://App.Example"}, PAGE, True),
        ({"cors": "*"}, "https://other.example", True),
        ({"cors": PAGE}, "https://other.example", False),
        ({"cors": PAGE}, f"{PAGE}.evil.example", False),
        ({"cors_allowed_origin": PAGE}, PAGE, True),
        ({"cors_allowed_origin": PAGE, "cors": "*"}, "https://other.example", False),
    ],
)
def test_only_pages_that_are_allowed_reach_a_private_network(
    options: dict[str, str], origin: str, is_allowed: bool
) -> None:
    stage = stage_of(limits(**options))
    stage.send(preflight("/echo/a", origin))
    (answer,) = stage.answers
    assert answer.status == 204
    assert (b"access-control-allow-private-network" in answer.fields) is is_allowed
    told = answer.fields[b"access-control-allow-origin"].decode()
    assert (told in ("*", origin)) is is_allowed


def test_the_three_options_go_before_the_one() -> None:
    fields = limits(cors=PAGE, cors_allowed_headers="X-A", cors_allowed_methods="GET").fields
    assert b"Access-Control-Allow-Headers: X-A\r\n" in fields
    assert b"Access-Control-Allow-Methods: GET\r\n" in fields
    assert b"Access-Control-Allow-Origin: https://app.example\r\n" in fields
    assert limits().fields == b""


@pytest.mark.parametrize(
    "text", ["app.example", "https://app.example/path", "https://a, https://b", "https://"]
)
def test_what_no_browser_sends_is_refused(text: str) -> None:
    with pytest.raises(ServeError, match="is no origin of pages") as caught:
        limits(cors=text)
    assert caught.value.code is Code.INVALID


def test_without_the_option_or_without_a_page_a_path_answers_for_itself() -> None:
    stage = stage_of(limits())
    stage.send(preflight("/echo/a"))
    assert stage.statuses == [401]
    stage = stage_of(limits(cors=PAGE))
    stage.send(b"OPTIONS /echo/a HTTP/1.1\r\nHost: h\r\n\r\n")
    stage.send(get("a"))
    stage.send(post("a", b"x"))
    assert stage.statuses == [401] * len(stage.statuses)
