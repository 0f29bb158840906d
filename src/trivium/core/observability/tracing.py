"""Traces of requests while they are served: begun at the door of a model, finished with the answer, handed on whole.

With tracing off a model asks `is_on` once for each request and once for each execution, and nothing else happens here.
What is sampled says `tracing_policy`; what becomes of finished traces is the exporter's business.
"""

import itertools
import time
import weakref
from collections.abc import Callable, Sequence
from time import time as epoch

import msgspec

from trivium.core.observability.exemplars import Exemplars
from trivium.core.observability.tracing_policy import Sampler, TraceBook, is_context
from trivium.core.request import Item
from trivium.types.generation import GenerationUsage
from trivium.types.interfaces import Sink
from trivium.types.metrics import Exemplar
from trivium.types.operations import ResponsePart, TraceControl, TraceReport
from trivium.types.payload import Tensor, Tensors, size_of
from trivium.types.running import Executed, ItemId
from trivium.types.schedules import Graph
from trivium.types.spec import ModelSpec
from trivium.types.tracing import Detail, Moment, Trace, TraceExporter, Traces, TraceSettings, trace_id

MOST_WAITING = 1000
"""Traces of requests that were answered, of which nobody has said yet when they were executed."""

MOST_ANSWERS = 1000
"""Parts of one answer of which the time is kept, and of which the tensors are."""


MOST_MATES = 16
"""Other requests of its execution that a trace names."""

MOST_COPIED = 2**28
"""Bytes of tensors that traces hold at a time, until they are written; one for which there is no room has none."""


class TensorCopies:
    """Copies tensors for traces, and books the copies until the traces are dropped, whichever thread does it."""

    def __init__(self, most: int = MOST_COPIED) -> None:
        self._most = most
        self._numbers = itertools.count()
        self._held: dict[int, int] = {}

    @property
    def held(self) -> int:
        """Bytes of all copies."""
        return sum(list(self._held.values()))

    def of(self, trace: Trace, payload: Tensors) -> tuple[Tensor, ...]:
        """Return copies for a trace; none where there is no room."""
        size = sum(map(size_of, payload.items))
        if self.held + size > self._most:
            return ()
        number = next(self._numbers)
        self._held[number] = size
        weakref.finalize(trace, self._held.pop, number, None).atexit = False
        return payload.copied().items


class Tracing:
    """One per server. Used on the loop only."""

    def __init__(
        self,
        now: Callable[[], float],
        exporter: TraceExporter | None = None,
        first: TraceSettings = TraceSettings(),  # noqa: B008 - it is frozen
    ) -> None:
        self.now = now
        self.is_on = False
        self._exporter = exporter
        self._book = TraceBook(first, exporter is not None)
        self.copies = TensorCopies()
        self.exemplars = Exemplars()
        self._numbers = itertools.count(1)
        self._live: dict[ItemId, LiveTrace] = {}
        self._waiting: dict[ItemId, LiveTrace] = {}
        self._look()

    def answer(self, operation: TraceControl) -> TraceReport:
        """Change settings, and tell those that hold then. INVALID as `TraceBook.change` says."""
        for sampler in self._book.change(operation.model, operation.change) if operation.change else ():
            self._write(sampler.replace())
        self._look()
        settings = self._book.of(operation.model).settings
        exporter = self._exporter
        if exporter is None:
            return TraceReport(settings, "")
        return TraceReport(settings, exporter.file, dict(exporter.told))

    def close(self) -> None:
        """Everything that is left is written. Blocking; no request is served any more."""
        for live in [*self._waiting.values(), *self._live.values()]:
            live.end()
        for sampler in self._book.samplers():
            self._write(sampler.rest())
        if self._exporter is not None:
            self._exporter.close()

    # -- called by a loaded model, while `is_on` -----------------------------------------------------------

    def admitted(self, item: Item, spec: ModelSpec) -> None:
        """A request has passed the door of a model. A call by another request is traced if it is said to belong to the
        trace of one; any other request if it is sampled.
        """
        infer = item.operation
        origin = infer.origin
        parent: LiveTrace | None = None
        if infer.parent is not None:
            parent = self._live.get(infer.parent.trace)
            if parent is None:
                return
            family = parent.family
        else:
            sampler = self._book.of(spec.name)
            exporter = self._exporter
            follows = exporter is not None and exporter.follows
            if not sampler.takes(follows and origin is not None and is_context(origin.parent)):
                return
            family = TraceFamily(sampler)
        trace = Trace(
            next(self._numbers), parent.trace.id if parent else 0, spec.name, spec.version, infer.id, origin
        )
        if self._exporter is not None:
            trace.context = self._exporter.context(trace, parent.trace.context if parent else "")
            if trace.context:
                item.operation = msgspec.structs.replace(infer, context=trace.context)
        live = LiveTrace(self, item, trace, family, not isinstance(spec.scheduling, Graph))
        self._live[item.item] = live
        item.sink = live.take

    def executed(self, run: Executed) -> None:
        """An execution is over; its items hear of it only now, or did before."""
        answered, ran = [], []
        for number in run.batch or run.items:
            live = self._live.get(number)
            if live is None and number in self._waiting:
                live = self._waiting.pop(number)
                answered.append(live)
            if live is not None:
                live.ran(run)
                ran.append(live.trace)
        if len(ran) > 1:
            _link(ran)
        for live in answered:
            live.end()

    def generated(self, number: ItemId, usage: GenerationUsage | None) -> None:
        """A request is about to be answered with the last of what was generated, if it was not cancelled."""
        live = self._live.get(number)
        if live is not None and usage is not None and usage.new_tokens:
            live.generated(usage)

    # -- called by a trace ---------------------------------------------------------------------------------

    def answered(self, number: ItemId) -> None:
        """It is nobody's parent any more."""
        self._live.pop(number, None)

    def await_run(self, number: ItemId, live: "LiveTrace") -> None:
        """It has been answered, and its execution goes on."""
        self._waiting[number] = live
        if len(self._waiting) > MOST_WAITING:
            first = next(iter(self._waiting))
            self._waiting.pop(first).end()

    def finished(self, family: "TraceFamily") -> None:
        """All of it has been seen."""
        traces, is_whole = family.sampler.finished(family.traces)
        if traces and self._exporter is not None:
            self._exporter.take(traces, is_whole)
        self._look()

    def _write(self, rest: Sequence[Traces]) -> None:
        if rest and self._exporter is not None:
            self._exporter.take(rest, True)

    def _look(self) -> None:
        self.is_on = self._book.is_on or bool(self._live) or bool(self._waiting)


