"""Decides what to load and to unload when model folders change: what is different between two looks. Pure.

Whether a changed folder can be loaded is not judged here; what cannot leaves what serves serving.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Snapshot = Mapping[str, str]
"""Model -> a stamp of all that it consists of: two alike stamps, nothing has changed."""


@dataclass(frozen=True, slots=True)
class PollingDecision:
    """Load anew all of `load`, then unload all of `unload`; each sorted by name."""

    load: tuple[str, ...]
    unload: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Is there nothing to do?"""
        return not (self.load or self.unload)


def decide(before: Snapshot, now: Snapshot, unsettled: frozenset[str] = frozenset()) -> PollingDecision:
    """New and changed models are loaded, vanished ones unloaded; those `unsettled` that are still there are tried
    again.
    """
    changed = {name for name, stamp in now.items() if before.get(name) != stamp or name in unsettled}
    return PollingDecision(tuple(sorted(changed)), tuple(sorted(before.keys() - now.keys())))


def merged(pictures: Mapping[str, Snapshot]) -> Snapshot:
    """One picture of several places, each under its own key. A model that is in more than one has changed if it has in
    any, or if another place has it now.
    """
    together: dict[str, str] = {}
    for place in sorted(pictures):
        for name, stamp in pictures[place].items():
            together[name] = f"{together.get(name, '')}{place}:{stamp};"
    return together


def with_dependents(names: Iterable[str], needs: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """These models and all graphs that run one of them, directly or through others: whether a graph fits its members
    is judged when it is loaded.
    """
    wanted = set(names)
    grown = True
    while grown:
        dependents = {name for name, members in needs.items() if name not in wanted and wanted & set(members)}
        wanted |= dependents
        grown = bool(dependents)
    return frozenset(wanted)
