"""Keeps the last traced request of each bucket of a version's histograms, so that a graph leads to a trace.

Hears of traced requests alone: where nothing is traced, nothing is kept.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from trivium.core.observability.statistics import TIME_BUCKETS, WAIT_BUCKETS
from trivium.types.metrics import Exemplar

MOST_VERSIONS = 256
"""For which any are kept; beyond them those are forgotten that were traced longest ago."""

Kept = tuple[dict[int, Exemplar], dict[int, Exemplar]]
_NOTHING: Kept = ({}, {})


class Exemplars:
    """One per server; used on the loop only."""

    def __init__(self) -> None:
        self._by_version: dict[tuple[str, str], Kept] = {}

    def waited(self, model: str, version: str, seen: Exemplar) -> None:
        """A traced request has waited in the queue for so many seconds."""
        _keep(self._of(model, version)[0], WAIT_BUCKETS, seen)

    def took(self, model: str, version: str, seen: Exemplar) -> None:
        """A traced request was answered well after so many seconds."""
        _keep(self._of(model, version)[1], TIME_BUCKETS, seen)

    def of(self, model: str, version: str) -> tuple[Mapping[int, Exemplar], Mapping[int, Exemplar]]:
        """Return what is kept of a version, by the number of the bucket: of waits, and of whole times."""
        waits, times = self._by_version.get((model, version), _NOTHING)
        return dict(waits), dict(times)

    def _of(self, model: str, version: str) -> Kept:
        kept = self._by_version.pop((model, version), None) or ({}, {})
        self._by_version[model, version] = kept
        if len(self._by_version) > MOST_VERSIONS:
            del self._by_version[next(iter(self._by_version))]
        return kept


def _keep(kept: dict[int, Exemplar], bounds: Sequence[float], seen: Exemplar) -> None:
    kept[bisect_left(bounds, seen.value)] = seen
