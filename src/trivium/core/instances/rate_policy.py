"""Decides which instances may run now, where what they need together is bounded. Pure.

Who has run least goes first, each execution counted by the instance's weight. One that lacks something holds back all
that it needs from those behind it, so that it gets it in time; who needs nothing of that goes on. Sheet "triton",
section 7.6; there executions are counted since the load, so that a model loaded later would keep all others waiting.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from trivium.types.errors import Code, ServeError
from trivium.types.resources import EVERYWHERE, ResourceLimits, ResourceRequest

Who = TypeVar("Who", bound=Hashable)
Resource = tuple[str, str]
"""A name, and the device that has it (`EVERYWHERE`: all of them together)."""
Amounts = Mapping[Resource, int]


class Contender(msgspec.Struct, Generic[Who], frozen=True):
    """An instance with work, which needs so much. `passed`: its executions, weighted; `since`: which wish it is."""

    who: Who
    needs: Amounts
    passed: int
    since: int


def grants(wishes: Iterable[Contender[Who]], free: Amounts) -> list[Who]:
    """Return who may run, all of them together, of what is `free`."""
    left = dict(free)
    granted: list[Who] = []
    for wish in sorted(wishes, key=lambda wish: (wish.passed, wish.since)):
        if all(left.get(resource, 0) >= count for resource, count in wish.needs.items()):
            granted.append(wish.who)
            for resource, count in wish.needs.items():
                left[resource] -= count
        else:
            left.update(dict.fromkeys(wish.needs, 0))
    return granted


def parse_limits(text: str) -> ResourceLimits:
    """Read limits from 'NAME:COUNT' or 'NAME:COUNT:DEVICE', with commas between. Raises INVALID."""
    counts: dict[Resource, int] = {}
    for row in filter(None, (row.strip() for row in text.split(","))):
        name, _, rest = row.partition(":")
        count, _, device = rest.partition(":")
        if not (name and count.isascii() and count.isdigit() and (not device or device.isdigit())):
            raise ServeError(
                Code.INVALID,
                f"{row!r} does not say how much there is of a resource. Expected NAME:COUNT or NAME:COUNT:DEVICE, as "
                "in 'memory:4' or 'memory:4:0'.",
            )
        counts[name, device or EVERYWHERE] = int(count)
    return ResourceLimits(counts)


def needs_on(claim: ResourceRequest, device: str) -> Amounts:
    """Return what an instance needs that runs there."""
    amounts: dict[Resource, int] = {}
    for need in claim.needs:
        resource = need.name, EVERYWHERE if need.is_shared else device
        amounts[resource] = amounts.get(resource, 0) + need.count
    return amounts


def limits(instances: Collection[Amounts], supply: ResourceLimits) -> Amounts:
    """Return what there is of each resource that some instance needs. Raises LOAD_FAILED where that can never do."""
    most: dict[Resource, int] = {}
    for amounts in instances:
        for resource, count in amounts.items():
            most[resource] = max(most.get(resource, 0), count)
    for name, device in most:
        if device != EVERYWHERE and (name, EVERYWHERE) in most:
            raise ServeError(
                Code.LOAD_FAILED,
                f"The resource '{name}' is global for one model and each device's own for another. Say the same in "
                "both configurations, or give them different names.",
            )
    return {resource: _limit(resource, count, supply) for resource, count in most.items()}


def _limit(resource: Resource, least: int, supply: ResourceLimits) -> int:
    name, _ = resource
    count = supply.counts.get(resource, supply.counts.get((name, EVERYWHERE)))
    if count is None:
        return least
    if count < least:
        raise ServeError(
            Code.LOAD_FAILED,
            f"There is {count} of the resource '{name}', and an instance needs {least}: it could never run. Raise the "
            "resource's count, or lower what the instance needs.",
        )
    return count
