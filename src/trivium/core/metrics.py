"""Custom metrics: what user code in worker processes counts, sums of all its instances. Rendered by protocols.

A step is a mapping: `kind` counter, gauge or histogram; `name`, `help`, `labels`, and one of `add`, `set`,
`observe` with a number; `buckets` (upper bounds, ascending) of a histogram, on its first step.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_SERIES = 10_000
"""Series of all metrics together: a label that takes any value must not eat the server's memory."""

_STEPS = {"counter": ("add",), "gauge": ("add", "set"), "histogram": ("observe",)}
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Series:
    """The value of one metric under one set of labels; of a histogram the sum, and counts by bucket."""

    value: float = 0.0
    count: int = 0
    buckets: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Family:
    """One metric. `bounds` are those of a histogram; its last bucket takes the rest."""

    kind: str
    help: str
    bounds: tuple[float, ...]
    series: dict[Labels, Series] = field(default_factory=dict)


class CustomMetrics:
    """One per server. Used on the loop only."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self._count = 0

    def take(self, model: str, step: Mapping[str, object]) -> None:
        """Carry out one step. ValueError where it is none, or contradicts what the metric is."""
        name, kind = str(step["name"]), str(step["kind"])
        verbs = _STEPS.get(kind)
        verb = next((verb for verb in verbs or () if verb in step), None)
        if verb is None:
            raise ValueError(f"metric '{name}' of model '{model}': a {kind} takes one of {verbs}")
        number = step[verb]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(f"metric '{name}' of model '{model}': {number!r} is no number")
        if verb == "add" and kind == "counter" and number < 0:
            raise ValueError(f"metric '{name}' of model '{model}': a counter only grows")
        family = self.families.setdefault(name, Family(kind, str(step.get("help", "")), _bounds(step)))
        if family.kind != kind:
            raise ValueError(f"metric '{name}' of model '{model}' is a {family.kind}, not a {kind}")
        self._step(family, self._series(family, step), verb, float(number))

    def _series(self, family: Family, step: Mapping[str, object]) -> Series:
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
    def _step(family: Family, series: Series, verb: str, number: float) -> None:
        if verb == "set":
            series.value = number
        else:
            series.value += number
        if verb == "observe":
            series.count += 1
            series.buckets[bisect_left(family.bounds, number)] += 1


def _bounds(step: Mapping[str, object]) -> tuple[float, ...]:
    given = step.get("buckets") or ()
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ValueError("buckets are a list of numbers")
    return tuple(sorted(float(bound) for bound in given))
