import pytest

from trivium.codecs.error_table import allow_line
from trivium.codecs.routes import RouteRefusal
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, Target
from trivium.wires.v2.routes import TREE, Verb


def target(method, path):
    return TREE.find(Head(method, path, "", {}))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v2", Target(Verb.METADATA, scope=AccessScope.INFER)),
        ("/v2/health/live", Target(Verb.LIVE, scope=AccessScope.OPEN)),
        ("/v2/health/ready", Target(Verb.READY, scope=AccessScope.OPEN)),
        ("/v2/models/stats", Target(Verb.STATISTICS, scope=AccessScope.OBSERVE)),
        ("/v2/models/m", Target(Verb.METADATA, "m", scope=AccessScope.INFER)),
        ("/v2/models/m/ready", Target(Verb.READY, "m", scope=AccessScope.INFER)),
        ("/v2/models/m/config", Target(Verb.CONFIG, "m", scope=AccessScope.OBSERVE)),
        ("/v2/models/m/stats", Target(Verb.STATISTICS, "m", scope=AccessScope.OBSERVE)),
        ("/v2/models/m/versions/3", Target(Verb.METADATA, "m", "3", scope=AccessScope.INFER)),
        ("/v2/models/m/versions/3/ready", Target(Verb.READY, "m", "3", scope=AccessScope.INFER)),
        ("/v2/models/m/versions/3/config", Target(Verb.CONFIG, "m", "3", scope=AccessScope.OBSERVE)),
        ("/v2/models/m/versions/3/stats", Target(Verb.STATISTICS, "m", "3", scope=AccessScope.OBSERVE)),
        ("/v2/models/versions", Target(Verb.METADATA, "versions", scope=AccessScope.INFER)),
        ("/v2/models/stats/stats", Target(Verb.STATISTICS, "stats", scope=AccessScope.OBSERVE)),
        ("/v2/models/m%2Fn%20%C3%A4", Target(Verb.METADATA, "m/n ä", scope=AccessScope.INFER)),
    ],
)
def test_read_routes(path, expected):
    assert target("GET", path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v2/models/m/infer", Target(Verb.INFER, "m", "", True, scope=AccessScope.INFER)),
        ("/v2/models/m/versions/12/infer", Target(Verb.INFER, "m", "12", True, scope=AccessScope.INFER)),
        (
            "/v2/models/%6D/versions/1%2E0/infer",
            Target(Verb.INFER, "m", "1.0", True, scope=AccessScope.INFER),
        ),
    ],
)
def test_infer_routes(path, expected):
    assert target("POST", path) == expected


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/", "/v2"),
        ("/v1", "/v2"),
        ("/v2/", "/v2"),
        ("/v2/health", "/v2/health/live"),
        ("/v2/health/alive", "/v2/health/live"),
        ("/v2/models", "/v2/models/MODEL"),
        ("/v2/models/", "/v2/models/MODEL"),
        ("/v2/models/m/", "/v2/models/m"),
        ("/v2/models//infer", "/v2/models/MODEL/infer"),
        ("/v2/models/m/infr", "/v2/models/m/infer"),
        ("/v2/models/m/versions/", "/v2/models/m/versions/1"),
        ("/v2/models/m/versions//infer", "/v2/models/m/versions/1/infer"),
        ("/v2/models/m/versions/1/", "/v2/models/m/versions/1"),
        ("/v2/models/m/versions/1/infer/x", "/v2/models/m/versions/1/infer"),
        ("v2", "/v2"),
        ("/v2/models/m/" + "x" * 100_000, "/v2/models/m/infer"),
    ],
)
def test_other_paths_are_refused_naming_routes_near_by(path, near):
    with pytest.raises(ServeError) as refused:
        target("GET", path)
    assert refused.value.code is Code.NOT_FOUND
    assert near in refused.value.message.partition("Routes near it: ")[2].rstrip(".").split(", ")
    assert len(refused.value.message) < 1000


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v2/models/m/infer", b"Allow: POST\r\n"),
        ("PUT", "/v2/models/m/versions/1/infer", b"Allow: POST\r\n"),
        ("POST", "/v2/models/m", b"Allow: GET, HEAD\r\n"),
        ("POST", "/v2", b"Allow: GET, HEAD\r\n"),
        ("DELETE", "/v2/health/live", b"Allow: GET, HEAD\r\n"),
        ("OPTIONS", "/v2/models/stats", b"Allow: GET, HEAD\r\n"),
        ("get", "/v2", b"Allow: GET, HEAD\r\n"),
    ],
)
def test_other_methods_are_told_which(method, path, allow):
    with pytest.raises(RouteRefusal, match=f"'{method}'") as refused:
        target(method, path)
    assert refused.value.code is Code.METHOD
    assert allow_line(refused.value) == allow


def test_a_name_that_is_no_utf8_is_refused():
    with pytest.raises(ServeError, match="percent-encoded UTF-8") as refused:
        target("GET", "/v2/models/%FF")
    assert refused.value.code is Code.INVALID
