"""The console's wire without a server: what each route asks of the core, and what it answers."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.harness.virtual_models import make_spec

from trivium.types.by_type import ByType
from trivium.types.console_facts import ConsoleFacts, ExampleRequest, ShownSetting, SignedIn
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.log_settings import LogChange, LogSettings
from trivium.types.observing import (
    InstanceDeath,
    InstanceOpened,
    LostNews,
    Timeline,
    Timelines,
    VersionLoad,
    WorkerSaid,
)
from trivium.types.operations import (
    Answer,
    InstanceStatus,
    Listen,
    Listing,
    Live,
    Load,
    LogControl,
    LogReport,
    ModelDescription,
    ModelDescriptions,
    Observation,
    Observe,
    Operation,
    Readiness,
    ResponsePart,
    Scale,
    Snapshot,
    Unload,
    VersionStatus,
)
from trivium.types.protocol_context import ProtocolContext
from trivium.types.spec import Device, Origin
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import Duration, StatisticsReport, VersionStatistics
from trivium.types.wire import Body, Head, HttpAnswer
from trivium.wires.operate import http

MARK = {b"trivium-console": b"1"}
MARKUP = "<img src=x onerror=alert(1)>"
READY, FAILED = VersionState.READY, VersionState.FAILED


def facts(**fields: Any) -> ConsoleFacts:
    made = {
        "profile": "native",
        "settings": (ShownSetting("http_port", "8080", "command line, --http-port"),),
        "places": {"HTTP": "http://127.0.0.1:8080"},
        "connections": {"HTTP": lambda: 3, "gRPC": lambda: 2},
        "example": lambda spec: ExampleRequest(("tensors",), "/v2/models/m/infer", body='{"inputs":[]}'),
        "files": {"index.html": b"<!doctype html>", "console.js": b"run()"},
    }
    return ConsoleFacts(**{**made, **fields})


class Wire:
    """One listener's wire, asked as a front end asks it."""

    def __init__(self, **fields: Any) -> None:
        context = ProtocolContext(
            server_version="9.9", may_change=True, states=ByType(facts(**fields)), epoch=lambda: 77.0
        )
        self.protocol = http.make(context)

    def begin(
        self, method: str, path: str, fields: Mapping[bytes, bytes] = MARK, body: bytes = b""
    ) -> tuple[Operation, Any]:
        path, _, query = path.partition("?")
        head = Head(method, path, query, {b"host": b"localhost", **fields}, len(body))
        return self.protocol.decode(head, self.protocol.head(head), Body(body))

    def answer(self, method: str, path: str, answer: Answer | None = None, **how: Any) -> HttpAnswer:
        found = self.begin(method, path, **how)[1].encode(ResponsePart(answer=answer))
        assert isinstance(found, HttpAnswer)
        return found

    def document(self, path: str, answer: Answer) -> Any:
        found = self.answer("GET", path, answer)
        assert found.status == 200
        return json.loads(b"".join(found.buffers))


def counted(version: str = "1", well: int = 7, ill: int = 2, model: str = "m") -> VersionStatistics:
    nothing = Duration()
    return VersionStatistics(
        model, version, 0, well, well, Duration(well, 9), Duration(ill, 5), nothing, nothing, nothing, nothing,
        (), {}, 0, 4, (), ((0.001, well), (float("inf"), 0)),
    )  # fmt: skip


def snapshot(*statuses: VersionStatus, **fields: Any) -> Snapshot:
    made: dict[str, Any] = {
        "when": 50.0,
        "now": 5.0,
        "started": 40.0,
        "state": ServerState.SERVING,
        "readiness": Readiness(True),
        "listing": Listing(statuses),
        "statistics": StatisticsReport((counted(),) if statuses else ()),
        "loads": (VersionLoad("m", "1", "onnx", 2, 1, 0, 3),) if statuses else (),
    }
    return Snapshot(**{**made, **fields})


SERVED = VersionStatus("m", "1", READY, is_default=True, is_loaded=True)


def observation(shot: Snapshot, **fields: Any) -> Observation:
    return Observation(shot, Timelines(), LogSettings(info=False), {"": 100, "m": 11, "n": 9}, **fields)


