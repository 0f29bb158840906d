"""TorchServe's way to be asked what it counts: `/metrics` on a listener of its own, in Prometheus' text.

Decides route, form and filter. Counts nothing: all is in the server's meter. Source: spec sheet `torchserve`, section
6.1, and what the original's library writes: a comma behind the last label, numbers as Java writes them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from math import inf
from urllib.parse import parse_qsl

from trivium.codecs.exposition import fit_labels, fit_name
from trivium.codecs.header_text import uncached_lines
from trivium.codecs.path_segments import quoted
from trivium.codecs.routes import ANY, HttpRoute, RouteTree, described, endpoints, prefixes
from trivium.servers.torchserve.wire.errors import refuse
from trivium.servers.torchserve.words.meter import BUCKETS, MeteredSeries, MeterSettings, TorchServeMeter
from trivium.servers.torchserve.words.metric_lines import java_number
from trivium.servers.torchserve.words.metrics_config import HISTOGRAM, DeclaredMetric
from trivium.types.access import AccessScope, Endpoint
from trivium.types.described import (
    TEXT,
    TEXT_KIND,
    DescribedArgument,
    DescribedBody,
    DescribedVerb,
    WireDescription,
)
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Live, Operation, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target

_SCRAPE = "scrape"
_ROWS = (HttpRoute(f"{ANY} OPTIONS", "/metrics/...", _SCRAPE, AccessScope.OBSERVE),)
ROUTES: Mapping[Role, Sequence[str]] = {Role.METRICS: prefixes(_ROWS)}
ENDPOINTS: Sequence[Endpoint] = endpoints(_ROWS)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TEXT = f"Content-Type: {CONTENT_TYPE}\r\n".encode()
_NAME, _MOST_NAMES = "name[]", 1000
_BOUNDS = (*map(java_number, BUCKETS), "+Inf")


class TorchServeMetricsHttp:
    """Implements `types.interfaces.WireProtocol`: what a meter keeps, to whoever asks by any method."""

    def __init__(self, meter: TorchServeMeter, make_id: Callable[[], str], exact_texts: bool) -> None:
        self._meter = meter
        self._make_id = make_id
        self._exact = exact_texts

    def head(self, head: Head) -> Target:
        """NOT_FOUND for another path; what stands behind /metrics is not looked at, as in the original."""
        return _TREE.find(head)

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """There is no body to decode."""
        return False

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """All metrics, or those of the samples that are named. INVALID for a query that cannot be read."""
        try:
            pairs = parse_qsl(head.query, keep_blank_values=True, max_num_fields=_MOST_NAMES)
        except ValueError as error:
            raise ServeError(
                Code.INVALID, f"The query cannot be read ({error}). Name samples by {_NAME}=NAME."
            ) from error
        names = {value for name, value in pairs if name == _NAME}
        return Live(), ScrapeEncoder(self._meter, self._make_id(), names)

    def refuse(self, error: ServeError) -> HttpAnswer:
        """The error's JSON; the connection closes behind it."""
        return refuse(error, self._make_id(), exact=self._exact)


def _advice(head: Head, allow: str) -> str:
    return f"There is no route {quoted(head.path)} here; there is /metrics."


_TREE = RouteTree(_ROWS, _advice)


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener; of a server without a meter it tells nothing."""
    meter = context.states.find(TorchServeMeter)
    if meter is None:
        meter = TorchServeMeter(MeterSettings(), context.host, context.epoch, _drop, _drop)
    return TorchServeMetricsHttp(meter, context.make_id, context.as_original)


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    verb = DescribedVerb(
        summary="What the server and its models count, for Prometheus",
        arguments=(DescribedArgument(_NAME, TEXT, "Samples that are wanted; without it all."),),
        answers={"200": DescribedBody({TEXT_KIND: TEXT})},
    )
    return WireDescription("Metrics", described(_ROWS, {_SCRAPE: verb}), {"4XX": None, "5XX": None})


def _drop(line: str, epoch: float) -> None:
    """Take a line that nobody wants."""


class ScrapeEncoder:
    """Writes what a meter keeps; of it the samples called `names`, where there are any."""

    __slots__ = ("_meter", "_names", "_request_id")

    def __init__(self, meter: TorchServeMeter, request_id: str, names: Set[str]) -> None:
        self._meter = meter
        self._request_id = request_id
        self._names = names

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer, whether the server is up or not."""
        body = exposed(self._meter, self._names)
        return HttpAnswer(200, uncached_lines(self._request_id) + _TEXT, (body,), len(body))


def exposed(meter: TorchServeMeter, names: Set[str] = frozenset()) -> bytes:
    """Return the text of all metrics, or of the samples with these names. Of a metric without samples the
    head is there, unless names are given.
    """
    lines: list[str] = []
    headed = ""  # a handler's metric may have the name of one of the server's own
    for metric, series in sorted(meter.kept.items(), key=lambda item: item[0].name):
        name = fit_name(metric.name)
        samples = [text for sample, text in _samples(name, metric, series) if not names or sample in names]
        if name == headed:
            lines += samples
        elif samples or not names:
            headed = name
            unit = metric.unit.replace("\\", "\\\\").replace("\n", "\\n")
            lines.append(f"# HELP {name} Torchserve prometheus {metric.kind} metric with unit: {unit}\n")
            lines.append(f"# TYPE {name} {metric.kind}\n")
            lines += samples
    return "".join(lines).encode("utf-8", "backslashreplace")


def _samples(
    name: str, metric: DeclaredMetric, series: Mapping[tuple[str, ...], MeteredSeries]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the line of each sample."""
    for values, one in series.items():
        labels = fit_labels(zip(metric.dimensions, values, strict=True), ("le",) if one.counts else ())
        text = "".join([f'{label}="{_escaped(value)}",' for label, value in labels.items()])
        if metric.kind != HISTOGRAM:
            yield _sample(name, text, one.value)
            continue
        below = 0
        for bound, count in zip(_BOUNDS, one.counts, strict=True):
            below += count
            yield _sample(f"{name}_bucket", f'{text}le="{bound}",', below)
        yield _sample(f"{name}_count", text, below)
        yield _sample(f"{name}_sum", text, one.value)


def _sample(name: str, labels: str, value: float) -> tuple[str, str]:
    shown = "+Inf" if value == inf else java_number(value)
    return name, f"{name}{{{labels}}} {shown}\n" if labels else f"{name} {shown}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
