"""Counts the worker processes that were lost, by version and cause, for as long as the server runs.

Unlike a version's other counters these do not begin anew with a load: a worker dies, and is replaced, across them.
"""

from collections import Counter
from collections.abc import Mapping

from trivium.types.observing import DeathCause
from trivium.types.recording import InstanceName

MOST_VERSIONS = 1000
"""Of which deaths are counted; beyond them those are forgotten whose worker died longest ago."""

Version = tuple[str, str]
"""The name of a model, and a version of it."""


class WorkerDeaths:
    """One per server; used on the loop only."""

    def __init__(self) -> None:
        self._by_version: dict[Version, Counter[DeathCause]] = {}

    def count(self, instance: InstanceName, cause: DeathCause | None) -> None:
        """The worker of an instance is gone; without a cause it ended as it should."""
        if cause is None:
            return
        version = instance.model, instance.version
        counts = self._by_version.pop(version, None) or Counter[DeathCause]()
        counts[cause] += 1
        self._by_version[version] = counts
        if len(self._by_version) > MOST_VERSIONS:
            del self._by_version[next(iter(self._by_version))]

    def report(self) -> dict[Version, Mapping[DeathCause, int]]:
        """Copy what has been counted."""
        return {version: dict(counts) for version, counts in self._by_version.items()}
