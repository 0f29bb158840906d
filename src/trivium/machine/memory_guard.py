"""The memory guard: the books of what the loads in work have asked for, so that no load begins that would not fit."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trivium.machine.memory import FreeMemory
from trivium.machine.memory_policy import (
    MemoryPlace,
    MemoryShortage,
    PendingMemory,
    memory_claims,
    shortage,
)
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Device, ModelSpec

_MEGABYTE = 2**20


class MemoryGuard:
    """Lets the loads of a server begin whose memory is free. Used on the loop only."""

    def __init__(self, memory: FreeMemory) -> None:
        self._memory = memory
        self._reading = asyncio.Lock()
        self._pending: defaultdict[MemoryPlace, list[PendingMemory]] = defaultdict(list)

    @asynccontextmanager
    async def loading(self, spec: ModelSpec) -> AsyncIterator[None]:
        """Count what a model needs as taken while it is loaded. Raises OUT_OF_MEMORY where it is not free."""
        claims = memory_claims(spec)
        if not claims:
            yield
            return
        async with self._reading:
            with_gpus = any(claim.place[0] is Device.GPU for claim in claims)
            free = await asyncio.to_thread(self._memory.read, with_gpus)
        short = shortage(claims, free, self._pending)
        if short is not None:
            raise _out_of_memory(spec, short)
        mine = [
            (claim.place, PendingMemory(claim.required, free[claim.place]))
            for claim in claims
            if claim.place in free
        ]
        for place, pending in mine:
            self._pending[place].append(pending)
        try:
            yield
        finally:
            for place, pending in mine:
                self._pending[place].remove(pending)


def _out_of_memory(spec: ModelSpec, short: MemoryShortage) -> ServeError:
    claim = short.claim
    device, number = claim.place
    where = "there are" if device is Device.CPU else f"GPU {number} has"
    taken = (
        f", and {_megabytes(short.pending)} of them go to models that are being loaded"
        if short.pending
        else ""
    )
    origin = spec.origin.get(f"{claim.field}.required", "as read")
    return ServeError(
        Code.OUT_OF_MEMORY,
        f"Model '{spec.name}' was not loaded: it needs {_megabytes(claim.required)} of memory ({origin}) beyond "
        f"{_megabytes(claim.reserved)} that stay free, and {where} {_megabytes(short.free)} free{taken}. Unload "
        "another model, or let this one ask for less.",
        info=ErrorInfo.of(reasons.NO_MEMORY, model=spec.name, version=spec.version),
    )


def _megabytes(count: int) -> str:
    return f"{count / _MEGABYTE:.0f} MB"
