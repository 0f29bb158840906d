"""Decides which instances may run now, and which loads may begin, where what they need together is bounded. Pure.

Who has run least goes first, each execution counted by the instance's weight. One that lacks something holds back all
that it needs from those behind it, so that it gets it in time; who needs nothing of that goes on. Sheet "triton",
section 7.6; there executions are counted since the load, so that a model loaded later would keep all others waiting.

Of memory what is free is measured, and what loads in work have asked for and not taken yet is no longer free.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from trivium.types.errors import Code, ServeError
from trivium.types.resources import EVERYWHERE, ResourceLimits, ResourceRequest
from trivium.types.spec import Device, ModelSpec

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


MemoryPlace = tuple[Device, int]
"""The machine's memory is (CPU, 0); that of a GPU has its index."""


class MemoryClaim(msgspec.Struct, frozen=True):
    """Memory that a load needs in one place; `field` is where the spec says so."""

    place: MemoryPlace
    required: int
    reserved: int
    field: str


class PendingMemory(msgspec.Struct, frozen=True):
    """Memory that a load in work asked for, and what was free when it began."""

    required: int
    free_before: int


class MemoryShortage(msgspec.Struct, frozen=True):
    """A claim that is not met: so much is free, less what is still to be taken by the loads in work."""

    claim: MemoryClaim
    free: int
    pending: int


def memory_claims(spec: ModelSpec) -> list[MemoryClaim]:
    """Return what the load of a model needs: the machine's memory for each of its devices, and that of each GPU."""
    devices = [(group.device, number) for group in spec.groups for number in group.device_ids or (0,)]
    claims = []
    for i, need in enumerate(spec.limits.memory):
        field = f"limits.memory[{i}]"
        if need.device is Device.CPU:
            required = need.required * max(len(devices), 1)
            claims.append(MemoryClaim((Device.CPU, 0), required, need.reserved, field))
        else:
            places = dict.fromkeys(place for place in devices if place[0] is need.device)
            claims += [MemoryClaim(place, need.required, need.reserved, field) for place in places]
    return claims


def shortage(
    claims: Iterable[MemoryClaim],
    free: Mapping[MemoryPlace, int],
    pending: Mapping[MemoryPlace, Sequence[PendingMemory]],
) -> MemoryShortage | None:
    """Return the first claim that is not met. Of a place whose memory nobody can tell, every claim is."""
    for claim in claims:
        there = free.get(claim.place)
        if there is None:
            continue
        waiting = pending.get(claim.place, ())
        taken = max((one.free_before for one in waiting), default=there) - there
        coming = max(sum(one.required for one in waiting) - max(taken, 0), 0)
        if there - coming - claim.required < claim.reserved:
            return MemoryShortage(claim, there, coming)
    return None
