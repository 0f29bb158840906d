"""Requests of all kinds, as bytes, for servers that have to give the same answers: right ones and wrong ones over every
wire, for the models of `tests.fixtures.models` and the handlers of the demo, in the order in which they are sent.
"""

import json
from collections.abc import Iterator

from tests.e2e.wrong_requests import CASES, LIMIT, ROW, blob_input, in_binary
from tests.fixtures.models import KINDS
from tests.harness.raw_http import get, infer_request, post, tensor

from trivium.demo import places

UNREADABLE = {
    "http: no HTTP at all",
    "http: no version",
    "http: two lengths",
    "http: length and chunks",
    "http: negative length",
    "http: header of 1 MB",
    "http: path of 1 MB",
}
"""Cases of `wrong_requests` that no server hands over: it answers them itself."""

OPTIONS = {"max_body_bytes": LIMIT, "cors": "https://page.example"}
"""Options of the server that is asked."""

_READS = (
    "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/add", "/v2/models/add/ready", "/v2/models/add/config",
    "/v2/models/add/versions/1", "/v2/models/add/versions/9", "/v2/models/nobody", "/v2/models/nobody/ready",
    "/v2/models/kinds", "/v2/models/text/config", "/v2/logging", "/v2/trace/setting", "/v2/systemsharedmemory/status",
    "/v2/models/echo/versions/1/ready", "/v2/models/%61dd", "/v2/models/a%2Fb", "/v2/models/add?x=1", "/v2//models",
    "/v1/models", "/v1/models/add", "/v1/models/nobody", "/ping", "/models", "/models/nobody", "/version",
    "/nothing", "/", "/v2/", "/%zz", "/api/v1/nothing", "/openapi.json", "/docs", "/console", "/favicon.ico",
    "/models?limit=2", "/models?limit=none", "/health",
)  # fmt: skip

VOLATILE = (
    "/metrics",
    "/v2/models/add/stats",
    "/api/v1/overview",
    "/v2/models/stats",
    "/server",
    "/models/add",
)
"""Paths whose answers say how often and how long: of them status and header are compared."""

_PAGE = b"Origin: https://page.example\r\n"
_PREFLIGHT = b"Access-Control-Request-Method: POST\r\n"


def recorded() -> dict[str, bytes]:
    """All of them, by what they are."""
    found = {name: case[0] for name, case in CASES.items() if name not in UNREADABLE}
    found |= {f"read {path}": get(path) for path in (*_READS, *VOLATILE)}
    found |= {f"head {path}": get(path, method=b"HEAD") for path in ("/v2", "/v2/health/ready", "/nothing")}
    for make in (_inferences, _binaries, _verbs, _pages, _bodies, _handlers, _chunks):
        found |= dict(make())
    return found


def _inferences() -> Iterator[tuple[str, bytes]]:
    for rows in (1, 2, 16):
        data = [[float(row), 2, 3, 4] for row in range(rows)]
        yield f"echo of {rows} rows", infer_request("echo", tensor("x", data, [rows, 4]))
        yield (
            f"the same, by its id, of {rows}",
            infer_request("echo", tensor("x", data, [rows, 4]), id=f"r{rows}"),
        )
    pair = [tensor(name, [1, 2, 3, 4], [4]) for name in ("a", "b")]
    yield "add", infer_request("add", *pair)
    yield "add, an output by name", infer_request("add", *pair, outputs=[{"name": "sum"}])
    whole = [tensor(name, [1, 2, 3, 4], [4], "INT32") for name in ("a", "b")]
    yield "sum and difference", infer_request("sum_and_difference", *whole)
    yield "one of two outputs", infer_request("sum_and_difference", *whole, outputs=[{"name": "difference"}])
    yield "texts", infer_request("text", tensor("text", ["é", "b"], [2, 1], "BYTES"))
    document = {"inputs": [ROW]}
    for path in (
        "/v2/models/echo/versions/1/infer",
        "/v2/models/echo/versions/2/infer",
        "/v2/models/echo/infer?a=b",
    ):
        yield path, post(path, json.dumps(document).encode())


