"""What is asked over HTTP, by tables: routes, bodies, words for the model that answers as it is told, and bad ones."""

import random
from collections.abc import Mapping, Sequence
from itertools import product

from tests.e2e.torchserve_beside.exchange import Request

SEED = 26
DRAWN = 60
"""Of all pairs of a route and a body, so many."""

Body = tuple[Sequence[str], bytes]
"""Header fields, and the body."""


def http(
    method: str, target: str, body: bytes = b"", fields: Sequence[str] = (), length: bool = True
) -> bytes:
    """The bytes of one request."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *fields]
    if length and (body or method in ("POST", "PUT", "PATCH")):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _typed(kind: str, body: bytes) -> Body:
    return (f"Content-Type: {kind}",), body


def _parts(*parts: tuple[str, bytes], end: bytes = b"--b--\r\n") -> Body:
    body = b"".join(b"--b\r\n%s\r\n\r\n%s\r\n" % (head.encode(), data) for head, data in parts)
    return _typed("multipart/form-data; boundary=b", body + end)


def _part(name: str, file: str = "", kind: str = "") -> str:
    named = f'Content-Disposition: form-data; name="{name}"' + (f'; filename="{file}"' if file else "")
    return named + (f"\r\nContent-Type: {kind}" if kind else "")


FORM, JSON = "application/x-www-form-urlencoded", "application/json"

BODIES: Mapping[str, Body] = {
    "no body": ((), b""),
    "bytes": ((), b"a\x00\xff"),
    "binary": _typed("application/octet-stream", b"\x01\x02"),
    "a picture": _typed("image/png", b"\x89PNG"),
    "JSON": _typed(JSON, b'{"a": [1, 2.5, null], "b": "\xc3\xa4"}'),
    "JSON with a charset": _typed(f"{JSON}; charset=utf-8", b'{"a": 1}'),
    "JSON in capitals": _typed("Application/JSON", b'{"a": 1}'),
    "a JSON number": _typed(JSON, b"7"),
    "JSON null": _typed(JSON, b"null"),
    "no JSON": _typed(JSON, b"{a"),
    "empty JSON": _typed(JSON, b""),
    "JSON of no text": _typed(JSON, b"\xff"),
    "a suffix of JSON": _typed("application/vnd.api+json", b"[1]"),
    "text": _typed("text/plain", "ä".encode()),
    "text with a charset": _typed("text/plain; charset=iso-8859-1", b"\xe4"),
    "text that is none": _typed("text/plain", b"\xff"),
    "CSV": _typed("text/csv", b"1,2\n3,4\n"),
    "an unknown type": _typed("nonsense", b"x"),
    "a form": _typed(FORM, b"a=b&c=d"),
    "a form with escapes": _typed(FORM, b"a=b+c%20d&%C3%A4=%FF"),
    "a form with a name twice": _typed(FORM, b"a=1&a=2"),
    "a form with an empty value": _typed(FORM, b"a=&b=1"),
    "a bare word": _typed(FORM, b"word"),
    "an empty form": _typed(FORM, b""),
    "a form with a bad escape": _typed(FORM, b"a=%zz"),
    "a form with data": _typed(FORM, b"data=1&body=2"),
    "a field": _parts((_part("data"), b"1")),
    "a field of JSON": _parts((_part("data", kind=JSON), b'{"a": 1}')),
    "two fields": _parts((_part("data"), b"1"), (_part("more"), b"2")),
    "a field twice": _parts((_part("data"), b"1"), (_part("data"), b"2")),
    "a file": _parts((_part("data", "f.bin"), b"\x00\xff")),
    "a file of text": _parts((_part("data", "f.txt", "text/plain"), b"text")),
    "a file of JSON": _parts((_part("data", "f.json", JSON), b'{"a": 1}')),
    "a file of no JSON": _parts((_part("data", "f.json", JSON), b"{")),
    "no parts": _parts(),
    "a part without a name": _parts(("Content-Disposition: form-data", b"1")),
    "a part without an end": _parts((_part("data"), b"1"), end=b""),
    "no boundary": _typed("multipart/form-data", b"--b\r\n\r\n1\r\n--b--\r\n"),
    "in chunks": (
        ("Content-Type: text/plain", "Transfer-Encoding: chunked"),
        b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
    ),
    "after a 100": (("Content-Type: text/plain", "Expect: 100-continue"), b"x"),
    "compressed": (("Content-Encoding: gzip", "Content-Type: text/plain"), b"\x1f\x8bno"),
    "headers": (("X-Own: 1", "x-small: 2", "X-TWICE: 3", "X-Twice: 4", "Accept: text/html"), b"x"),
    "an empty header": (("X-Empty:", "X-Blank:   ", "X-Long:  a  b  "), b"x"),
}

ROUTES = (
    "/predictions/view",
    "/predictions/view/1.0",
    "/predictions/view/1.0/a/b",
    "/predictions/view?a=b",
    "/explanations/view",
    "/explanations/view/1.0",
    "/invocations?model_name=view",
    "/invocations?model_name=view&a=b&a=c&d",
    "/models/view/invoke",
    "/models/view/invoke?a=b",
    "/view/predict",
    "/view/1.0/predict",
    "/view/predict?a=b",
    "/v1/models/view:predict",
    "/v1/models/view:explain",
    "/v2/models/view/infer",
    "/v2/models/view/explain",
)

METHODS = ("GET", "PUT", "DELETE", "PATCH")

WORDS = (
    "x",
    "none",
    "int",
    "float",
    "true",
    "list",
    "bytes",
    "text",
    "json",
    "nan",
    "status 201",
    "status 404",
    "status 299",
    "status 500",
    "type application/json",
    "type text/html; charset=x",
    "header 1",
    "header",
)
"""For the model `says`, which answers with them."""

FAULTS = (
    "raise value",
    "raise memory",
    "raise key",
    "cuda",
    "plain",
    "code 400",
    "code 404",
    "code 413",
    "code 429",
    "code 503",
    "code 507",
    "code 513",
    "code 599",
    "not a list",
    "too many",
    "object",
    "set",
)
"""For the same one, which fails by them."""

_LONG = "x" * 30_000

GOOD: Mapping[str, bytes] = {
    **{f"{method} {route}": http(method, route) for route in ROUTES[:1] for method in METHODS},
    **{f"says {word}": http("POST", "/predictions/says", word.encode()) for word in WORDS},
    "a stream": http("POST", "/predictions/stream", b"x"),
    "a stream for an old client": b"POST /predictions/stream HTTP/1.0\r\nContent-Length: 1\r\n\r\nx",
    "a function": http("POST", "/predictions/function", b"x"),
    "a batch of one": http("POST", "/predictions/names", b"x"),
    "a sequence": http("POST", "/predictions/sequences", b"1", ["ts_request_sequence_id: a"]),
    "the sequence goes on": http("POST", "/predictions/sequences", b"2", ["ts_request_sequence_id: a"]),
    "a count": http("POST", "/predictions/counts", b"3"),
    "a ticket": http("POST", "/predictions/ticket", b"x"),
    "ping": http("GET", "/ping"),
    "ping by POST": http("POST", "/ping"),
    "ping with a query": http("GET", "/ping?x=y"),
    "a client that closes": http("GET", "/ping", fields=["Connection: close"]),
    "an old client": b"GET /ping HTTP/1.0\r\n\r\n",
    "an old client that stays": b"GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "a prediction for a client that closes": http(
        "POST", "/predictions/says", b"x", fields=["Connection: close"]
    ),
    "an address in full": http("GET", "http://localhost/ping"),
    "an escaped name": http("POST", "/predictions/%73ays", b"x"),
    "readiness by v1": http("GET", "/v1/models/says"),
}

BAD: Mapping[str, bytes] = {
    **{f"says {word}": http("POST", "/predictions/says", word.encode()) for word in FAULTS},
    "a stream that fails": http("POST", "/predictions/stream", b"fail"),
    **{
        f"{method} {path}": http(method, path)
        for method, path in product(
            ("GET", "POST"),
            (
                "/",
                "/nope",
                "/predictions",
                "/predictions/",
                "/predictions/nobody",
                "/predictions/view/9",
                "/explanations/nobody",
                "/models/nobody/invoke",
                "/nobody/predict",
                "/v1/models/nobody:predict",
                "/v2/models/nobody/infer",
                "/invocations",
                "/invocations?model_name=nobody",
                "/predictions/fails",
                "/models",
                "/models/says",
                "/metrics",
                "/wfpredict/nobody",
                "/v2",
                "/v2/health/live",
                "/v1/models/nobody",
                "/v1/models/view",
                "/ping/",
                "/PING",
                "//ping",
                "/predictions/view%2f1.0",
                "/predictions/..%2f",
                "/token",
            ),
        )
    },
    "too long a body": http("POST", "/predictions/view", _LONG.encode()),
    "too long a body in chunks": http(
        "POST",
        "/predictions/view",
        b"7530\r\n" + _LONG.encode() + b"\r\n0\r\n\r\n",
        ["Transfer-Encoding: chunked"],
        length=False,
    ),
    "too long an address": http("GET", f"/{_LONG}"),
    "too long a header": http("GET", "/ping", fields=[f"X-Long: {_LONG}"]),
    "no length": http("POST", "/predictions/view", length=False),
    "a length that is none": http("POST", "/predictions/view", fields=["Content-Length: x"], length=False),
    "a negative length": http("POST", "/predictions/view", fields=["Content-Length: -1"], length=False),
    "no version of HTTP": b"GET /ping\r\n\r\n",
    "another version of HTTP": b"GET /ping HTTP/3.7\r\nHost: x\r\n\r\n",
    "no request": b"\x16\x03\x01\x00\r\n\r\n",
    "a header without a colon": http("GET", "/ping", fields=["nonsense"]),
    "a blank before a colon": http("GET", "/ping", fields=["X-Own : 1"]),
    "a chunk that is none": http(
        "POST", "/predictions/view", b"zz\r\n", ["Transfer-Encoding: chunked"], length=False
    ),
    "CONNECT": http("CONNECT", "/ping"),
    "TRACE": http("TRACE", "/predictions/nobody"),
}

MANAGEMENT_GOOD: Mapping[str, bytes] = {
    "the list": http("GET", "/models"),
    "the list by two": http("GET", "/models?limit=2"),
    "the list's second page": http("GET", "/models?limit=2&next_page_token=2"),
    "the list's last page": http("GET", "/models?limit=100&next_page_token=7"),
    "the list behind its end": http("GET", "/models?limit=2&next_page_token=99"),
    "the list by no number": http("GET", "/models?limit=x&next_page_token=y"),
    "the list by a negative number": http("GET", "/models?limit=-1&next_page_token=-5"),
    "the list by 0": http("GET", "/models?limit=0"),
    **{
        f"describe {path}": http("GET", f"/models/{path}")
        for path in (
            "view",
            "view/1.0",
            "view/all",
            "says",
            "names",
            "sequences",
            "counts",
            "ticket",
            "names?customized=true",
            "view?customized=true",
            "view?customized=false",
            "names/1.0?customized=true",
        )
    },
    "scale to what it has": http("PUT", "/models/view?min_worker=1&synchronous=true"),
    "scale a version": http("PUT", "/models/view/1.0?min_worker=1&max_worker=1&synchronous=true"),
    "scale and do not wait": http("PUT", "/models/view?min_worker=1"),
    "set the default": http("PUT", "/models/view/1.0/set-default"),
}

MANAGEMENT_BAD: Mapping[str, bytes] = {
    **{
        f"{method} {path}": http(method, path)
        for method, path in (
            ("GET", "/"),
            ("POST", "/"),
            ("GET", "/nope"),
            ("GET", "/ping"),
            ("GET", "/metrics"),
            ("GET", "/predictions/view"),
            ("GET", "/models/nobody"),
            ("GET", "/models/view/9"),
            ("GET", "/models/nobody/all"),
            ("GET", "/models/nobody?customized=true"),
            ("POST", "/models"),
            ("POST", "/models?url="),
            ("POST", "/models?model_name=x"),
            ("POST", "/models?url=nobody.mar"),
            ("POST", "/models?url=broken.mar"),
            ("POST", "/models?url=notes.txt"),
            ("POST", "/models?url=view.mar"),
            ("POST", "/models?url=other.mar&runtime=ruby"),
            ("POST", "/models?url=..%2Fview.mar"),
            ("POST", "/models?url=ftp://localhost/x.mar"),
            ("PUT", "/models"),
            ("PUT", "/models/nobody"),
            ("PUT", "/models/nobody?min_worker=1&synchronous=true"),
            ("PUT", "/models/view/9?min_worker=1"),
            ("PUT", "/models/view?min_worker=2&max_worker=1"),
            ("PUT", "/models/nobody/1.0/set-default"),
            ("PUT", "/models/view/9/set-default"),
            ("PUT", "/models/view/set-default"),
            ("GET", "/models/view/1.0/set-default"),
            ("DELETE", "/models"),
            ("DELETE", "/models/nobody"),
            ("DELETE", "/models/view/9"),
            ("PATCH", "/models/view"),
            ("POST", "/models/view"),
            ("GET", "/models/"),
            ("GET", "/token"),
            ("GET", "/token?type=inference"),
            ("GET", "/workflows"),
        )
    },
    "register by JSON that is none": http("POST", "/models", b"{", [f"Content-Type: {JSON}"]),
    "register by an empty object": http("POST", "/models", b"{}", [f"Content-Type: {JSON}"]),
    "register by an array": http("POST", "/models", b"[]", [f"Content-Type: {JSON}"]),
}

METRICS: Mapping[str, bytes] = {
    "metrics": http("GET", "/metrics"),
    "metrics by POST": http("POST", "/metrics"),
    "metrics by name": http("GET", "/metrics?name[]=Requests2XX"),
}

METRICS_BAD: Mapping[str, bytes] = {
    "GET / for metrics": http("GET", "/"),
    "GET /nope for metrics": http("GET", "/nope"),
    "GET /ping for metrics": http("GET", "/ping"),
}


def drawn() -> list[tuple[str, str]]:
    """Pairs of a route and a body: each once, and so many more by the seed."""
    chance = random.Random(SEED)
    routes, bodies = list(ROUTES), list(BODIES)
    pairs = [(ROUTES[0], body) for body in bodies] + [(route, "JSON") for route in routes[1:]]
    rest = [pair for pair in product(routes, bodies) if pair not in pairs]
    return pairs + sorted(chance.sample(rest, DRAWN))


def open_requests() -> list[Request]:
    """All that is asked of the server that is open to everybody."""
    requests = []
    for route, body in drawn():
        fields, data = BODIES[body]
        is_chunked = any("chunked" in field for field in fields)
        sent = http("POST", route, data, fields, length=not is_chunked)
        requests.append(Request(f"{body} to {route}", False, "inference", sent))
    for listener, is_bad, table in (
        ("inference", False, GOOD),
        ("inference", True, BAD),
        ("management", False, MANAGEMENT_GOOD),
        ("management", True, MANAGEMENT_BAD),
        ("metrics", False, METRICS),
        ("metrics", True, METRICS_BAD),
    ):
        requests += [Request(f"{listener}: {name}", is_bad, listener, data) for name, data in table.items()]
    return requests
