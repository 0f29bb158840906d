"""Writes what the server and its models count for `GET /server/metrics`, where Prometheus is switched on.

Source: spec sheet `djl`, section 5.3.
"""

from collections.abc import Iterator, Set
from urllib.parse import parse_qsl

import msgspec

from trivium.codecs.error_table import said
from trivium.codecs.exposition import CONTENT_TYPE, ExposedMetric, custom, text
from trivium.codecs.header_text import uncached_lines
from trivium.servers.djl.wire.errors import MANAGES, refuse
from trivium.servers.djl.wire.own_metrics import OwnMetrics
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.operations import CollectMetrics, ResponsePart
from trivium.types.spoken import spoken
from trivium.types.statistics import MetricsReport
from trivium.types.wire import Head, HttpAnswer

_KINDS = ("counter", "gauge", "histogram")
_NAME = "name[]"
_TEXT = f"Content-Type: {CONTENT_TYPE}\r\n".encode()
_MOST_NAMES = 1000


def decode_metrics(
    head: Head, request_id: str, is_on: bool, exact: bool, own: OwnMetrics
) -> tuple[CollectMetrics, "DjlMetricsEncoder"]:
    """The operation of a request for metrics, of all or of those named. INVALID where they are not switched on."""
    if not is_on:
        raise said(
            Code.INVALID,
            spoken(
                "Metrics for Prometheus are not switched on here. Start the server with SERVING_PROMETHEUS=true or "
                "--djl-prometheus, or ask for /metrics."
            ),
            "Prometheus is not enabled.",
        )
    try:
        pairs = parse_qsl(head.query, errors="strict", max_num_fields=_MOST_NAMES)
    except ValueError as error:
        raise ServeError(
            Code.INVALID, f"The query string cannot be read ({error}). Name metrics by {_NAME}=NAME."
        ) from error
    return CollectMetrics(), DjlMetricsEncoder(
        request_id, {v for name, v in pairs if name == _NAME}, exact, own
    )


class DjlMetricsEncoder:
    """Writes one report, with the families that `own` makes of it; of the metrics called `names` alone, where there are
    any.
    """

    __slots__ = ("_exact", "_names", "_own", "_request_id")

    def __init__(self, request_id: str, names: Set[str], exact: bool, own: OwnMetrics) -> None:
        self._own = own
        self._request_id = request_id
        self._names = names
        self._exact = exact

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        if part.error is not None:
            return refuse(part.error, self._request_id, self._exact, MANAGES)
        try:
            assert part.final, "metrics are answered by one part"
            assert isinstance(part.answer, MetricsReport), part.answer
            body = text(self._chosen(part.answer))
        except Exception as error:
            return refuse(unwritable(error), self._request_id, self._exact, MANAGES)
        return HttpAnswer(200, uncached_lines(self._request_id) + _TEXT, (body,), len(body))

    def _chosen(self, report: MetricsReport) -> Iterator[ExposedMetric]:
        report = msgspec.structs.replace(report, custom=(*self._own(report), *report.custom))
        taken: set[str] = set()
        for kind in _KINDS:
            for family in custom(report, kind, taken):
                if not self._names or self._names & {family.name, family.name.removesuffix("_total")}:
                    yield family
