"""Decides which versions of a model are to serve, and what to do to get there. Pure.

New versions are loaded before old ones are dropped, so that a model that serves never stops to.
"""

import heapq
from collections.abc import Collection
from dataclasses import dataclass
from typing import assert_never

from trivium.types.spec import All, Latest, Specific, VersionPolicy, version_order


@dataclass(frozen=True, slots=True)
class Plan:
    """Load all of `load`, then unload all of `unload`; each ascending."""

    load: tuple[str, ...]
    unload: tuple[str, ...]


def wanted(available: Collection[str], policy: VersionPolicy) -> frozenset[str]:
    """The versions that a policy picks of those there are."""
    match policy:
        case Latest(count):
            return frozenset(heapq.nlargest(count, available, key=version_order))
        case All():
            return frozenset(available)
        case Specific(versions):
            return versions & frozenset(available)
        case _:
            assert_never(policy)


def plan(serving: Collection[str], available: Collection[str], policy: VersionPolicy) -> Plan:
    """Return how to get from what serves to what the policy wants. What serves and is wanted is loaded anew."""
    wants = wanted(available, policy)
    return Plan(
        load=tuple(sorted(wants, key=version_order)),
        unload=tuple(sorted(set(serving) - wants, key=version_order)),
    )
