"""Traces of requests on a virtual clock: their moments to the second, families, and what is handed on when."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.harness.virtual_models import VirtualModelHarness, make_infer, make_spec

from trivium.core.observability import tracing
from trivium.core.observability.tracing import TensorCopies, Tracing
from trivium.core.request import CANCELLED, Item
from trivium.types.errors import Code, ServeError
from trivium.types.generation import GenerationUsage
from trivium.types.operations import CallRef, ResponsePart, TraceControl
from trivium.types.payload import Tensors
from trivium.types.running import Executed
from trivium.types.schedules import Graph
from trivium.types.spec import Batching, Limits
from trivium.types.tracing import Detail, Moment, RequestOrigin, Trace, TraceChange, TraceSettings

TIMES = frozenset({Detail.TIMES})
SPEC = make_spec()
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Exporter:
    """Keeps what it takes."""

    def __init__(self, file="/t", follows=False):
        self.file, self.follows, self.told = file, follows, {"a": "b"}
        self.taken, self.is_closed = [], False

    def take(self, traces, is_whole):
        assert not self.is_closed
        self.taken.append((list(traces), is_whole))

    def context(self, trace, above):
        return f"{above}/{trace.id}" if self.follows else ""

    def close(self):
        self.is_closed = True

    @property
    def traces(self):
        return [trace for requests, _ in self.taken for traces in requests for trace in traces]


def traced(spec, settings=TraceSettings(TIMES, 1), **options):  # noqa: B008 - it is frozen
    exporter = Exporter(**options)
    return VirtualModelHarness(spec, tracing=lambda now: Tracing(now, exporter, settings)), exporter


def moments(trace):
    return {moment.name: time for moment, time in trace.moments}


def test_every_moment_of_a_request():
    bench, exporter = traced(make_spec())
    bench.submit()
    bench.submit(make_infer(id="second", origin=RequestOrigin("HTTP", -2.0, -1.0)))
    bench.clock.run()
    first, second = exporter.traces
    assert (first.id, first.parent, first.model, first.version, first.request_id) == (1, 0, "m", "1", "")
    assert moments(first) == {
        "STARTED": 0,
        "QUEUED": 0,
        "COMPUTING": 0,
        "INPUT_READY": 0,
        "OUTPUT_BEGAN": 1,
        "COMPUTED": 1,
        "ANSWERED": 1,
        "ENDED": 1,
    }
    assert second.request_id == "second"
    assert moments(second) == {
        "RECEIVING": -2,
        "RECEIVED": -1,
        "STARTED": 0,
        "QUEUED": 0,
        "COMPUTING": 1,
        "INPUT_READY": 1,
        "OUTPUT_BEGAN": 2,
        "COMPUTED": 2,
        "ANSWERED": 2,
        "ENDED": 2,
        "SENDING": 2,
        "SENT": 2,
    }
    assert (first.together, first.inputs, first.outputs, first.error) == (1, (), (), "")
    assert [part.final for parts in bench.parts.values() for part in parts] == [True, True]


def test_who_ran_together():
    bench, exporter = traced(make_spec(Batching(batch_axis=True, max_rows=4, merge=True)))
    for _ in range(3):
        bench.submit(make_infer(rows=1))
    bench.clock.run()
    assert [trace.together for trace in exporter.traces] == [3, 3, 3]


def test_tensors_are_copies():
    bench, exporter = traced(make_spec(), TraceSettings(frozenset({Detail.TENSORS}), 1))
    infer = make_infer(value=3.0)
    bench.submit(infer)
    infer.payload.items[0].array[:] = 0
    bench.clock.run()
    (trace,) = exporter.traces
    assert trace.moments == []
    assert [(tensor.name, tensor.array.tolist()) for tensor in trace.inputs] == [("x", [3.0, 3.0])]
    assert [tensor.name for tensor in trace.outputs] == ["x"]


def test_copies_are_bounded_until_their_traces_are_dropped():
    copies = TensorCopies(most=100)
    first, second = (Trace(number, 0, "m", "1", "") for number in (1, 2))
    payload = Tensors.of({"x": np.zeros(20, np.float32)})
    assert [tensor.name for tensor in copies.of(first, payload)] == ["x"]
    assert copies.of(second, payload) == ()
    assert copies.held == 80
    del first
    assert copies.held == 0
    assert copies.of(second, payload)


def test_off_costs_nothing_and_leaves_the_receiver_alone():
    bench, exporter = traced(make_spec(), TraceSettings(frozenset(), 1))
    sink = lambda part: None  # noqa: E731
    assert bench.model.submit(1, make_infer(), sink).sink is sink
    bench.clock.run()
    assert exporter.taken == []


def test_what_is_refused_at_the_door_is_not_traced_and_what_the_queue_refuses_is():
    bench, exporter = traced(make_spec(limits=Limits(queue_items=1)))
    bench.submit(make_infer(rows=1))
    assert exporter.taken == []
    for _ in range(5):
        bench.submit()
    bench.clock.run()
    failed = [trace for trace in exporter.traces if trace.error]
    assert failed
    assert all(set(moments(trace)) == {"STARTED", "QUEUED", "ANSWERED", "ENDED"} for trace in failed)
    assert len(exporter.traces) == 5


@pytest.mark.parametrize("is_running", [True, False])
def test_a_cancelled_one_ends_at_once(is_running):
    bench, exporter = traced(make_spec())
    if not is_running:
        bench.submit()
    item = bench.submit()
    bench.clock.run(0.5)
    item.cancel(CANCELLED)
    (trace,) = exporter.traces
    assert (trace.error, moments(trace)["ENDED"]) == (CANCELLED.message, 0.5)
    bench.clock.run()
    assert len(exporter.traces) == 2 - is_running


# -- by hand: one tracing, and the items that a model would have ---------------------------------------------


class TracingHarness:
    def __init__(self, settings=TraceSettings(TIMES, 1), spec=SPEC, **options):  # noqa: B008 - it is frozen
        self.now = 0.0
        self.exporter = Exporter(**options)
        self.tracing = Tracing(lambda: self.now, self.exporter, settings)
        self.spec = spec
        self.got = []

    def item(self, number, spec=None, **fields):
        owner = SimpleNamespace(cancel=None, hold=None, resume=None)
        item = Item(number, make_infer(**fields), self.got.append, self.now, owner, instance=1)
        if self.tracing.is_on:
            self.tracing.admitted(item, spec or self.spec)
        self.now += 1
        return item

    def end(self, item, final=True, error=None):
        item.sink(ResponsePart(None if error else make_infer().payload, error=error, final=final))
        self.now += 1

    def executed(self, *batch):
        self.tracing.executed(Executed([], [], 1.0, 2.0, 3.0, 4.0, 1, batch))

    @property
    def names(self):
        return [(trace.id, trace.parent, trace.model) for trace in self.exporter.traces]


def test_an_answer_in_parts_waits_for_the_end_of_its_execution():
    stage = TracingHarness()
    item = stage.item(7)
    stage.end(item, final=False)
    stage.end(item)
    assert (stage.exporter.taken, len(stage.got)) == ([], 2)
    stage.executed(6, 7)
    (trace,) = stage.exporter.traces
    assert (moments(trace)["COMPUTED"], trace.together) == (4, 2)
    assert [moment for moment, _ in trace.moments].count(Moment.ANSWERED) == 2


def test_generated_text_has_its_first_and_its_last_token():
    stage = TracingHarness()
    item = stage.item(7)
    stage.tracing.generated(7, GenerationUsage(3, 2, 1.5, 2.5))
    stage.tracing.generated(8, GenerationUsage(3, 2, 1.5, 2.5))  # one that is not traced
    stage.end(item)
    stage.executed(7)
    (trace,) = stage.exporter.traces
    told = moments(trace)
    assert (told["FIRST_TOKEN"], told["LAST_TOKEN"]) == (1.5, 2.5)


def test_or_has_seen_it_before():
    stage = TracingHarness()
    item = stage.item(7)
    stage.executed(7)
    assert stage.exporter.taken == []
    stage.end(item)
    assert moments(stage.exporter.traces[0])["COMPUTED"] == 4


def test_an_error_waits_for_nothing_nor_does_what_no_instance_had():
    stage = TracingHarness()
    stage.end(stage.item(1), error=ServeError(Code.MODEL_FAILED, "no"))
    cached = stage.item(2)
    cached.instance = 0
    stage.end(cached)
    assert [trace.error for trace in stage.exporter.traces] == ["no", ""]
    assert "COMPUTING" not in moments(stage.exporter.traces[1])


def test_only_so_many_wait(monkeypatch):
    monkeypatch.setattr(tracing, "MOST_WAITING", 2)
    stage = TracingHarness()
    for number in (1, 2, 3):
        stage.end(stage.item(number))
    assert [trace.id for trace in stage.exporter.traces] == [1]
    stage.executed(1, 2, 3)
    assert [trace.id for trace in stage.exporter.traces] == [1, 2, 3]


def test_a_family_is_handed_on_whole_with_its_first_in_front():
    stage = TracingHarness()
    graph = replace(SPEC, name="graph", scheduling=Graph(()))
    whole = stage.item(1, graph)
    inner = stage.item(2, parent=CallRef((1,), ("graph",), 1))
    innermost = stage.item(3, parent=CallRef((1, 2), ("graph", "m"), 2))
    alone = stage.item(4, parent=CallRef((1, 2), ("graph", "m")))
    stage.end(whole)
    assert stage.exporter.taken == []
    for item in (innermost, inner):
        stage.executed(item.item)
        stage.end(item)
    stage.end(alone)
    assert stage.names == [(1, 0, "graph"), (2, 1, "m"), (3, 2, "m")]
    assert "COMPUTING" not in moments(stage.exporter.traces[0])
    late = stage.item(5, parent=CallRef((1,), ("graph",), 1))
    assert late.sink == stage.got.append


def test_each_of_a_family_is_told_its_own_context():
    stage = TracingHarness(follows=True)
    outer = stage.item(1)
    inner = stage.item(2, parent=CallRef((1,), ("m",), 1))
    assert (outer.operation.context, inner.operation.context) == ("/1", "/1/2")
    assert TracingHarness().item(1).operation.context == ""


def test_a_child_is_traced_whatever_its_own_model_says():
    stage = TracingHarness(TraceSettings(every=1))
    stage.tracing.answer(TraceControl("graph", TraceChange(details=TIMES)))
    stage.item(1, replace(SPEC, name="graph", scheduling=Graph(())))
    assert stage.item(2, parent=CallRef((1,), ("graph",), 1)).sink != stage.got.append
    assert stage.item(3).sink == stage.got.append


@pytest.mark.parametrize(
    ("follows", "parent", "count"), [(True, PARENT, 1), (True, "", 0), (False, PARENT, 0)]
)
def test_what_belongs_to_a_clients_trace(follows, parent, count):
    stage = TracingHarness(TraceSettings(TIMES, 0), follows=follows)
    item = stage.item(1, origin=RequestOrigin("GRPC", 0, 0, parent))
    stage.executed(1)
    stage.end(item)
    assert len(stage.exporter.traces) == count


def test_settings_are_told_and_what_is_held_is_written_when_they_change():
    stage = TracingHarness(TraceSettings(TIMES, 1, None, 5))
    report = stage.tracing.answer(TraceControl())
    assert (report.settings, report.file, report.told) == (TraceSettings(TIMES, 1, None, 5), "/t", {"a": "b"})
    item = stage.item(1)
    stage.executed(1)
    stage.end(item)
    assert stage.exporter.taken == []
    stage.tracing.answer(TraceControl("", TraceChange(details=frozenset())))
    ((_, is_whole),) = stage.exporter.taken
    assert is_whole
    assert not stage.tracing.is_on


def test_one_that_began_before_tracing_was_switched_off_is_finished():
    stage = TracingHarness()
    item = stage.item(1)
    stage.tracing.answer(TraceControl("", TraceChange(details=frozenset())))
    assert stage.tracing.is_on
    stage.executed(1)
    stage.end(item)
    assert len(stage.exporter.traces) == 1
    assert not stage.tracing.is_on


def test_what_was_open_when_settings_changed_is_not_held_for_ever():
    stage = TracingHarness(TraceSettings(TIMES, 1, None, 5))
    items = [stage.item(number) for number in (1, 2, 3)]
    stage.executed(1, 2, 3)
    stage.end(items[0])
    stage.tracing.answer(TraceControl("", TraceChange(every=2)))
    stage.end(items[1])
    assert [len(traces) for traces, _ in stage.exporter.taken] == [1]
    stage.end(items[2])
    assert [(len(traces), is_whole) for traces, is_whole in stage.exporter.taken] == [(1, True), (2, True)]


def test_closing_hands_on_what_is_left():
    stage = TracingHarness(TraceSettings(TIMES, 1, None, 5))
    stage.item(1)
    stage.end(stage.item(2))
    stage.tracing.close()
    assert sorted(trace.id for trace in stage.exporter.traces) == [1, 2]
    assert stage.exporter.is_closed


def test_without_a_place_there_is_nothing_to_tell():
    report = Tracing(lambda: 0.0).answer(TraceControl())
    assert (report.file, report.told, report.settings) == ("", {}, TraceSettings())


def test_a_receiver_that_fails_leaves_no_trace_behind():
    stage = TracingHarness()
    item = Item(1, make_infer(), lambda part: 1 / 0, 0.0, SimpleNamespace(), instance=1)
    stage.tracing.admitted(item, SPEC)
    stage.executed(1)
    with pytest.raises(ZeroDivisionError):
        stage.end(item)
    assert np.isclose(moments(stage.exporter.traces[0])["ENDED"], stage.now)
