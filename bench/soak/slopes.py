"""Tells whether what was sampled over time has stayed flat: the Theil-Sen slope, beside what may be noise."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Bound:
    """The growth that a series may show over the whole run: so much, or that share of its median, if it is more."""

    unit: str
    most: float
    share: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What was found of one series: its median, and its growth from the first sample to the last."""

    name: str
    unit: str
    median: float
    growth: float
    allowed: float

    @property
    def is_flat(self) -> bool:
        return self.growth <= self.allowed


def judge(
    times: Sequence[float],
    series: Mapping[str, Sequence[float]],
    bounds: Mapping[str, Bound],
    windows: int = 60,
) -> list[Verdict]:
    """Judge every series that has a bound by the medians of so many windows of its samples.

    `times` in seconds, in rising order; each series has as many samples. A series that falls is flat.
    """
    found = []
    for name, bound in bounds.items():
        medians = windowed(times, series[name], windows)
        median = statistics.median(value for _, value in medians)
        growth = slope(medians) * (times[-1] - times[0])
        found.append(Verdict(name, bound.unit, median, growth, max(bound.most, bound.share * median)))
    return found


def windowed(times: Sequence[float], values: Sequence[float], windows: int) -> list[tuple[float, float]]:
    """The medians of time and value in windows of equally many samples."""
    size = max(len(times) // windows, 1)
    starts = range(0, len(times) - size + 1, size)
    return [
        (statistics.median(times[at : at + size]), statistics.median(values[at : at + size])) for at in starts
    ]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points, which a few wild ones do not move (Sen, 1968)."""
    if len(points) < 2:
        raise ValueError(f"a slope needs two points at least, not {len(points)}")
    return statistics.median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2))
