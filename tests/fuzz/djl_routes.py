"""Requests to both listeners of a DJL server: method, path, query and headers, to whatever protocol owns the route."""

import json
import random
import re

from tests.fuzz import mutations
from tests.fuzz.target import Change, Target

from trivium.app import Site, http_routes
from trivium.catalogue import CATALOGUE
from trivium.config.loading import from_process
from trivium.servers.djl.wire.options import LazyRule
from trivium.types import reasons
from trivium.types.by_type import ByType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Listener, Role
from trivium.types.log_settings import LogSettings
from trivium.types.operations import (
    Defer,
    Deferred,
    Describe,
    DescribeAll,
    Fetch,
    Fetched,
    Infer,
    List,
    Listing,
    Live,
    LogControl,
    LogReport,
    ModelDescriptions,
    Operation,
    Readiness,
    ResponsePart,
    ServerDescription,
    VersionStatus,
)
from trivium.types.payload import Raw, RawPart
from trivium.types.sources import ModelSource
from trivium.types.state import ServerState, VersionState
from trivium.types.wire import Body, CostlyAnswer, Head, HttpAnswer

KINDS = (Role.INFERENCE, Role.MANAGEMENT)
_FIELDS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: ?[^\r\n\0]*\r\n)*")


def listeners() -> tuple[Listener, ...]:
    """One for both APIs, and one for each."""
    both = next(each for each in CATALOGUE.profiles["djl"].listeners if each.name == "HTTP")
    alone = [
        Listener(
            both.name, role, both.transport, tuple(r for r in both.routes if r.role is role), both.fallback
        )
        for role in KINDS
    ]
    return (both, *alone)


def made(listener: Listener, lazy: bool) -> object:
    options = {"profile": "djl", "djl_prometheus": True, "djl_error_rates": "any=9"}
    config = from_process(CATALOGUE.schema, None, options).config
    states = ByType(LazyRule(re.compile("file:///m.*"))) if lazy else ByType()
    return http_routes(Site(CATALOGUE, config, states=states), listener)


OWNERS = tuple(made(listener, lazy) for listener in listeners() for lazy in (False, True))


def request(line: str, body: bytes = b"", *headers: str) -> bytes:
    """An input: method and path with the query, headers, an empty line, the body."""
    return "\n".join((line, *headers, "", "")).encode() + body


FORM = b'--b\r\nContent-Disposition: form-data; name="model_name"\r\n\r\nm\r\n--b--\r\n'
CORPUS = (
    request("POST /predictions/m", b"x", "content-type: text/plain", "x-request-id: 7", "x-priority: 3"),
    request("GET /predictions/m/v1?a=1&a=2&adapter=x"),
    request("OPTIONS /predictions/m"),
    request("OPTIONS /"),
    request("POST /invocations?model_name=m&model_version=1", b"{}", "content-type: application/json"),
    request("POST /invocations", FORM, "content-type: multipart/form-data; boundary=b"),
    request("POST /invocations", b"x", "x-amzn-sagemaker-custom-attributes: model_name=m;a=b"),
    request("POST /models/m/invoke", b"x", "x-synchronous: false"),
    request("POST /predictions/m", b"", f"x-starting-token: {'0' * 36}12", "x-max-items: 3"),
    request("POST /predictions/new?model_url=file:///models/new", b"x", "engine_name: Python", "device: cpu"),
    request("POST /v1/chat/completions", b'{"adapters": "a"}', "content-type: application/json"),
    request("GET /ping"),
    request(
        "POST /models?url=file:///models/m&model_name=n&model_version=2&batch_size=3&min_worker=1&synchronous=false"
    ),
    request("POST /models", b'{"url": "m", "batch_size": 2}', "content-type: application/json"),
    request("GET /models?limit=2&next_page_token=1"),
    request("GET /workflows?limit=2"),
    request("GET /models/m/v1"),
    request("PUT /models/m?min_worker=1&max_worker=2&device=0"),
    request("DELETE /workflows/m/v1"),
    request("POST /workflows?url=file:///w"),
    request("POST /models/m/adapters?name=a&src=/models/a&preload=true"),
    request("POST /adapters/a/update?src=/b"),
    request("GET /models/m/adapters?limit=1"),
    request("DELETE /models/m/adapters/a"),
    request("POST /server/logging?level=debug"),
    request("GET /server/metrics?name[]=WlmError"),
    request("GET /metrics"),
    request("GET /v2/health/ready"),
    request("GET /v2/models/m/versions/1"),
    request("GET /v2/models/m/version/1/ready"),
    request(
        "POST /v2/models/m/infer",
        b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]}',
    ),
)
TOKENS = (
    b"/predictions/", b"/invocations", b"/models/", b"/workflows", b"/adapters", b"/invoke", b"/update", b"/server/",
    b"/ping", b"/v2/models/", b"/versions/", b"//", b"/../", b"%2F", b"%00", b"%ff", b"%", b"?", b"&", b"=", b"#", b";",
    b"url=", b"model_name=", b"model_url=", b"min_worker=", b"max_worker=-1", b"limit=", b"device=", b"name[]=",
    b"level=",
    b"file:///", b"s3://", b"djl://", b"-1", b"99999999999", b"HEAD ", b"PATCH ", b"OPTIONS ", b"x-priority: ",
    b"x-starting-token: ", b"x-max-items: ", b"x-synchronous: false", b"handler: f", b"content-type: ", b"\r",
    b"\xc3\xa4",
    b"x-amzn-sagemaker-custom-attributes: a=b;c", b"accept: tensor/npz",
)  # fmt: skip

