"""Makes rates and quantiles of late of counts that only grow, as snapshots find them. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from trivium.types.metrics import Buckets

WINDOW_SECONDS = 10.0
"""Of which rates and quantiles are."""

MOST_SECONDS = 60
"""That a history has, a number for each."""

_SPACING = 0.9
"""Seconds between two samples at least: whoever asks more often gets the rates since the samples that there are."""


class Counts(msgspec.Struct, frozen=True, gc=False):
    """Holds what was counted of one model until a moment: requests that ended, and well ended ones by their seconds."""

    requests: int
    buckets: Buckets = ()


class Pace(msgspec.Struct, frozen=True, gc=False):
    """Says how fast a model answers: requests a second, quantiles of their seconds (None: there were none), requests in
    each of the last seconds, the oldest first.
    """

    rate: float = 0.0
    p50: float | None = None
    p99: float | None = None
    history: tuple[float, ...] = ()


class _Track:
    """The samples of one model."""

    def __init__(self) -> None:
        self.samples: deque[tuple[float, Counts]] = deque()
        self.history: deque[float] = deque(maxlen=MOST_SECONDS)

    def take(self, counts: Counts, now: float) -> None:
        samples = self.samples
        if samples:
            last, before = samples[-1]
            if now - last < _SPACING:
                return
            if counts.requests < before.requests:  # a version of it was loaded anew, and counts from 0
                samples.clear()
            else:
                seconds = max(round(now - last), 1)
                mean = (counts.requests - before.requests) / (now - last)
                self.history.extend([round(mean, 3)] * min(seconds, MOST_SECONDS))
                if counts.requests == before.requests:
                    counts = before  # what is the same is kept once
        samples.append((now, counts))
        while len(samples) > 2 and samples[1][0] <= now - WINDOW_SECONDS:
            samples.popleft()

    def pace(self, counts: Counts, now: float) -> Pace:
        history = tuple(self.history)
        if not self.samples:
            return Pace(history=history)
        since, before = self.samples[0]
        passed, done = now - since, counts.requests - before.requests
        if passed <= 0 or done <= 0:
            return Pace(history=history)
        spent = _difference(counts.buckets, before.buckets)
        return Pace(round(done / passed, 3), quantile(spent, 0.5), quantile(spent, 0.99), history)


class PaceWindow:
    """Keeps samples of every model that there is, for `WINDOW_SECONDS`; one for all listeners of a server."""

    def __init__(self) -> None:
        self._tracks: dict[str, _Track] = {}

    def take(self, counts: Mapping[str, Counts], now: float) -> Mapping[str, Pace]:
        """Take a sample of each model at the time `now` in seconds, and return how fast they answer."""
        tracks = self._tracks = {name: self._tracks.get(name) or _Track() for name in counts}
        paces = {}
        for name, each in counts.items():
            tracks[name].take(each, now)
            paces[name] = tracks[name].pace(each, now)
        return paces


def merged(several: Iterable[Buckets]) -> Buckets:
    """Return the sum of histograms with the same bounds."""
    found: Buckets = ()
    for buckets in several:
        if not found:
            found = buckets
        elif buckets:
            found = tuple(
                (bound, count + more) for (bound, count), (_, more) in zip(found, buckets, strict=True)
            )
    return found


def quantile(buckets: Sequence[tuple[float, int]], share: float) -> float | None:
    """Return a quantile of what lies in buckets by their upper bounds: as if each were evenly filled, and what is
    beyond all bounds lay at the last one. None where nothing does.
    """
    total = sum(count for _, count in buckets)
    if not total:
        return None
    wanted, passed, lower = share * total, 0, 0.0
    for bound, count in buckets:
        if count and passed + count >= wanted:
            upper = lower if bound == float("inf") else bound
            return round(lower + (upper - lower) * (wanted - passed) / count, 6)
        passed += count
        lower = bound
    return lower


def _difference(now: Buckets, before: Buckets) -> Buckets:
    if not before:
        return now
    return tuple((bound, count - less) for (bound, count), (_, less) in zip(now, before, strict=True))
