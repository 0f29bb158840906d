"""A refusal costs little more than an answer, on every wire, however long the name is that it refuses. Calls are
counted, not seconds.
"""

import contextlib
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest
from tests.harness.fake_core import FakeCore, FakeTicket
from tests.harness.http_connection import HttpHarness

from trivium.access.authorizer import KeyAuthorizer
from trivium.catalogue import CATALOGUE
from trivium.codecs.near_names import near
from trivium.core.models.registry import Registry
from trivium.frontends.http.state import HttpState
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL, Authorizer, Sink
from trivium.types.listeners import Role
from trivium.types.operations import Listing, Operation, Readiness, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.statistics import MetricsReport
from trivium.types.wire import RpcCall

SHORT, LONG = "x" * 100, "x" * 8000
MOST = 3


ANSWERS = {"CollectMetrics": MetricsReport(()), "List": Listing(())}


class CoreWithoutModels(FakeCore):
    """Answers what concerns the server, and knows no model."""

    def submit(self, operation: Operation, sink: Sink) -> Any:
        ticket = FakeTicket(operation, sink)  # type: ignore[arg-type]
        model = getattr(operation, "model", "")
        if model:
            info = ErrorInfo.of(reasons.UNKNOWN_MODEL, model=model)
            sink(ResponsePart(error=ServeError(Code.NOT_FOUND, f"There is no model '{model}'.", info=info)))
        else:
            sink(ResponsePart(answer=ANSWERS.get(type(operation).__name__, Readiness(True))))
        return ticket


@dataclass(frozen=True)
class Wire:
    """A protocol on a listener, its cheapest answer, and paths that refuse: a path that there is not, the method that a
    path has not, a model that there is not. "{}" stands for a name.
    """

    name: str
    roles: frozenset[Role]
    answer: str
    path: str
    method: str = ""
    model: str = ""

    def stage(self, guard: Authorizer = ALLOW_ALL, as_original: bool = False) -> HttpHarness:
        """Return a connection on which this protocol alone is spoken."""
        stage = HttpHarness(core=CoreWithoutModels())
        context = ProtocolContext(roles=self.roles, as_original=as_original, may_change=True)
        entry = CATALOGUE.http[self.name]
        protocol = entry.make(context)
        owners = dict.fromkeys(
            (prefix for role in self.roles for prefix in entry.ROUTES.get(role, ())), protocol
        )
        old = stage.site
        stage.site = HttpState(stage.core, owners, protocol, old.limits, old.offload, authorizer=guard)
        stage.site.turns = old.turns
        return stage


INFERENCE, MANAGEMENT = frozenset({Role.INFERENCE}), frozenset({Role.MANAGEMENT})
METRICS = frozenset({Role.METRICS})
WIRES = (
    Wire(
        "v2",
        INFERENCE,
        "GET /v2/health/live",
        "GET /v2/models/{}/infr",
        "PUT /v2/models/{}",
        "GET /v2/models/{}",
    ),
    Wire("openai", INFERENCE, "GET /v1/models", "GET /v1/{}/x", "PUT /v1/models/{}", "GET /v1/models/{}"),
    Wire("prometheus", METRICS, "GET /metrics", "GET /metrics/{}", "POST /metrics"),
    Wire(
        "djl",
        INFERENCE,
        "GET /ping",
        "GET /predictions/a/b/{}",
        "GET /models/{}/invoke",
        "GET /predictions/{}",
    ),
    Wire("djl", MANAGEMENT, "GET /ping", "GET /models/a/b/{}", "PATCH /models/{}", "GET /models/{}"),
    Wire("torchserve", INFERENCE, "GET /ping", "GET /v2/{}/x", "GET /", "GET /predictions/{}"),
    Wire("torchserve", MANAGEMENT, "GET /models", "GET /models/a/b/{}", "PATCH /models/{}", "GET /models/{}"),
    Wire("metrics of torchserve", METRICS, "GET /metrics", "GET /{}"),
)


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of functions, Python's and C's; no collection of garbage, which calls what others have left."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def cost(stage: HttpHarness, request: str, status: int) -> int:
    """Count the calls of the second of two equal requests, each on a connection of its own."""
    data = f"{request} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer no\r\nContent-Length: 0\r\n\r\n".encode()
    count = 0
    for _ in range(2):
        stage.connect()
        count = calls_of(lambda: stage.send(data))
        assert stage.statuses == [status], (request, stage.answers)
    return count


@pytest.mark.parametrize("as_original", [False, True])
@pytest.mark.parametrize(
    "wire", WIRES, ids=lambda wire: f"{wire.name} {min(role.value for role in wire.roles)}"
)
def test_no_refusal_costs_more_than_a_few_answers(wire: Wire, as_original: bool) -> None:
    stage = wire.stage(as_original=as_original)
    cheapest = cost(stage, wire.answer, 200)
    for request, status in ((wire.path, 404), (wire.method, 405), (wire.model, 404)):
        if request:
            short, long = (cost(stage, request.format(name), status) for name in (SHORT, LONG))
            assert short <= MOST * cheapest, request
            assert long <= short, request


@pytest.mark.parametrize(
    "wire", WIRES, ids=lambda wire: f"{wire.name} {min(role.value for role in wire.roles)}"
)
def test_who_has_no_key_costs_no_more_and_hears_no_advice(wire: Wire) -> None:
    cheapest = cost(wire.stage(), wire.answer, 200)
    stage = wire.stage(KeyAuthorizer(tuple))
    for request in (wire.path, wire.method, wire.model):
        if request:
            short, long = (cost(stage, request.format(name), 401) for name in (SHORT, LONG))
            assert short <= MOST * cheapest, request
            assert long <= short, request
            assert b"oute" not in stage.answers[0].body


@pytest.mark.parametrize("name", CATALOGUE.rpc)
def test_no_refusal_of_an_rpc_costs_more_for_a_longer_name(name: str) -> None:
    protocol = CATALOGUE.rpc[name].make(ProtocolContext())

    def refused(method: str) -> None:
        try:
            protocol.kind(method)
        except ServeError as error:
            protocol.refuse(RpcCall(method), error)

    methods = [f"/a/{name}" for name in (SHORT, SHORT, LONG)]
    counts = [calls_of(lambda method=method: refused(method)) for method in methods]
    assert counts[2] <= counts[1] < 60


def test_looking_for_a_models_name_costs_a_call_or_two_for_each_that_there_is() -> None:
    registry = Registry()
    names = [f"model_{i}_classifier" for i in range(20)]
    for each in names:
        registry.record(each, "1")

    def refused(name: str) -> None:
        with contextlib.suppress(ServeError):
            registry.serving(name)

    short, long = (calls_of(lambda name=name: refused(name)) for name in (SHORT, LONG))
    assert 0 < long <= short < 100
    assert calls_of(lambda: near("model_7_clasifier", names)) < 100
