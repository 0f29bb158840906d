"""The rate limiter: the books of what instances of all models use while they run, and who waits for it.

It asks the policy whenever a model looks for instances, and has those models look again that were denied one when
something comes back. It knows instances by number alone, and neither items nor queues. The books of memory are here as
well: what the loads in work have asked for.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

from trivium.core.instances.rate_policy import (
    Amounts,
    Contender,
    MemoryPlace,
    MemoryShortage,
    PendingMemory,
    grants,
    limits,
    memory_claims,
    shortage,
)
from trivium.core.observability.host_metrics import FreeMemory
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.resources import ResourceLimits
from trivium.types.running import InstanceId
from trivium.types.spec import Device, ModelSpec

Key = tuple[int, InstanceId]


class RateLimiter:
    """One per server. Used on the loop only."""

    def __init__(self, supply: ResourceLimits) -> None:
        self._supply = supply
        self._members: dict[int, RateLimitedModel] = {}
        self._numbers = itertools.count(1)
        self._turns = itertools.count(1)
        self._limits: Amounts = {}
        self._running: dict[Key, Amounts] = {}
        self._denied: dict[Key, Contender[Key]] = {}
        self._passed: dict[Key, int] = {}
        self._now_passed = 0

    def join(
        self, needs: Collection[Amounts], waits: Callable[[], int], look_again: Callable[[], None]
    ) -> "RateLimitedModel":
        """Add a model with instances that need so much; `waits` counts its waiting items, `look_again` has it ask
        again. Raises LOAD_FAILED where one of its instances could never run.
        """
        others = [amounts for member in self._members.values() for amounts in member.needs]
        self._limits = limits([*others, *needs], self._supply)
        number = next(self._numbers)
        member = self._members[number] = RateLimitedModel(self, number, needs, waits, look_again)
        return member

    def leave(self, number: int) -> None:
        """It goes, and whatever it has comes back."""
        member = self._members.pop(number, None)
        if member is None:
            return
        for books in (self._running, self._denied, self._passed):
            for key in [key for key in books if key[0] == number]:
                del books[key]
        self._limits = limits(
            [amounts for other in self._members.values() for amounts in other.needs], self._supply
        )
        self._look_again()

    def select(
        self, member: "RateLimitedModel", candidates: Mapping[InstanceId, Amounts]
    ) -> list[InstanceId]:
        """Return which of a model's free instances may run now."""
        mine: list[Contender[Key]] = []
        for instance, needs in candidates.items():
            key = member.number, instance
            before = self._denied.get(key)
            # Who had nothing to do does not save up for later.
            passed = self._passed[key] = max(self._passed.get(key, 0), 0 if before else self._now_passed)
            mine.append(Contender(key, needs, passed, before.since if before else next(self._turns)))
        for key in [key for key in self._denied if key[0] == member.number]:
            del self._denied[key]
        others = [wish for key, wish in self._denied.items() if self._members[key[0]].waits()]
        granted = grants([*mine, *others], self.free())
        self._denied.update((wish.who, wish) for wish in mine if wish.who not in granted)
        for number in {number for number, _ in granted if number != member.number}:
            self._members[number].look_again()
        return [instance for number, instance in granted if number == member.number]

    def acquire(self, key: Key, needs: Amounts, weight: int) -> None:
        """An instance runs from now on."""
        self._running[key] = needs
        self._now_passed = max(self._now_passed, self._passed.get(key, 0))
        self._passed[key] = self._passed.get(key, 0) + weight
        self._denied.pop(key, None)

    def release(self, key: Key) -> None:
        """It does not any more."""
        if self._running.pop(key, None) is not None:
            self._look_again()

    def closed(self, key: Key) -> None:
        """It is gone."""
        self._denied.pop(key, None)
        self._passed.pop(key, None)
        self._running.pop(key, None)
        self._look_again()

    def free(self) -> Amounts:
        """Return what nobody uses now."""
        left = dict(self._limits)
        for needs in self._running.values():
            for resource, count in needs.items():
                left[resource] = left.get(resource, 0) - count
        return left

    def _look_again(self) -> None:
        for number in {number for number, _ in self._denied}:
            self._members[number].look_again()


class RateLimitedModel:
    """One model version, as the limiter sees it: `waits` tells whether it has work, `look_again` has it ask again."""

    def __init__(
        self,
        limiter: RateLimiter,
        number: int,
        needs: Collection[Amounts],
        waits: Callable[[], int],
        look_again: Callable[[], None],
    ) -> None:
        self._limiter = limiter
        self.number = number
        self.needs = needs
        self.waits = waits
        self.look_again = look_again

    def select(self, candidates: Mapping[InstanceId, Amounts]) -> Sequence[InstanceId]:
        """Return which of them may run now, of those that there is work for."""
        return self._limiter.select(self, candidates)

    def acquire(self, instance: InstanceId, needs: Amounts, weight: int) -> None:
        """See `RateLimiter`."""
        self._limiter.acquire((self.number, instance), needs, weight)

    def release(self, instance: InstanceId) -> None:
        """See `RateLimiter`."""
        self._limiter.release((self.number, instance))

    def closed(self, instance: InstanceId) -> None:
        """See `RateLimiter`."""
        self._limiter.closed((self.number, instance))

    def close(self) -> None:
        """The model is unloaded."""
        self._limiter.leave(self.number)


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
    where = "this machine has" if device is Device.CPU else f"GPU {number} has"
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