def _binaries() -> Iterator[tuple[str, bytes]]:
    row = blob_input([1, 4], 16)
    yield "binary in", in_binary(-1, row, bytes(16))
    wanted = json.dumps({"inputs": [ROW], "outputs": [{"name": "y", "parameters": {"binary_data": True}}]})
    yield "binary out", post("/v2/models/echo/infer", wanted.encode())
    for rows in (100, 6000):  # of 1,600 bytes, and of more than passes in one piece
        text = json.dumps({"inputs": [blob_input([rows], rows * 4 + rows, "BYTES")]}).encode()
        data = b"\x01\x00\x00\x00x" * rows
        length = b"Inference-Header-Content-Length: %d\r\n" % len(text)
        yield f"binary texts, {rows}", post("/v2/models/bytes/infer", text + data, length)
    for kind in KINDS:
        yield f"one kind, {kind}", infer_request("kinds", tensor(f"in_{kind}", [1, 1], [2, 1], kind))


def _verbs() -> Iterator[tuple[str, bytes]]:
    for method in (b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"PURGE"):
        for path in ("/v2/models/echo/infer", "/v2", "/nothing", "/predictions/echo"):
            yield f"{method.decode()} {path}", get(path, method=method)
    yield "an index", post("/v2/repository/index", b"")
    yield "an index of those that are ready", post("/v2/repository/index", b'{"ready": true}')
    yield "load of nobody", post("/v2/repository/models/nobody/load", b"")
    yield "unload of nobody", post("/v2/repository/models/nobody/unload", b"{}")
    yield "a level of logs", post("/v2/logging", b'{"log_verbose_level": 0}')


def _pages() -> Iterator[tuple[str, bytes]]:
    for path in ("/v2", "/v2/models/echo/infer", "/nothing"):
        yield f"preflight {path}", get(path, _PAGE + _PREFLIGHT, b"OPTIONS")
        yield (
            f"preflight of another page {path}",
            get(path, b"Origin: https://x\r\n" + _PREFLIGHT, b"OPTIONS"),
        )
        yield f"by a page {path}", get(path, _PAGE)
    yield "a change by a page", post("/v2/repository/models/add/unload", b"", _PAGE)
    host = (
        b"POST /v2/repository/models/add/unload HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"
    )
    yield "a change by a name that is not ours", host


def _bodies() -> Iterator[tuple[str, bytes]]:
    yield "a body where none is taken", get("/v2", b"Content-Length: 5\r\n") + b"hello"
    yield "a kind of body that is none", post("/v2/models/echo/infer", b"a=b", b"Content-Type: text/csv\r\n")
    yield "a model of rows", post("/v1/models/echo:predict", b'{"instances": [[1, 2, 3, 4]]}')
    yield "a prediction", post("/predictions/echo", b"[[1, 2, 3, 4]]", b"Content-Type: application/json\r\n")
    yield "another expectation", get("/v2", b"Expect: a-miracle\r\n")
    chat = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}
    yield "a chat with no language model", post("/v1/chat/completions", json.dumps(chat).encode())


def _chunks() -> Iterator[tuple[str, bytes]]:
    document = json.dumps({"inputs": [ROW]}).encode()
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    for size in (1, 7, 1000):
        pieces = [document[start : start + size] for start in range(0, len(document), size)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        yield f"chunks of {size}", head + body + b"0\r\n\r\n"


def _handlers() -> Iterator[tuple[str, bytes]]:
    for path in places.pictures()[:4]:
        picture = path.read_bytes()
        for model in ("digits-djl", "digits-python", "digits-torchserve"):
            asked = post(f"/predictions/{model}", picture, b"Content-Type: image/png\r\n")
            yield f"{path.stem} to {model}", asked
    yield "no picture", post("/predictions/digits-djl", b"hello", b"Content-Type: image/png\r\n")
    yield "no body", post("/predictions/digits-djl", b"")
