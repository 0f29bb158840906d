"""Takes updates of a TorchServe's metrics: keeps them for Prometheus, or has lines written, by the server's mode.

Decides which metrics there are, and what becomes of an update. Knows neither wire nor file: who makes it gives the
clock and what takes lines. Source: spec sheet `torchserve`, section 6.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite

from trivium.codecs.header_text import without_controls
from trivium.servers.torchserve.words.metric_lines import MetricLines
from trivium.servers.torchserve.words.metrics_config import (
    COUNTER,
    DEFAULTS,
    GAUGE,
    HISTOGRAM,
    HOSTNAME,
    KINDS,
    DeclaredMetric,
    MetricsDeclarations,
)

MOST_SERIES = 10_000
"""Series of all metrics together: a label that takes any value must not eat the server's memory."""

MOST_DETECTED = 1000
"""Metrics that handlers have made without declaring them."""

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Upper bounds of histograms, those of the original; the last bucket takes the rest."""

LEGACY = frozenset(
    {"ts_inference_requests_total", "ts_inference_latency_microseconds", "ts_queue_latency_microseconds"}
)
HOST = "Host"
"""The level of metrics that are the server's own."""

_REQUESTS = {2: "Requests2XX", 4: "Requests4XX"}
_OTHERS = "Requests5XX"
_VERBS = ("add", "set", "observe")
TakeLine = Callable[[str, float], None]
"""Takes a line and its time, in seconds of the epoch."""


class MetricsMode(StrEnum):
    """Says what becomes of metrics: all lines, all kept for Prometheus, or of these the three oldest."""

    LOG = "log"
    PROMETHEUS = "prometheus"
    LEGACY = "legacy"


@dataclass(slots=True)
class MeteredSeries:
    """The value of one metric under one set of labels; of a histogram the sum, and counts by bucket."""

    value: float = 0.0
    counts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MeterSettings:
    """Says which metrics a server has and what becomes of them. With `detects` a handler's needs no declaration."""

    declared: MetricsDeclarations = DEFAULTS
    mode: MetricsMode = MetricsMode.LOG
    detects: bool = False


class TorchServeMeter:
    """One per server, used on the loop only. `tell_server` and `tell_models` take lines of the server's own metrics and
    of handlers'.
    """

    def __init__(
        self,
        settings: MeterSettings,
        host: str,
        epoch: Callable[[], float],
        tell_server: TakeLine,
        tell_models: TakeLine,
    ) -> None:
        self._host = host
        self._lines = MetricLines(host)
        self._epoch = epoch
        self._tell_server = tell_server
        self._tell_models = tell_models
        self._detects = settings.detects
        self._mode = settings.mode
        self._server = dict(settings.declared.server)
        self._models = dict(settings.declared.models)
        self._detected = self._series = 0
        metrics = (*self._server.values(), *self._models.values())
        self._kept: dict[DeclaredMetric, dict[tuple[str, ...], MeteredSeries]] = {
            metric: {} for metric in metrics if self._is_kept(metric.name)
        }

    def _is_kept(self, name: str) -> bool:
        return self._mode is MetricsMode.PROMETHEUS or (self._mode is MetricsMode.LEGACY and name in LEGACY)

    @property
    def kept(self) -> Mapping[DeclaredMetric, Mapping[tuple[str, ...], MeteredSeries]]:
        """Return what is kept for Prometheus: of each metric the series, by the values of its dimensions."""
        return self._kept

    def answered(self, status: int) -> None:
        """Count a request that was answered over HTTP with this status."""
        self.update(_REQUESTS.get(status // 100, _OTHERS), (HOST,), 1.0)

    def update(self, name: str, values: Sequence[str], value: float) -> None:
        """Update a metric of the server's own with values of its dimensions, but for the host's. Nothing happens where
        it is not declared.
        """
        metric = self._server.get(name)
        if metric is None:
            return
        if metric in self._kept:
            with suppress(ValueError):  # one series too many
                self._keep(metric, (*values, self._host), value)
        else:
            epoch = self._epoch()
            self._tell_server(self._lines.line(metric, values, value, epoch), epoch)

    def forget(self, name: str, values: Sequence[str]) -> None:
        """Keep a metric of the server's own no more under these values: what it is about is gone."""
        metric = self._server.get(name)
        kept = None if metric is None else self._kept.get(metric)
        if kept and kept.pop((*values, self._host), None) is not None:
            self._series -= 1

    def measured(self, step: Mapping[str, object]) -> None:
        """Take a step of a handler's metric. Nothing happens where it need be declared and is not; ValueError where it
        contradicts its declaration.
        """
        name = str(step.get("name", ""))
        labels = step.get("labels") or {}
        assert isinstance(labels, Mapping), "labels are a mapping"
        metric = self._models.get(name) or self._detect(name, step, tuple(map(str, labels)))
        if metric is None:
            return
        value, values = _value(step), tuple(map(str, labels.values()))
        if len(values) + 1 != len(metric.dimensions):
            raise ValueError(
                f"metric '{name}' has the dimensions {', '.join(metric.dimensions[:-1]) or 'none'} by its declaration; "
                f"an update has {', '.join(map(str, labels)) or 'none'}. Make both alike."
            )
        if metric.kind == COUNTER and value < 0:
            raise ValueError(f"metric '{name}' is a counter, which only grows, not by {value:g}")
        if metric in self._kept:
            self._keep(metric, (*values, self._host), value)
            return
        request = without_controls(str(step.get("request") or "null"))
        epoch = self._epoch()
        self._tell_models(self._lines.line(metric, values, value, epoch, request), epoch)

    def _detect(
        self, name: str, step: Mapping[str, object], dimensions: tuple[str, ...]
    ) -> DeclaredMetric | None:
        kind = step.get("kind")
        if not self._detects or not name or kind not in KINDS:
            return None
        own = self._server.get(name)
        if own is not None and own.kind != kind:
            raise ValueError(f"metric '{name}' is a {own.kind} of the server's own. Give yours another name.")
        if self._detected >= MOST_DETECTED:
            raise ValueError(
                f"metric '{name[:200]}' is one too many: {MOST_DETECTED} have been made without a declaration. Declare "
                "it in metrics_config."
            )
        self._detected += 1
        metric = DeclaredMetric(name, str(kind), str(step.get("unit") or "unit"), (*dimensions, HOSTNAME))
        self._models[name] = metric
        if self._is_kept(name):
            self._kept[metric] = {}
        return metric

    def _keep(self, metric: DeclaredMetric, labels: tuple[str, ...], value: float) -> None:
        series = self._kept[metric].get(labels)
        if series is None:
            if self._series >= MOST_SERIES:
                raise ValueError(f"there are {MOST_SERIES} series already; give dimensions fewer values")
            self._series += 1
            counts = [0] * (len(BUCKETS) + 1) if metric.kind == HISTOGRAM else []
            series = self._kept[metric][labels] = MeteredSeries(counts=counts)
        if metric.kind == GAUGE:
            series.value = value
            return
        series.value += value
        if metric.kind == HISTOGRAM:
            series.counts[bisect_left(BUCKETS, value)] += 1


def _value(step: Mapping[str, object]) -> float:
    for verb in _VERBS:
        value = step.get(verb)
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    raise ValueError(f"metric '{str(step.get('name'))[:200]}' has no number for a value")