@pytest.mark.parametrize(
    ("method", "path", "body", "operation"),
    [
        ("GET", "/api/v1/overview", b"", Observe()),
        ("GET", "/api/v1/requests", b"", Observe()),
        ("GET", "/api/v1/settings", b"", Observe()),
        ("GET", "/api/v1/events", b"", Listen()),
        ("GET", "/api/v1/models/a%2Fb", b"", Observe("a/b")),
        ("GET", "/api/v1/models/m?version=2", b"", Observe("m", "2")),
        ("GET", "/api/v1/models/m/instances", b"", Observe("m")),
        ("GET", "/api/v1/models/m/logs", b"", Observe("m")),
        ("POST", "/api/v1/models/m/load", b"", Load("m")),
        ("POST", "/api/v1/models/m/unload", b"{}", Unload("m")),
        ("POST", "/api/v1/models/m/scale", b'{"instances":3}', Scale("m", 3, 3, wait=False)),
        (
            "POST",
            "/api/v1/settings/log-level",
            b'{"level":"info"}',
            LogControl(LogChange(0, True, True, True)),
        ),
        ("GET", "/", b"", Live()),
        ("GET", "/console/console.js", b"", Live()),
    ],
)
def test_what_a_route_asks(method: str, path: str, body: bytes, operation: Operation) -> None:
    assert Wire().begin(method, path, body=body)[0] == operation


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/v1/models/m/scale", b"", "instances"),
        ("/api/v1/models/m/scale", b'{"instances":true}', "whole number"),
        ("/api/v1/models/m/scale", b'{"instances":"2"}', "whole number"),
        ("/api/v1/models/m/scale", b"[1]", "object"),
        ("/api/v1/models/m/scale", b"{", "JSON"),
        ("/api/v1/models/m/scale", b"[" * 100_00, "JSON"),
        ("/api/v1/settings/log-level", b'{"level":"LOUD"}', "DEBUG, INFO, WARNING, ERROR"),
        ("/api/v1/settings/log-level", b"{}", "level"),
        ("/api/v1/session", b"{}", "key"),
    ],
)
def test_bodies_that_say_something_else(path: str, body: bytes, words: str) -> None:
    with pytest.raises(ServeError) as caught:
        Wire().begin("POST", path, body=body)
    assert caught.value.code is Code.INVALID
    assert words in caught.value.message


def test_a_long_body_is_refused() -> None:
    with pytest.raises(ServeError) as caught:
        Wire().begin("POST", "/api/v1/models/m/load", body=b" " * 20_000)
    assert caught.value.code is Code.TOO_LARGE


@pytest.mark.parametrize("query", ["&".join("version=1" for _ in range(11)), f"version={'1' * 20_000}"])
def test_a_long_query_is_refused(query: str) -> None:
    with pytest.raises(ServeError) as caught:
        Wire().begin("GET", f"/api/v1/models/m?{query}")
    assert caught.value.code in (Code.INVALID, Code.TOO_LARGE)


def test_the_overview_sums_what_the_statistics_count() -> None:
    two = VersionStatus("m", "2", FAILED, "no such file")
    shot = snapshot(SERVED, two, statistics=StatisticsReport((counted(), counted("2", 1, 1))))
    found = Wire().document("/api/v1/overview", observation(shot))
    assert found["totals"] == {"requests": 11, "failures": 3, "waiting": 8, "connections": 5}
    (row,) = found["models"]
    assert (row["state"], row["version"], row["engine"], row["running"]) == ("ready", "1", "onnx", 3)
    assert row["reason"] == "Version 2 is failed. no such file"
    assert row["instances"] == {"ready": 2, "starting": 1, "failed": 0}
    assert found["server"]["ready"]
    assert found["server"]["sentence"] is None


