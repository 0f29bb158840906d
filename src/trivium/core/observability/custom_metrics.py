"""Custom metrics: what user code in worker processes counts, sums of all its instances. Rendered by protocols.

A step is a mapping: `kind` counter, gauge or histogram; `name`, `help`, `labels`, and one of `add`, `set`,
`observe` with a number; `buckets` (upper bounds, ascending) of a histogram, on its first step. `unit` and `request`
(ids of the requests that it is about) may be there for whoever records it (`types/recording`).
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from trivium.types.metrics import MetricFamily, MetricSeries

MOST_SERIES = 10_000
"""Series of all metrics together: a label that takes any value must not eat the server's memory."""

MOST_BUCKETS = 200
"""Upper bounds of one histogram, for the same reason."""

_STEPS = {"counter": ("add",), "gauge": ("add", "set"), "histogram": ("observe",)}
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Series:
    """The value of one metric under one set of labels; of a histogram the sum, and counts by bucket. `models` have
    counted it.
    """

    value: float = 0.0
    count: int = 0
    buckets: list[int] = field(default_factory=list)
    models: set[str] = field(default_factory=set)


@dataclass(slots=True)
class CustomMetric:
    """One metric. `bounds` are those of a histogram; its last bucket takes the rest."""

    kind: str
    help: str
    bounds: tuple[float, ...]
    series: dict[Labels, Series] = field(default_factory=dict)


class CustomMetrics:
    """One per server. Used on the loop only."""

    def __init__(self) -> None:
        self.families: dict[str, CustomMetric] = {}
        self._count = 0

    def take(self, model: str, step: Mapping[str, object]) -> None:
        """Carry out one step. ValueError where it is none, or contradicts what the metric is; then nothing changes."""
        try:
            self._take(model, step)
        except ValueError as error:
            raise ValueError(f"metric '{str(step.get('name'))[:200]}' of model '{model}': {error}") from error

    def report(self) -> tuple[MetricFamily, ...]:
        """All of them, frozen, by name."""
        return tuple(_frozen(name, family) for name, family in sorted(self.families.items()))

    def find(self, name: str) -> MetricFamily | None:
        """One of them, frozen; None where nobody has counted it."""
        family = self.families.get(name)
        return None if family is None else _frozen(name, family)

    def forget(self, model: str) -> None:
        """The model is no longer loaded: what nobody else counted goes with it."""
        for name, family in list(self.families.items()):
            for labels, series in list(family.series.items()):
                series.models.discard(model)
                if not series.models:
                    del family.series[labels]
                    self._count -= 1
            if not family.series:
                del self.families[name]

    def _take(self, model: str, step: Mapping[str, object]) -> None:
        name, kind = step.get("name"), str(step.get("kind"))
        if not isinstance(name, str) or not name:
            raise ValueError("a metric needs a name, which is text")
        verbs = _STEPS.get(kind)
        if verbs is None:
            raise ValueError(f"its kind is {kind[:50]!r}; it must be one of {', '.join(_STEPS)}")
        verb = next((verb for verb in verbs if verb in step), None)
        if verb is None:
            raise ValueError(f"a {kind} takes one of: {', '.join(verbs)}")
        number = _number(step[verb])
        if kind == "counter" and not 0 <= number < inf:
            raise ValueError(f"a counter only grows, by finite numbers, not by {number:g}")
        family = self.families.get(name) or CustomMetric(kind, str(step.get("help", "")), _bounds(step))
        if family.kind != kind:
            raise ValueError(f"it is a {family.kind}, not a {kind}")
        series = self._series(family, step)
        series.models.add(model)
        self.families[name] = family  # only now: what was refused leaves nothing behind
        self._step(family, series, verb, number)

    def _series(self, family: CustomMetric, step: Mapping[str, object]) -> Series:
        labels = step.get("labels") or {}
        if not isinstance(labels, Mapping):
            raise ValueError("labels are a mapping of names to text")
        key: Labels = tuple(sorted((str(label), str(value)) for label, value in labels.items()))
        series = family.series.get(key)
        if series is None:
            if self._count >= MOST_SERIES:
                raise ValueError(f"there are {MOST_SERIES} series already; give labels fewer values")
            self._count += 1
            series = family.series[key] = Series(buckets=[0] * (len(family.bounds) + 1))
        return series

    @staticmethod
    def _step(family: CustomMetric, series: Series, verb: str, number: float) -> None:
        if verb == "set":
            series.value = number
        else:
            series.value += number
        if verb == "observe":
            series.count += 1
            series.buckets[bisect_left(family.bounds, number)] += 1


def _frozen(name: str, family: CustomMetric) -> MetricFamily:
    bounds = (*family.bounds, inf)
    is_histogram = family.kind == "histogram"
    series = (
        MetricSeries(
            labels, one.value, one.count, tuple(zip(bounds, one.buckets, strict=True)) if is_histogram else ()
        )
        for labels, one in sorted(family.series.items())
    )
    return MetricFamily(name, family.kind, family.help, tuple(series))


def _bounds(step: Mapping[str, object]) -> tuple[float, ...]:
    given = step.get("buckets") or ()
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MOST_BUCKETS:
        raise ValueError(f"buckets are a list of at most {MOST_BUCKETS} numbers")
    bounds = {_number(bound) for bound in given}
    return tuple(
        sorted(bound for bound in bounds if isfinite(bound))
    )  # the last bucket takes the rest anyway


def _number(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
        raise ValueError(f"{str(given)[:50]!r} is no number")
    try:
        return float(given)
    except OverflowError as error:
        raise ValueError("a number is beyond what a metric can hold") from error
