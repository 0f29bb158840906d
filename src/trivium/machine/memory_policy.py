"""Decides which loads may begin where memory is bounded. Pure.

What is free is measured, and what loads in work have asked for and not taken yet is no longer free.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from trivium.types.spec import Device, ModelSpec

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