@pytest.mark.parametrize(
    ("shot", "sentence", "mend"),
    [
        (snapshot(), "No model is served yet.", "trivium serve PATH"),
        (
            snapshot(
                VersionStatus("m", "1", FAILED, "Line 3 is wrong."),
                readiness=Readiness(False, "Model 'm' is failed. Line 3 is wrong."),
            ),
            "Model 'm' is failed. Line 3 is wrong.",
            "load 'm' again",
        ),
        (
            snapshot(
                VersionStatus("m", "1", VersionState.LOADING),
                state=ServerState.STARTING,
                readiness=Readiness(False, "The server is starting.", True),
            ),
            "The server is starting: 0 of 1 versions are loaded.",
            "Wait",
        ),
        (
            snapshot(SERVED, state=ServerState.DRAINING, readiness=Readiness(False, "", True)),
            "The server is going down.",
            "elsewhere",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_mend(shot: Snapshot, sentence: str, mend: str) -> None:
    found = Wire().document("/api/v1/overview", observation(shot))
    assert found["server"]["sentence"] == sentence
    assert mend in found["server"]["mend"]


def described(**fields: Any) -> Observation:
    spec = make_spec(
        origin={"inputs[0].dims": Origin("/m/config.pbtxt", "input[0].dims", 3)},
        reports=(
            Finding(Severity.NOTICE, "/m/config.pbtxt", 4, "optimization", "not served", "", "Remove it."),
        ),
    )
    instance = InstanceStatus(1, "m_0", 2.0, True, Device.CPU, 0, 4711, 2048, 48.0)
    description = ModelDescription(spec, ("1",), instances=(instance,), opening=1)
    return observation(snapshot(SERVED), described=ModelDescriptions((SERVED,), (description,)), **fields)


def test_a_model_is_told_with_files_lines_and_an_example_that_can_be_sent() -> None:
    found = Wire().document("/api/v1/models/m", described())
    assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [2], "is_optional": False}]
    assert found["configuration"] == [{"key": "inputs[0].dims", "value": "[2]", "where": "/m/config.pbtxt:3"}]
    assert found["findings"] == [
        {
            "severity": "notice",
            "text": "optimization: not served",
            "where": "/m/config.pbtxt:4",
            "mend": "Remove it.",
        }
    ]
    assert found["try_it"]["example"] == {"inputs": []}
    assert (found["try_it"]["method"], found["try_it"]["content_type"]) == ("POST", "application/json")


def test_instances_are_told_with_their_deaths_and_those_that_are_gone_too() -> None:
    deaths = (
        InstanceDeath(49.0, "m", "1", "m_0", "It was killed by SIGSEGV.", ("last", MARKUP)),
        InstanceDeath(49.5, "m", "1", "m_1", "It was killed by SIGKILL."),
    )
    first, second = Wire().document("/api/v1/models/m/instances", described(deaths=deaths))["instances"]
    assert (first["name"], first["state"], first["pid"], first["resident_bytes"]) == (
        "m_0",
        "busy",
        4711,
        2048,
    )
    assert first["deaths"] == [
        {"when": 49.0, "cause": "It was killed by SIGSEGV.", "last_lines": ["last", MARKUP]}
    ]
    assert (second["name"], second["state"], second["pid"]) == (
        "m_1",
        "starting",
        None,
    )  # one is being opened


def test_lines_are_text_whatever_they_hold() -> None:
    lines = (WorkerSaid(48.0, "m", "1", "m_0", f"{MARKUP}\ndata: no"),)
    answer = Wire().answer("GET", "/api/v1/models/m/logs", described(lines=lines))
    assert b"Content-Type: application/json\r\n" in answer.fields
    assert b"X-Content-Type-Options: nosniff\r\n" in answer.fields
    (line,) = json.loads(b"".join(answer.buffers))["lines"]
    assert line["text"] == f"{MARKUP}\ndata: no"


def test_settings_show_where_they_were_set_and_what_is_taken() -> None:
    found = Wire().document("/api/v1/settings", observation(snapshot(SERVED)))
    assert found["settings"] == [{"name": "http_port", "value": "8080", "where": "command line, --http-port"}]
    assert found["listeners"] == [{"name": "HTTP", "address": "http://127.0.0.1:8080"}]
    assert found["memory"] == {"resident_bytes": 100, "worker_bytes": 20}
    assert (found["log_level"], found["connections"]) == ("WARNING", 5)


LINE = Timeline("r1", "m", "1", 48.0, 0.25, 0.1, 0.01, 0.1, 0.02, 3, ("r2", "r3"))
EVENTS = [
    (SERVED, "state", {"when": 77.0, "model": "m", "version": "1", "state": "ready", "instance": None}),
    (
        VersionStatus("m", "1", FAILED, MARKUP),
        "state",
        {"state": "failed", "reason": MARKUP},
    ),
    (InstanceOpened(49.0, "m", "1", "m_0"), "state", {"when": 49.0, "state": "ready", "instance": "m_0"}),
    (
        InstanceDeath(49.0, "m", "1", "m_0", "It ended.", ("a\n\nevent: evil",)),
        "death",
        {"instance": "m_0", "cause": "It ended.", "last_lines": ["a\n\nevent: evil"]},
    ),
    (WorkerSaid(48.0, "m", "1", "m_0", "hi"), "log", {"when": 48.0, "instance": "m_0", "text": "hi"}),
    (
        LINE,
        "request",
        {"queue_s": 0.1, "compute_s": 0.1, "total_s": 0.25, "batch_size": 3, "status": "ok", "error": None},
    ),
    (msgspec.structs.replace(LINE, code="expired", error="Late."), "request", {"status": "expired"}),
    (LostNews(4), "lost", {"count": 4}),
]


@pytest.mark.parametrize(("answer", "name", "fields"), EVENTS)
def test_events_are_each_one_line_of_json(answer: Answer, name: str, fields: dict[str, Any]) -> None:
    encoder = Wire().begin("GET", "/api/v1/events")[1]
    written = encoder.encode(ResponsePart(answer=answer, final=False))
    assert b"text/event-stream" in written.fields
    first, second, *rest = b"".join(written.buffers).decode().split("\n")
    assert first == f"event: {name}"
    assert rest == ["", ""]
    assert fields.items() <= json.loads(second.removeprefix("data: ")).items()


def test_a_snapshot_is_written_once_for_all_who_listen() -> None:
    wire = Wire()
    several = [wire.begin("GET", "/api/v1/events")[1] for _ in range(3)]
    part = ResponsePart(answer=snapshot(SERVED), final=False)
    first, *others = [encoder.encode(part).buffers[0] for encoder in several]
    assert all(other is first for other in others)
    assert json.loads(first.split(b"data: ")[1])["totals"]["requests"] == 9


def test_a_stream_ends_with_an_event_and_may_not_begin() -> None:
    encoder = Wire().begin("GET", "/api/v1/events")[1]
    refusal = encoder.encode(ResponsePart(error=ServeError(Code.QUEUE_FULL, "64 listen.", 5.0)))
    assert (refusal.status, refusal.final) == (503, True)
    assert b"Retry-After: 5\r\n" in refusal.fields
    encoder.encode(ResponsePart(answer=LostNews(1), final=False))
    end = encoder.encode(ResponsePart())
    assert (end.final, end.buffers) == (True, (b"event: end\ndata: {}\n\n",))


@pytest.mark.parametrize(
    ("code", "status"),
    [(Code.NOT_FOUND, 404), (Code.LOAD_FAILED, 422), (Code.UNSUPPORTED, 409), (Code.FORBIDDEN, 403)],
)
def test_a_refused_change_says_why(code: Code, status: int) -> None:
    encoder = Wire().begin("POST", "/api/v1/models/m/load")[1]
    answer = encoder.encode(ResponsePart(error=ServeError(code, MARKUP)))
    assert (answer.status, json.loads(answer.buffers[0])) == (status, {"error": MARKUP})
    assert b"frame-ancestors 'none'" in answer.fields


def test_a_change_is_answered_with_what_came_of_it() -> None:
    wire = Wire()
    listing = Listing((VersionStatus("a", "1", FAILED, "no"), SERVED))
    loaded = wire.answer("POST", "/api/v1/models/m/load", listing)
    assert json.loads(loaded.buffers[0]) == {"state": "ready", "reason": None}
    body = b'{"level":"DEBUG"}'
    level = wire.answer("POST", "/api/v1/settings/log-level", LogReport(LogSettings(verbose=1)), body=body)
    assert json.loads(level.buffers[0]) == {"log_level": "DEBUG"}


def test_the_pages_files_have_types_and_tags() -> None:
    wire = Wire()
    page = wire.answer("GET", "/console")
    assert (page.status, page.buffers) == (200, (b"<!doctype html>",))
    assert b"Content-Type: text/html; charset=utf-8\r\n" in page.fields
    assert b"Content-Security-Policy: default-src 'self'; img-src 'self' data: blob:; frame" in page.fields
    tag = page.fields.split(b"ETag: ")[1].split(b"\r\n")[0]
    again = wire.answer("GET", "/", fields={b"if-none-match": b'"other", W/' + tag})
    assert (again.status, again.buffers) == (304, ())
    for path in ("/console/nothing.js", "/console/%2e%2e%2fapp.py", "/console/console.py"):
        with pytest.raises(ServeError) as caught:
            wire.answer("GET", path)
        assert caught.value.code is Code.NOT_FOUND


def test_signing_in_sets_a_cookie_that_no_script_reads() -> None:
    shown: list[str] = []

    def sign_in(key: str) -> SignedIn:
        shown.append(key)
        return SignedIn("token", 60)

    out: list[str] = []
    wire = Wire(sign_in=sign_in, sign_out=out.append, has_keys=True)
    answer = wire.answer("POST", "/api/v1/session", body=b'{"key":"k"}')
    assert answer.status == 204
    line = b"Set-Cookie: trivium_console=token; Path=/; Max-Age=60; HttpOnly; SameSite=Strict\r\n"
    assert line in answer.fields
    form = {b"content-type": b"application/x-www-form-urlencoded", b"origin": b"https://localhost"}
    answer = wire.answer("POST", "/api/v1/session", fields=form, body=b"key=a%20b")
    assert (answer.status, shown) == (303, ["k", "a b"])
    assert b"SameSite=Strict; Secure\r\n" in answer.fields
    cookie = {**MARK, b"cookie": b"a=b; trivium_console=token"}
    answer = wire.answer("DELETE", "/api/v1/session", fields=cookie)
    assert (answer.status, out) == (204, ["token"])
    assert b"Max-Age=0;" in answer.fields
    encoder = wire.begin("GET", "/api/v1/overview", fields=cookie)[1]
    seen = encoder.encode(ResponsePart(answer=observation(snapshot(SERVED))))
    assert json.loads(seen.buffers[0])["server"]["signed_in"]


def test_nobody_signs_in_without_keys() -> None:
    with pytest.raises(ServeError) as caught:
        Wire().begin("POST", "/api/v1/session", body=b'{"key":"k"}')
    assert "--keys" in caught.value.message
