"""Quantiles of what happened lately, from counts in logarithmic buckets: bounded memory, one addition per value.

Pure: points of time come in as arguments. A quantile is right to one per cent of its value; what is older than the
span, in whole slices of it, has been forgotten.
"""

from collections import Counter, deque
from math import ceil, exp, log, nan

from trivium.types.errors import Code, ServeError

SPAN = 60.0
"""Seconds that are looked back upon, as in the original's summaries."""

SLICES = 5
_WIDTH = log(1.01 / 0.99)
"""Of a bucket, so that its middle is within one per cent of all that is in it."""

_LEAST = 1e-9
"""Seconds: whatever is shorter counts as this long."""


class RecentValues:
    """Estimates quantiles of one kind of duration. `add` and `quantiles` get the time, which never goes back."""

    def __init__(self) -> None:
        self._slices: deque[tuple[float, Counter[int]]] = deque()

    def add(self, value: float, count: int, now: float) -> None:
        """So many of them."""
        slices = self._slices
        if not slices or now - slices[-1][0] >= SPAN / SLICES:
            self._forget(now)
            slices.append((now, Counter()))
        slices[-1][1][ceil(log(max(value, _LEAST)) / _WIDTH)] += count

    def quantiles(self, wanted: tuple[float, ...], now: float) -> tuple[tuple[float, float], ...]:
        """Pairs of a quantile and its value; nan where nothing happened."""
        self._forget(now)
        counts: Counter[int] = Counter()
        for _, slice_counts in self._slices:
            counts.update(slice_counts)
        return tuple((quantile, _value(counts, quantile)) for quantile in wanted)

    def bucket_counts(self) -> tuple[int, ...]:
        """Count the buckets of each slice that is remembered, for a developer who debugs."""
        return tuple(len(counts) for _, counts in self._slices)

    def _forget(self, now: float) -> None:
        while self._slices and now - self._slices[0][0] >= SPAN:
            self._slices.popleft()


def parse_quantiles(text: str) -> tuple[float, ...]:
    """Read quantiles from "0.5,0.99". "0.5:0.05,0.99:0.001" is taken, too: the second numbers are errors of a rank
    that other estimators may make, where this one's is a hundredth of the value whatever they say. Raises INVALID.
    """
    wanted: list[float] = []
    for word in filter(None, text.split(",")):
        quantile, _, error = word.partition(":")
        try:
            numbers = [float(quantile), float(error or 0)]
        except ValueError:
            numbers = [nan]
        if not all(0 <= number <= 1 for number in numbers):
            raise ServeError(
                Code.INVALID,
                f"{word!r} in {text!r} is no quantile. Give numbers from 0 to 1 with commas between, like 0.5,0.99.",
            )
        wanted.append(numbers[0])
    return tuple(wanted)


def _value(counts: Counter[int], quantile: float) -> float:
    rank = max(1, ceil(quantile * counts.total()))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0:
            return exp((bucket - 0.5) * _WIDTH)
    return nan
