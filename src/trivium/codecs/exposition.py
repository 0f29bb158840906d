"""Prometheus' text format 0.0.4: families of samples to lines. Source: Prometheus' page "Exposition formats".

Labels come out sorted by name, but for `le` and `quantile`, which stand last, as Triton's own server writes them. The
package `prometheus_client` reads this in the tests, but cannot write it: it ends the names of counters with `_total`.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isnan

from trivium.types.metrics import Buckets, Exemplar
from trivium.types.statistics import MetricsReport

CONTENT_TYPE = "text/plain; charset=utf-8"

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_UNFIT_IN_NAME = re.compile(r"[^a-zA-Z0-9_:]")
_UNFIT_IN_LABEL = re.compile(r"[^a-zA-Z0-9_]")
_WHOLE = 2.0**53
_RESERVED = {"histogram": ("le",)}
_SUFFIXES = {"histogram": ("_count", "_sum", "_bucket"), "summary": ("_count", "_sum")}

Labels = Mapping[str, str]


def written(labels: Labels) -> str:
    """Labels as they stand between the braces: once for all samples that have them."""
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items())])


NO_EXEMPLARS: Mapping[int, Exemplar] = {}


@dataclass(slots=True)
class ExposedMetric:
    """One metric: `kind` is counter, gauge, histogram or summary. Each line is whole. `labels` are `written`."""

    name: str
    kind: str
    help: str
    lines: list[str] = field(default_factory=list)
    exemplars: dict[int, Exemplar] = field(default_factory=dict)  # by the number of the line

    def add(self, labels: str, value: float, suffix: str = "") -> None:
        """One sample."""
        inside = f"{{{labels}}}" if labels else ""
        self.lines.append(f"{self.name}{suffix}{inside} {number(value)}")

    def add_histogram(
        self,
        labels: str,
        total: float,
        buckets: Buckets,
        scale: float = 1.0,
        exemplars: Mapping[int, Exemplar] = NO_EXEMPLARS,
    ) -> None:
        """Count, sum and cumulated buckets. Bounds are multiplied by `scale`; `total` is in their unit already.
        `exemplars` are by the number of a bucket.
        """
        self.add(labels, sum([inside for _, inside in buckets]), "_count")
        self.add(labels, total, "_sum")
        begin = f"{self.name}_bucket{{{labels}," if labels else f"{self.name}_bucket{{"
        below = 0
        for number, (bound, inside) in enumerate(buckets):
            below += inside
            if number in exemplars:
                self.exemplars[len(self.lines)] = exemplars[number]
            self.lines.append(f'{begin}le="{_bound(bound * scale)}"}} {below}')

    def add_summary(
        self, labels: str, count: int, total: float, quantiles: Sequence[tuple[float, float]]
    ) -> None:
        """Count, sum and a line per quantile."""
        self.add(labels, count, "_count")
        self.add(labels, total, "_sum")
        for quantile, value in quantiles:
            last = f'quantile="{_bound(quantile)}"'
            self.add(f"{labels},{last}" if labels else last, value)


def text(families: Iterable[ExposedMetric]) -> bytes:
    """The whole answer. A family without samples is named all the same."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped_help(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += family.lines
    lines.append("")
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def number(value: float) -> str:
    """Whole numbers without a point, others as short as they can be read back; what is none as Triton writes it."""
    if type(value) is int:
        return str(value)
    if isnan(value):
        return "Nan"
    if value in (inf, -inf):
        return "+Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < _WHOLE:
        return str(int(value))
    return repr(float(value))


@lru_cache(maxsize=1024)
def _bound(value: float) -> str:
    """A bound or a quantile: the same ones come again and again."""
    return number(value)


def fit_name(name: str) -> str:
    """A name of a metric like this one: what the format forbids becomes `_`."""
    return name if _NAME.fullmatch(name) else _begun(_UNFIT_IN_NAME.sub("_", name))


def fit_labels(labels: Iterable[tuple[str, str]], reserved: Container[str] = ()) -> dict[str, str]:
    """Labels under names that the format allows, none of them `reserved`."""
    fit: dict[str, str] = {}
    for name, value in labels:
        legal = name if _LABEL.fullmatch(name) else _begun(_UNFIT_IN_LABEL.sub("_", name))
        while legal in fit or legal in reserved:
            legal += "_"
        fit[legal] = value
    return fit


def custom(report: MetricsReport, kind: str, taken: set[str]) -> Iterator[ExposedMetric]:
    """The custom metrics of one kind. Their samples have names that nothing else has: `taken` grows by them."""
    for metric in report.custom:
        if metric.kind != kind:
            continue
        family = ExposedMetric(_free_name(fit_name(metric.name), kind, taken), kind, metric.help)
        taken.update(sample_names(family.name, kind))
        seen: set[tuple[tuple[str, str], ...]] = set()
        for series in metric.series:
            labels = fit_labels(series.labels, _RESERVED.get(kind, ()))
            while tuple(sorted(labels.items())) in seen:
                labels = {f"{name}_": value for name, value in labels.items()}
            seen.add(tuple(sorted(labels.items())))
            if kind == "histogram":
                family.add_histogram(written(labels), series.value, series.buckets)
            else:
                family.add(written(labels), series.value)
        yield family


def sample_names(name: str, kind: str) -> set[str]:
    """All names that the samples of a metric can have."""
    return {name, *(name + suffix for suffix in _SUFFIXES.get(kind, ()))}


def _free_name(name: str, kind: str, taken: Set[str]) -> str:
    while not taken.isdisjoint(sample_names(name, kind)):
        name += "_"
    return name


def _begun(name: str) -> str:
    return f"_{name}" if not name or name[0].isdigit() else name


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")
