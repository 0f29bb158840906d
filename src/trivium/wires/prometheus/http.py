"""Prometheus' way to ask a server what it counts: `GET /metrics`, sans-IO.

Decides the route, the order of the families, and the form of a refusal. Measures nothing: all is in the report.
Source: spec sheet `triton`, section 6.2; statuses and bodies of refusals as Triton's metrics port gives them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from trivium.codecs import openmetrics
from trivium.codecs.error_table import OWN_ROWS, ErrorRow, ErrorTable, allow_line
from trivium.codecs.error_texts import wire_text
from trivium.codecs.exposition import CONTENT_TYPE, ExposedMetric, custom, sample_names, text
from trivium.codecs.header_text import JSON
from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.codecs.path_segments import quoted
from trivium.codecs.routes import HttpRoute, RouteTree, endpoints, prefixes, with_slash
from trivium.types.access import AccessScope, Endpoint
from trivium.types.described import WireDescription
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.metrics import MetricFamily
from trivium.types.operations import CollectMetrics, Operation, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.statistics import MetricsReport
from trivium.types.wire import Body, Head, HttpAnswer, Target
from trivium.wires.prometheus import generation, own, triton, vllm
from trivium.wires.prometheus.described import METRICS, of_rows

_ROWS = tuple(with_slash([HttpRoute("GET", "/metrics", METRICS, AccessScope.OBSERVE)]))
ROUTES: Mapping[Role, Sequence[str]] = {Role.METRICS: prefixes(_ROWS)}
ENDPOINTS: Sequence[Endpoint] = endpoints(_ROWS)

TABLE = ErrorTable(
    {
        **OWN_ROWS,
        Code.LOAD_FAILED: ErrorRow(500),
        Code.OUT_OF_MEMORY: ErrorRow(500),
        Code.EXPIRED: ErrorRow(503),
    }
)

_TEXT = f"Content-Type: {CONTENT_TYPE}\r\n".encode()
_OPEN = f"Content-Type: {openmetrics.CONTENT_TYPE}\r\n".encode()


@dataclass(frozen=True, slots=True)
class MetricsOptions:
    """Optional families of metrics, each present or not, and those that are made by `own`. `ignored` counts, by model,
    fields of requests that had no effect.
    """

    durations: bool = True
    summaries: bool = False
    first_parts: bool = False
    vllm: bool = False
    own: Callable[[MetricsReport], tuple[MetricFamily, ...]] = lambda report: ()
    ignored: Callable[[], Mapping[str, int]] = dict


class PrometheusHttp:
    """Implements `types.interfaces.WireProtocol`."""

    def __init__(self, which: MetricsOptions) -> None:
        self._encoder = ReportEncoder(which)
        self._open = ReportEncoder(which, is_open=True)

    def head(self, head: Head) -> Target:
        """NOT_FOUND for another path, METHOD for another method than GET (HEAD comes as GET)."""
        return _TREE.find(head)

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """There is no body to decode."""
        return False

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """Everything, always; in the form that is asked for."""
        accept = head.headers.get(b"accept")
        is_open = accept is not None and openmetrics.is_wanted(accept.decode("latin-1"))
        return CollectMetrics(), self._open if is_open else self._encoder

    def refuse(self, error: ServeError) -> HttpAnswer:
        """A JSON object with the sentence."""
        return _refusal(error)


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener."""
    which = MetricsOptions(
        context.has_duration_metrics,
        context.has_quantiles,
        context.has_first_part_metrics,
        context.has_vllm_metrics,
        context.own_metrics,
        lambda: context.states.of(IgnoredFieldLog).counts,
    )
    return PrometheusHttp(which)


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    return of_rows(_ROWS)


@dataclass(frozen=True, slots=True)
class ReportEncoder:
    """Writes the report as text, of OpenMetrics if it `is_open`. Has no state: one serves all requests."""

    which: MetricsOptions
    is_open: bool = False

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """See `types.interfaces.Encoder`."""
        if part.error is not None:
            return _refusal(part.error)
        if not isinstance(part.answer, MetricsReport):
            return _refusal(ServeError(Code.INTERNAL, "There was no report to write. Report it."))
        found = families(part.answer, self.which)
        body, kind = (openmetrics.text(found), _OPEN) if self.is_open else (text(found), _TEXT)
        return HttpAnswer(200, kind, (body,), len(body))


def families(report: MetricsReport, which: MetricsOptions) -> Iterator[ExposedMetric]:
    """All of them, by kind: counters, gauges, histograms, summaries; Triton's, then custom ones. Ours come last."""
    rows = triton.rows_of(report)
    report = msgspec.structs.replace(report, custom=(*which.own(report), *report.custom))
    ours = [*own.counters(rows), *own.gauges(rows), *own.histograms(rows)]
    ours += [*generation.tokens(rows), *generation.ignored_fields(which.ignored()), *own.loops(report)]
    ours += [*own.instances(rows), *own.health(report)]
    ours += vllm.families(rows) if which.vllm else []
    histograms = [triton.first_parts(rows)] if which.first_parts else []
    quantiles = list(triton.summaries(rows)) if which.summaries else []
    kinds: list[tuple[str, Iterable[ExposedMetric]]] = [
        ("counter", list(triton.counters(rows, report.gpus, which.durations))),
        ("gauge", list(triton.gauges(rows, report))),
        ("histogram", histograms),
    ]
    fixed = [*ours, *quantiles, *(family for _, some in kinds for family in some)]
    taken = {name for family in fixed for name in sample_names(family.name, family.kind)}
    for kind, some in kinds:
        yield from some
        yield from custom(report, kind, taken)
    yield from quantiles
    yield from ours


def _refusal(error: ServeError) -> HttpAnswer:
    body = msgspec.json.encode({"error": wire_text(error.message)})
    return HttpAnswer(
        error.status or TABLE.wording(error).status, JSON + allow_line(error), (body,), len(body)
    )


def _advice(head: Head, allow: str) -> str:
    return "Method Not Allowed" if allow else f"There is no route {quoted(head.path)}; there is /metrics."


_TREE = RouteTree(_ROWS, _advice)
