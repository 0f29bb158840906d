"""Traces as spans, to a collector that speaks OTLP over HTTP, by the OpenTelemetry SDK (the extra `otlp`).

A request is a span, each model that it came to a span of the model's name below it, each execution a span below that
(as spec sheet `triton`, section 4.12, has them). Spans are made when all is over, and sent by the SDK's own thread.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import getrandbits
from typing import TYPE_CHECKING, Any, cast

from trivium.core.observability.tracing_policy import is_context
from trivium.machine.extras import lacking
from trivium.types.errors import Code, ServeError
from trivium.types.tracing import Moment, MomentNames, SpanNames, Trace, Traces

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span

MOST_BEHIND = 10_000
"""Calls that may wait for spans to be made; what comes beyond them is lost."""

_log = logging.getLogger(__name__)
_EXECUTION = (Moment.COMPUTING, Moment.INPUT_READY, Moment.OUTPUT_BEGAN, Moment.COMPUTED)
_OF_MODEL = (Moment.STARTED, Moment.QUEUED, Moment.FIRST_TOKEN, Moment.LAST_TOKEN, Moment.ENDED)
_OF_WIRE = (Moment.RECEIVING, Moment.RECEIVED, Moment.SENDING, Moment.SENT)


def _named(moments: Sequence[Moment]) -> dict[Moment, str]:
    return {moment: moment.value.replace(" ", "_") for moment in moments}


NAMES = SpanNames(
    tracer="trivium",
    request="request",
    execution="execution",
    moments=MomentNames(
        _named((*_EXECUTION, *_OF_MODEL, Moment.ANSWERED)),
        {wire: _named(_OF_WIRE) for wire in ("HTTP", "GRPC")},
    ),
    model="trivium.model.name",
    version="trivium.model.version",
    number="trivium.trace.number",
    parent="trivium.trace.parent",
    request_id="trivium.request.id",
)
"""What spans are called where no profile has names of its own."""


@dataclass(frozen=True, slots=True)
class Collector:
    """The destination of spans: `resource` is what all of them say of the server, `queue` spans wait at most, `delay`
    seconds at most, and are sent at most `batch` at a time.
    """

    url: str
    resource: Mapping[str, str]
    queue: int = 2048
    delay: float = 5.0
    batch: int = 512


class Spans:
    """Implements `TraceExporter`."""

    follows = True

    def __init__(self, collector: Collector, names: SpanNames = NAMES) -> None:
        """Raise UNSUPPORTED, with the install command, where the SDK is missing; INVALID for settings that it
        refuses.
        """
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON
        except ImportError as error:
            raise lacking("Traces that are sent as spans", error, "otlp") from error
        self.file: str | None = None
        self.told = {
            "url": collector.url,
            "resource": ",".join(f"{key}={value}" for key, value in collector.resource.items()),
            "bsp_max_queue_size": str(collector.queue),
            "bsp_schedule_delay": str(round(collector.delay * 1000)),
            "bsp_max_export_batch_size": str(collector.batch),
        }
        self._numbers = _Numbers()
        self._names = names
        self._execution, self._of_model = (
            [names.moments.model[moment] for moment in moments] for moments in (_EXECUTION, _OF_MODEL)
        )
        try:
            processor = BatchSpanProcessor(
                OTLPSpanExporter(endpoint=collector.url),
                max_queue_size=collector.queue,
                schedule_delay_millis=collector.delay * 1000,
                max_export_batch_size=collector.batch,
            )
        except ValueError as error:
            raise ServeError(Code.INVALID, f"Traces cannot be sent to {collector.url}: {error}.") from error
        # What is traced has been decided: whatever comes here is sent.
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            id_generator=cast(Any, self._numbers),  # its class is known only where the SDK is
            resource=Resource.create(dict(collector.resource)),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer(names.tracer)
        self._thread = ThreadPoolExecutor(1, "traces")  # it alone makes spans
        self._given = self._done = 0  # calls; each number has one thread that changes it

    def context(self, trace: Trace, above: str) -> str:
        """See `TraceExporter`: of the span that it will be."""
        origin = trace.origin
        outer = above or (origin.parent if origin is not None and is_context(origin.parent) else "")
        number = outer.split("-")[1] if outer else f"{getrandbits(128) or 1:032x}"
        return f"00-{number}-{getrandbits(64) or 1:016x}-01"

    def take(self, traces: Sequence[Traces], is_whole: bool) -> None:
        """See `TraceExporter`. Sent they are when the SDK likes."""
        if self._given - self._done >= MOST_BEHIND:
            _log.error("traces are lost, %d requests': making spans of them takes too long", len(traces))
            return
        self._given += 1
        self._thread.submit(self._send, traces)

    def close(self) -> None:
        """See `TraceExporter`."""
        self._thread.shutdown(wait=True)
        self._provider.shutdown()

    def _send(self, requests: Sequence[Traces]) -> None:
        offset = time.time_ns() - time.monotonic_ns()
        try:
            for traces in requests:
                self._request(traces, offset)
        except Exception:
            _log.exception("traces could not be made into spans and are lost, %d requests'", len(requests))
        finally:
            self._done += 1

    def _request(self, traces: Traces, offset: int) -> None:
        first = traces[0]
        times = [(name, time + offset) for name, time in self._names.moments.of(first)]
        if not times:
            return
        self._numbers.prepare(first.context, is_root=True)
        span = self._begin(self._names.request, _outer(first), times[0][1])
        within = {0: span}
        for name, time_ns in times:
            if name not in self._of_model and name not in self._execution:
                span.add_event(name, timestamp=time_ns)
        for trace in traces:
            parent = within.get(trace.parent, span)
            within[trace.id] = self._model(trace, parent, offset)
        span.end(times[-1][1])

    def _model(self, trace: Trace, parent: "Span", offset: int) -> "Span":
        from opentelemetry.trace import StatusCode, set_span_in_context

        times = {name: time + offset for name, time in self._names.moments.of(trace)}
        self._numbers.prepare(trace.context)
        span = self._begin(trace.model, set_span_in_context(parent), times[self._of_model[0]])
        span.set_attributes(_attributes(trace, self._names))
        for name in (name for name in times if name in self._of_model):
            span.add_event(name, timestamp=times[name])
        if trace.error:
            span.set_status(StatusCode.ERROR, trace.error)
        ended = times.get(self._of_model[-1], max(times.values()))
        if self._execution[0] in times:
            began, links = times[self._execution[0]], [_link(mate) for mate in trace.mates]
            compute = self._begin(self._names.execution, set_span_in_context(span), began, links)
            compute.set_attribute("trivium.requests_together", trace.together)
            for name in self._execution:
                compute.add_event(name, timestamp=times[name])
            compute.end(times[self._execution[-1]])
        span.end(ended)
        return span

    def _begin(
        self, name: str, context: "Context | None", start: int, links: "Sequence[Link]" = ()
    ) -> "Span":
        from opentelemetry.trace import SpanKind

        return self._tracer.start_span(name, context, SpanKind.SERVER, links=links, start_time=start)


class _Numbers:
    """Implements the SDK's `IdGenerator`: the next span gets the ids that were set before it is made."""

    def __init__(self) -> None:
        self._trace = self._span = 0

    def prepare(self, context: str, is_root: bool = False) -> None:
        """The next span has this context, or, if it `is_root`, another span of its own in the same trace."""
        _, trace, span, _ = context.split("-")
        self._trace, self._span = int(trace, 16), 0 if is_root else int(span, 16)

    def generate_span_id(self) -> int:
        """Return the id that was set, once; then any."""
        span, self._span = self._span, 0
        return span or getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        """Return the id that was set."""
        return self._trace or getrandbits(128) or 1

    def is_trace_id_random(self) -> bool:
        """Return False: the ids come from clients, which may choose them in any way."""
        return False


def _outer(trace: Trace) -> "Context | None":
    """Return the context of the trace that the client's request is a part of."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    origin = trace.origin
    if origin is None or not origin.parent:
        return Context()
    told = {"traceparent": origin.parent}
    if origin.state:
        told["tracestate"] = origin.state
    return TraceContextTextMapPropagator().extract(told, Context())


def _link(context: str) -> "Link":
    """Return a link to the span of a context."""
    from opentelemetry.trace import Link, SpanContext, TraceFlags

    _, trace, span, _ = context.split("-", 3)
    flags = TraceFlags(TraceFlags.SAMPLED)
    return Link(SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=flags))


def _attributes(trace: Trace, names: SpanNames) -> dict[str, Any]:
    told: dict[str, Any] = {
        names.model: trace.model,
        names.version: int(trace.version) if trace.version.isdecimal() else trace.version,
        names.number: trace.id,
        names.parent: trace.parent,
    }
    if trace.request_id:
        told[names.request_id] = trace.request_id
    return told
