"""Requests that say how they came, where they may be traced."""

from typing import Any

import pytest
from tests.harness.fake_core import FakeCore
from tests.harness.http_client import post
from tests.harness.http_connection import HttpHarness

from trivium.frontends import timestamps as stamped
from trivium.frontends.access_log import AccessLine, DetailedLine
from trivium.frontends.limits import HttpLimits
from trivium.frontends.timestamps import TimestampedRpcs
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Live
from trivium.types.payload import Raw
from trivium.types.tracing import RequestOrigin
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times that were read: 1, 2, 3, ..."""
    read: list[float] = []

    def now() -> float:
        read.append(len(read) + 1.0)
        return read[-1]

    monkeypatch.setattr(stamped, "monotonic", now)
    return read


def origins(stage: HttpHarness) -> list[RequestOrigin | None]:
    return [ticket.operation.origin for ticket in stage.core.tickets]


def test_each_request_has_its_own_times_the_repeated_ones_too(ticks: list[float]) -> None:
    stage = HttpHarness(HttpLimits(record_timestamps=True))
    for body in (b"11111", b"22222", b"33333"):
        stage.send(post("a", body))
    found = origins(stage)
    assert len(stage.answers) == len(found) == 3
    last = 0.0
    for origin in found:
        assert origin is not None
        assert (origin.wire, origin.parent, origin.state) == ("HTTP", "", "")
        assert last < origin.began < origin.whole
        last = origin.whole
    stage.check_nothing_is_left()


def test_the_head_comes_before_the_body(ticks: list[float]) -> None:
    stage = HttpHarness(HttpLimits(record_timestamps=True), FakeCore())
    request = post("a", b"12345")
    stage.send(request[:-3])
    assert ticks == [1.0]
    stage.send(request[-3:])
    assert origins(stage) == [RequestOrigin("HTTP", 1.0, 2.0)]


class ExactLog:
    """A log that wants to know exactly."""

    is_exact = True
    takes_facts = False

    def __init__(self) -> None:
        self.lines: list[AccessLine] = []

    def add(self, line: AccessLine) -> None:
        self.lines.append(line)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("is_traced", [False, True])
def test_a_log_that_wants_it_has_exact_times_and_all_of_the_head(ticks: list[float], is_traced: bool) -> None:
    stage, log = HttpHarness(HttpLimits(record_timestamps=is_traced)), ExactLog()
    stage.site.log = log
    stage.connect()
    for _ in range(2):
        stage.send(post("a", b"12345").replace(b" /echo/a ", b" /echo/a?b=c%0A "))
    first, second = log.lines
    for line in (first, second):
        assert isinstance(line, DetailedLine)
        assert (line.method, line.path, line.query, line.version) == ("POST", "/echo/a", "b=c%0A", "HTTP/1.1")
        assert (line.status, line.seconds) == (200, 2.0 if is_traced else 1.0)
    assert [ticket.operation.origin is None for ticket in stage.core.tickets] == [not is_traced] * 2


def test_other_logs_cost_no_look_at_the_clock(ticks: list[float]) -> None:
    stage, log = HttpHarness(), ExactLog()
    log.is_exact = False
    stage.site.log = log
    stage.connect()
    stage.send(post("a", b"12345"))
    assert type(log.lines[0]) is AccessLine
    assert ticks == []


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize("breaks", ["the client leaves", "a part is none"])
def test_an_answer_in_parts_that_breaks_off_has_one_line(is_exact: bool, breaks: str) -> None:
    stage, log = HttpHarness(core=FakeCore(is_prompt=False)), ExactLog()
    log.is_exact = is_exact
    stage.site.log = log
    stage.connect()
    stage.send(post("a", b"x"))
    (ticket,) = stage.core.tickets
    ticket.say(b"one")
    assert log.lines == []
    if breaks == "the client leaves":
        stage.leave()
    else:
        ticket.say("no bytes")  # type: ignore[arg-type]
        assert stage.is_closed
    (line,) = log.lines
    assert (line.peer, line.status, line.path) == ("192.0.2.1:4711", 200, "/echo/a")
    assert isinstance(line, DetailedLine) is is_exact


def test_who_leaves_before_the_answer_has_begun_has_no_line() -> None:
    stage, log = HttpHarness(core=FakeCore(is_prompt=False)), ExactLog()
    stage.site.log = log
    stage.connect()
    stage.send(post("a", b"x"))
    stage.leave()
    assert log.lines == []


def test_a_trace_context_among_the_headers() -> None:
    stage = HttpHarness(HttpLimits(record_timestamps=True))
    head, _, body = post("a", b"1").partition(b"\r\n\r\n")
    fields = f"\r\ntraceparent: {PARENT}\r\ntracestate: a=b".encode()
    stage.send(head + fields + b"\r\n\r\n" + body)
    (origin,) = origins(stage)
    assert origin is not None
    assert (origin.parent, origin.state) == (PARENT, "a=b")


def test_without_stamps_there_are_none(ticks: list[float]) -> None:
    stage = HttpHarness()
    stage.send(post("a", b"1"))
    assert (origins(stage), ticks) == ([None], [])


class Rpcs:
    """A protocol whose messages are requests, but for an empty one."""

    def kind(self, method: str) -> RpcKind:
        return RpcKind.STREAM

    def admit(self, call: RpcCall) -> None:
        if not call.metadata:
            raise ServeError(Code.INVALID, "no metadata")

    def decode(self, call: RpcCall, message: bytes) -> tuple[Any, Any]:
        return (Infer("m", Raw(())) if message else Live()), "encoder"

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        return RpcAnswer(code=7)


def test_over_grpc(ticks: list[float]) -> None:
    rpcs = TimestampedRpcs(Rpcs())
    call = RpcCall("/s/m", {"traceparent": PARENT, "tracestate": "a=b"})
    operation, encoder = rpcs.decode(call, b"x")
    assert isinstance(operation, Infer)
    assert (operation.origin, encoder) == (RequestOrigin("GRPC", 1.0, 1.0, PARENT, "a=b"), "encoder")
    rpcs.admit(call)
    with pytest.raises(ServeError):
        rpcs.admit(RpcCall("/s/m"))
    plain, _ = rpcs.decode(RpcCall("/s/m", {"tracestate": "a=b"}), b"x")
    assert isinstance(plain, Infer)
    assert plain.origin == RequestOrigin("GRPC", 2.0, 2.0)
    assert rpcs.decode(call, b"")[0] == Live()
    assert rpcs.kind("/s/m") is RpcKind.STREAM
    assert rpcs.refuse(call, ServeError(Code.INVALID, "no")).code == 7
