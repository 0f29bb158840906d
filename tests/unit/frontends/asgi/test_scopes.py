"""What of a scope is the path below the application, and what becomes of heads that a front end would not read."""

from typing import Any

import pytest

from trivium.frontends.asgi.scope import AsgiRequest, head_of, header_lines, request_of, route_path
from trivium.frontends.limits import HttpLimits
from trivium.types.errors import ServeError

PATHS: dict[str, tuple[dict[str, Any], bytes]] = {
    "alone": ({"path": "/v2", "raw_path": b"/v2"}, b"/v2"),
    "escaped": ({"path": "/v2/a/b", "raw_path": b"/v2/a%2Fb"}, b"/v2/a%2Fb"),
    "a query in the raw path": ({"path": "/v2", "raw_path": b"/v2?a=b"}, b"/v2"),
    "no raw path": ({"path": "/v2/é b"}, b"/v2/%C3%A9%20b"),
    "mounted": ({"path": "/m/v2", "raw_path": b"/m/v2", "root_path": "/m"}, b"/v2"),
    "mounted, escaped": (
        {"path": "/a b/v2/x/y", "raw_path": b"/a%20b/v2/x%2Fy", "root_path": "/a b"},
        b"/v2/x%2Fy",
    ),
    "mounted twice": ({"path": "/a/b/v2", "raw_path": b"/a/b/v2", "root_path": "/a/b"}, b"/v2"),
    "mounted, as long ago": ({"path": "/v2", "raw_path": b"/m/v2", "root_path": "/m"}, b"/v2"),
    "behind a proxy that takes it off": ({"path": "/v2", "raw_path": b"/v2", "root_path": "/m"}, b"/v2"),
    "rewritten": ({"path": "/v2/models", "raw_path": b"/old", "root_path": ""}, b"/v2/models"),
    "a segment that begins alike": (
        {"path": "/more/v2", "raw_path": b"/more/v2", "root_path": "/m"},
        b"/more/v2",
    ),
    "the mount itself": ({"path": "/m", "raw_path": b"/m", "root_path": "/m"}, b"/"),
    "a slash at the end of the root": ({"path": "/m/v2", "raw_path": b"/m/v2", "root_path": "/m/"}, b"/v2"),
    "no root": ({"path": "/v2", "raw_path": None, "root_path": None}, b"/v2"),
}


@pytest.mark.parametrize("name", PATHS)
def test_the_path_below_the_application(name: str) -> None:
    scope, wanted = PATHS[name]
    assert route_path(scope) == wanted


def asked(*headers: tuple[bytes, bytes], method: str = "POST", version: str = "1.1") -> AsgiRequest:
    return AsgiRequest(method, b"/v2", ((b"host", b"x"), *headers), version, "", None)


def test_a_head_is_read_as_from_a_socket() -> None:
    head = head_of(
        asked((b"content-length", b"5"), (b"accept", b"a"), (b"accept", b"b ")), HttpLimits(), True
    )
    assert (head.method, head.path, head.content_length) == ("POST", "/v2", 5)
    assert head.headers[b"accept"] == b"a, b"
    assert head.last[b"accept"] == b"b"
    assert head_of(asked((b"transfer-encoding", b"chunked")), HttpLimits(), True).content_length is None
    assert head_of(asked(method="HEAD"), HttpLimits(), True).method == "GET"
    assert head_of(asked(version="2"), HttpLimits(), False).content_length is None


WRONG = {
    "no host": (AsgiRequest("GET", b"/", (), "1.1", "", None), 400),
    "two lengths": (asked((b"content-length", b"1"), (b"content-length", b"1")), 400),
    "a length that is none": (asked((b"content-length", b"-1")), 400),
    "a coding": (asked((b"transfer-encoding", b"gzip, chunked")), 501),
    "too many fields": (asked(*((b"a%d" % i, b"") for i in range(200))), 431),
    "a field too often": (asked(*((b"a", b"") for i in range(200))), 431),
    "too many bytes": (asked((b"a", b"a" * 40_000)), 431),
    "a long path": (AsgiRequest("GET", b"/" + b"a" * 9000, ((b"host", b"x"),), "1.1", "", None), 414),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_head_that_is_refused(name: str) -> None:
    request, status = WRONG[name]
    with pytest.raises(ServeError) as caught:
        head_of(request, HttpLimits(), True)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("method", "headers", "wanted"),
    [
        ("GET", (), False),
        ("POST", (), True),
        ("POST", ((b"content-length", b"0"),), False),
        ("POST", ((b"transfer-encoding", b"chunked"),), False),
    ],
)
def test_whether_a_head_leaves_its_size_open(method: str, headers: Any, wanted: bool) -> None:
    assert asked(*headers, method=method).lacks_size is wanted


def test_addresses_of_a_scope() -> None:
    scope = {"method": "get", "path": "/", "headers": [], "server": ("/run/socket", None), "client": None}
    request = request_of(scope)
    assert (request.method, request.server, request.client, request.version) == ("GET", "", None, "1.1")


def test_header_lines_are_pairs() -> None:
    assert header_lines(b"X-A: 1\r\nLink: <a:b>; c\r\n") == [(b"x-a", b"1"), (b"link", b"<a:b>; c")]
