"""The load of a language model's cache in a header of its answers, for balancers that ask for it (ORCA).

Source: `orca_http.cc` and `http_server.cc` of Triton 2.73: the header `endpoint-load-metrics-format` of a request to
generate asks for `text` or `json`, and the numbers come from a metric of the model's own, as TensorRT-LLM's has it.
"""

import logging
from collections.abc import Mapping
from functools import partial
from math import inf, isfinite

import msgspec

from trivium.types.interfaces import Encoder
from trivium.types.metrics import MetricFamily
from trivium.types.protocol_context import FindMetric
from trivium.types.wire import Head
from trivium.wires.v2.head_lines import HeadLineEncoder

LOAD_FORMAT = b"endpoint-load-metrics-format"

FAMILY = "nv_trt_llm_kv_cache_block_metrics"
"""The gauge whose series, by the label `kv_cache_block_type`, are the numbers of blocks and the tokens in each."""

_TYPE = "kv_cache_block_type"
_NEEDED = ("tokens_per", "used", "max")

log = logging.getLogger(__name__)


class LoadReports:
    """Reports the load where a client asks for it. What keeps it from that is logged once, not for each request."""

    def __init__(self, metric: FindMetric) -> None:
        self._metric = metric
        self._logged: set[str] = set()

    def around(self, head: Head, encoder: Encoder) -> Encoder:
        """Return the encoder of an answer, with the report in front if this request asks for one."""
        form = head.headers.get(LOAD_FORMAT)
        return (
            encoder if form is None else HeadLineEncoder(encoder, partial(self.field, form.decode("latin-1")))
        )

    def field(self, form: str) -> bytes:
        """Return the header line in this form; empty where there is none."""
        try:
            return b"endpoint-load-metrics: %s\r\n" % load_report(form, self._metric(FAMILY)).encode()
        except NoLoadError as error:
            if error.reason not in self._logged:
                self._logged.add(error.reason)
                log.warning("endpoint-load-metrics-format: %s; the answer has no report of the load", error)
            return b""


class NoLoadError(Exception):
    """Says why there is no report; `reason` is one of few."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def load_report(form: str, family: MetricFamily | None) -> str:
    """Return the header's value in this form. NoLoadError where there is none."""
    if form not in ("text", "json"):
        raise NoLoadError("form", f"{form[:40]!r} is neither text nor json")
    found = _blocks(family)
    lacking = [name for name in _NEEDED if name not in found]
    if lacking:
        text = f"no model has set {', '.join(lacking)} (label {_TYPE}) of the gauge {FAMILY}"
        raise NoLoadError("metric", text)
    used = found["used"] / found["max"] if found["max"] > 0 else 0.0
    most = found["max"] * found["tokens_per"]
    if not isfinite(most):  # an answer must not fail for a number of its model's
        raise NoLoadError(
            "size", f"the gauge {FAMILY} says that there are more tokens than a number can hold"
        )
    tokens = int(most)
    if form == "text":
        return f"TEXT named_metrics.kv_cache_utilization={used:f}, named_metrics.max_token_capacity={tokens}"
    named = {"kv_cache_utilization": used, "max_token_capacity": tokens}
    return "JSON " + msgspec.json.encode({"named_metrics": named}).decode()


def _blocks(family: MetricFamily | None) -> Mapping[str, float]:
    """Return the numbers by their type; of several models that have set one, the last one's."""
    if family is None:
        return {}
    each = ((dict(series.labels).get(_TYPE, ""), series.value) for series in family.series)
    return {name: value for name, value in each if name in _NEEDED and 0 <= value < inf}