SOURCE = ModelSource("file:///models/m\u00e4", "m", "v1", "Python")
ROWS = tuple(
    VersionStatus(model, "1", state, "why", SOURCE, is_versioned, True)
    for model, state, is_versioned in (
        ("m", VersionState.READY, True),
        ("m\ud800", VersionState.FAILED, False),
        ("n", VersionState.LOADING, True),
    )
)


def answer_of(operation: Operation, chance: random.Random, data: bytes) -> ResponsePart:
    """A part that the core may give, or an error that it may raise."""
    if chance.random() < 0.25:
        reason = chance.choice(
            (reasons.UNKNOWN_MODEL, reasons.QUEUE_FULL, reasons.UNKNOWN_TOKEN, reasons.UNKNOWN_CALL)
        )
        info = ErrorInfo.of(reason, model="m\r\n", version="1", topic="a")
        return ResponsePart(
            error=ServeError(chance.choice(list(Code)), "no\r\nline: x\udc80", 1.5, info=info)
        )
    match operation:
        case Live():
            return ResponsePart(answer=Readiness(True))
        case List():
            return ResponsePart(answer=Listing(ROWS))
        case Describe("", _):
            return ResponsePart(answer=ServerDescription("trivium", "1", ServerState.SERVING))
        case DescribeAll():
            return ResponsePart(answer=ModelDescriptions(ROWS, ()))
        case Defer():
            return ResponsePart(answer=Deferred("0" * 36))
        case Fetch():
            parts = tuple(raw(chance, data) for _ in range(chance.choice((0, 1, 3))))
            return ResponsePart(answer=Fetched(parts, len(parts), chance.random() < 0.5, True))
        case LogControl():
            return ResponsePart(answer=LogReport(LogSettings(0, True, True, True)))
        case Infer():
            return raw(chance, data)
        case _:
            return ResponsePart(answer=Listing(ROWS)) if chance.random() < 0.5 else ResponsePart()


def raw(chance: random.Random, data: bytes) -> ResponsePart:
    """What a handler answers, with properties from anywhere."""
    text = data[:200].decode("latin-1")
    properties = {"x-own": "1", **({text[:20]: text[20:]} if chance.random() < 0.5 else {})}
    status = chance.choice((0, 200, 204, 299, 424, 507, 700, 10, 10000))
    part = RawPart(data, chance.choice(("", "text/plain", "a\r\nb: c")))
    return ResponsePart(
        payload=Raw((part,), properties, status=status, reason=text[:40]), model="m", version="1"
    )


def check(answer: HttpAnswer) -> None:
    """It can be sent, and no property has broken out of its line."""
    if isinstance(answer, CostlyAnswer):
        answer = answer.write()
    if answer.status == 0:  # it waits for a later part
        return
    assert 200 <= answer.status <= 999, answer.status
    assert _FIELDS.fullmatch(answer.fields), answer.fields
    assert answer.reason is None or not re.search(rb"[\r\n]", answer.reason), answer.reason
    assert answer.size == sum(map(len, answer.buffers))
    if b"Content-Type: application/json" in answer.fields and len(answer.buffers) == 1:
        json.loads(answer.buffers[0])


def check_refusal(answer: HttpAnswer, why: ServeError) -> None:
    """It is no fault of ours, and can be sent."""
    assert 400 <= answer.status < 500 or why.code is Code.UNSUPPORTED, why.message
    check(answer)


def read_route(data: bytes, chance: random.Random) -> None:
    """As a front end does: the owner of the path's first segment, its head, decode, encode and refuse."""
    lines, _, body = data.partition(b"\n\n")
    line, *rest = lines.split(b"\n")
    method, _, url = line.decode("latin-1").partition(" ")
    path, _, query = url.partition("?")
    headers = {}
    for one in rest:
        name, colon, value = one.partition(b":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    owners, fallback = chance.choice(OWNERS)
    protocol = owners.get(path.lstrip("/").partition("/")[0], fallback)
    head = Head(method, path, query, headers, len(body))
    try:
        target = protocol.head(head)
        protocol.is_costly(head, body)
        operation, encoder = protocol.decode(head, target, Body(body))
    except ServeError as error:
        check_refusal(protocol.refuse(error), error)
        raise
    check(encoder.encode(answer_of(operation, chance, data)))


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """The line alone, the headers alone, or the body alone is damaged."""
    lines, _, body = entry.partition(b"\n\n")
    line, *rest = lines.split(b"\n")
    match chance.randrange(3):
        case 0:
            line = change(line).replace(b"\n", b"")
        case 1:
            rest = change(b"\n".join(rest)).split(b"\n")
        case _:
            body = change(body)
    return b"\n".join((line, *rest)) + b"\n\n" + body


TARGETS = (
    Target("djl_routes", CORPUS, read_route, tokens=(*TOKENS, *mutations.JSON_VALUES), rebuild=rebuilt),
)