def _link(traces: Sequence[Trace]) -> None:
    """Have traces of one execution name one another, as far as others can name them."""
    contexts = [trace.context for trace in traces[: MOST_MATES + 1] if trace.context]
    for trace in traces:
        mates = tuple(context for context in contexts if context != trace.context)
        trace.mates = mates[:MOST_MATES]


NOTHING_TRACED = Tracing(time.monotonic)
"""Of a model that is no server's."""


class TraceFamily:
    """A request's trace and those of the requests that it led to, which are written together."""

    __slots__ = ("details", "open", "sampler", "traces")

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.details = sampler.settings.details
        self.traces: list[Trace] = []
        self.open = 0


class LiveTrace:
    """Stands before the receiver of a traced request's answer."""

    __slots__ = (
        "_answers",
        "_computes",
        "_has_run",
        "_is_over",
        "_item",
        "_sink",
        "_tracing",
        "family",
        "trace",
    )

    def __init__(
        self, tracing: Tracing, item: Item, trace: Trace, family: TraceFamily, computes: bool
    ) -> None:
        self._tracing = tracing
        self._item = item
        self._sink: Sink = item.sink
        self._computes = computes  # a graph does not: its steps do
        self._answers = 0
        self._has_run = False
        self._is_over = False
        self.trace = trace
        self.family = family
        family.open += 1
        family.traces.append(trace)
        origin = trace.origin
        if origin is not None:
            self._note(Moment.RECEIVING, origin.began)
            self._note(Moment.RECEIVED, origin.whole)
        self._note(Moment.STARTED, item.enqueued_at)
        self._note(Moment.QUEUED, tracing.now())
        payload = item.operation.payload
        if Detail.TENSORS in family.details and isinstance(payload, Tensors):
            trace.inputs = tracing.copies.of(trace, payload)

    def ran(self, run: Executed) -> None:
        """The request was in this execution; a model that goes on with it again and again had it in several."""
        if self._computes and not self._has_run:
            self._has_run = True
            self._show(self._tracing.exemplars.waited, max(run.began - self._item.enqueued_at, 0.0))
            self.trace.together = len(run.batch or run.items)
            self._note(Moment.COMPUTING, run.began)
            self._note(Moment.INPUT_READY, run.input_ready)
            self._note(Moment.OUTPUT_BEGAN, run.output_began)
            self._note(Moment.COMPUTED, run.ended)

    def generated(self, usage: GenerationUsage) -> None:
        """Its tokens have come."""
        self._note(Moment.FIRST_TOKEN, usage.first_at)
        self._note(Moment.LAST_TOKEN, usage.last_at)

    def take(self, part: ResponsePart) -> None:
        """The sink. What its receiver raises goes on to who called."""
        tracing, trace = self._tracing, self.trace
        now = tracing.now()
        self._answers += 1
        if self._answers <= MOST_ANSWERS:
            self._note(Moment.ANSWERED, now)
            if Detail.TENSORS in self.family.details and isinstance(part.payload, Tensors):
                trace.outputs += tracing.copies.of(trace, part.payload)
        if not part.final:
            self._sink(part)
            return
        if part.error is not None:
            trace.error = part.error.message
        else:
            self._show(tracing.exemplars.took, now - self._item.enqueued_at)
        tracing.answered(self._item.item)
        self._note(Moment.ENDED, now)
        try:
            if trace.origin is not None:
                self._note(Moment.SENDING, tracing.now())
            self._sink(part)
        finally:
            if trace.origin is not None:
                self._note(Moment.SENT, tracing.now())
            if self._item.run is not None:
                self.ran(self._item.run)
                self.end()
            elif self._computes and not self._has_run and part.error is None and self._item.instance:
                tracing.await_run(self._item.item, self)
            else:
                self.end()

    def end(self) -> None:
        """Nothing more will be seen of it."""
        if self._is_over:
            return
        self._is_over = True
        self.family.open -= 1
        if not self.family.open:
            self._tracing.finished(self.family)

    def _show(self, keep: Callable[[str, str, Exemplar], None], seconds: float) -> None:
        """Let a histogram lead to its trace, if that can be named to others."""
        trace, origin = self.trace, self.trace.origin
        name = trace_id(trace.context or ("" if origin is None else origin.parent))
        if name:
            keep(trace.model, trace.version, Exemplar(name, seconds, epoch()))

    def _note(self, moment: Moment, time: float) -> None:
        if Detail.TIMES in self.family.details:
            self.trace.moments.append((moment, time))
