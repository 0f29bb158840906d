"""The tree finds the row that says a path most literally, once, and says what it does not find only when asked."""

import pytest

from trivium.codecs.error_table import allow_line
from trivium.codecs.routes import HttpRoute, RouteRefusal, RouteTree, endpoints, prefixes, with_slash
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code, ServeError, anew
from trivium.types.wire import Head, Target

ROWS = (
    HttpRoute("GET POST", "/things", "all"),
    HttpRoute("GET", "/things/{model}", "one", AccessScope.INFER),
    HttpRoute("* OPTIONS", "/things/{model}:run", "run", takes_body=True),
    HttpRoute("GET", "/things/new", "new"),
    HttpRoute("GET", "/things/{model}/{version}", "version", is_served=False),
    HttpRoute("*", "/calls/{model}/{version}...", "call"),
    HttpRoute("GET", "/{model}/run", "old"),
    HttpRoute("", "/closed/..."),
    HttpRoute("GET", "/closed/{thing}/open", "open", subject="thing"),
    HttpRoute("GET", "/{any}/x/y", "nameless", subject=""),
)
asked: list[str] = []


def say(head: Head, allow: str) -> str:
    asked.append(head.path)
    return f"no {head.path}; {allow}"


TREE = RouteTree(ROWS, say)


@pytest.mark.parametrize(
    ("request_line", "verb", "model", "version"),
    [
        ("GET /things", "all", "", ""),
        ("HEAD /things", "all", "", ""),
        ("GET /things/a", "one", "a", ""),
        ("GET /things/a%2Fb%3Arun", "one", "a/b:run", ""),
        ("GET /things/new", "new", "", ""),
        ("GET /things/new/1", "version", "new", "1"),
        ("GET /things/a/1%20", "version", "a", "1 "),
        ("BREW /things/a:b:run", "run", "a:b", ""),
        ("OPTIONS /things/a:run", "run", "a", ""),
        ("GET /things/:run", "one", ":run", ""),
        ("PUT /calls/m", "call", "m", ""),
        ("PUT /calls/m/", "call", "m", ""),
        ("PUT /calls/m/1/x/y", "call", "m", "1"),
        ("GET /things/run", "one", "run", ""),
        ("GET /other/run", "old", "other", ""),
        ("GET /closed/a/open", "open", "a", ""),
        ("GET /b/x/y", "nameless", "", ""),
    ],
)
def test_what_is_found(request_line: str, verb: str, model: str, version: str) -> None:
    method, path = request_line.split()
    target = TREE.find(Head(method, path, "", {}))
    assert (target.verb, target.model, target.version) == (verb, model, version)


@pytest.mark.parametrize(
    ("request_line", "code", "allow"),
    [
        ("PUT /things", Code.METHOD, "GET, HEAD, POST"),
        ("POST /things/new", Code.METHOD, "GET, HEAD"),
        ("OPTIONS /calls/m", Code.METHOD, "*"),
        ("GET /things/", Code.NOT_FOUND, ""),
        ("GET /things//1", Code.NOT_FOUND, ""),
        ("GET /things/a/1/2", Code.NOT_FOUND, ""),
        ("GET /closed/run", Code.NOT_FOUND, ""),
        ("GET /closed/x/y", Code.NOT_FOUND, ""),
        ("GET /closed", Code.NOT_FOUND, ""),
        ("GET /", Code.NOT_FOUND, ""),
        ("GET things", Code.NOT_FOUND, ""),
    ],
)
def test_what_is_not_found_is_said_only_when_asked(request_line: str, code: Code, allow: str) -> None:
    method, path = request_line.split()
    asked.clear()
    with pytest.raises(RouteRefusal) as raised:
        TREE.find(Head(method, path, "", {}))
    error = anew(raised.value)
    assert (error.code, error.metadata["allow"], asked) == (code, allow, [])
    assert error.message == str(error) == f"no {path}; {allow}"
    assert allow_line(error) == (f"Allow: {allow}\r\n".encode() if allow else b"")
    assert asked == [path]


def test_a_name_that_is_no_utf8_is_refused_once_the_method_fits() -> None:
    with pytest.raises(ServeError) as raised:
        TREE.find(Head("GET", "/things/%FF", "", {}))
    assert raised.value.code is Code.INVALID


def test_the_target_has_what_its_row_says() -> None:
    assert TREE.find(Head("GET", "/things/a", "", {})) == Target("one", "a", scope=AccessScope.INFER)
    assert TREE.find(Head("GET", "/things/a:run", "", {})) == Target("run", "a", takes_body=True)
    assert TREE.find(Head("GET", "/things/a/1", "", {})) == Target("version", "a", "1", is_served=False)


def test_all_else_is_made_of_the_rows() -> None:
    assert prefixes(ROWS) == ("things", "things/...:run", "calls", ".../run", "closed", ".../y")
    assert endpoints(ROWS[4:6]) == (
        Endpoint("GET", "/things/{model}/{version}"),
        Endpoint("*", "/calls/{model}/..."),
    )
    assert [row.path for row in with_slash(ROWS[:1])] == ["/things", "/things/"]
