"""The rate limiter: the books of what instances of all models use while they run, and who waits for it.

It asks the policy whenever a model looks for instances, and has those models look again that were denied one when
something comes back. It knows instances by number alone, and neither items nor queues.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence

from trivium.core.instances.rate_policy import (
    Amounts,
    Contender,
    grants,
    limits,
)
from trivium.types.resources import ResourceLimits
from trivium.types.running import InstanceId

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
        self,
        needs: Collection[Amounts],
        waits: Callable[[], int],
        look_again: Callable[[], None],
        awaited: Callable[[], None],
    ) -> "RateLimitedModel":
        """Add a model with instances that need so much; `waits` counts its waiting items, `look_again` has it ask
        again, `awaited` tells it that another one waits while it runs. Raises LOAD_FAILED where one of its instances
        could never run.
        """
        others = [amounts for member in self._members.values() for amounts in member.needs]
        self._limits = limits([*others, *needs], self._supply)
        number = next(self._numbers)
        member = self._members[number] = RateLimitedModel(self, number, needs, waits, look_again, awaited)
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
        denied = {wish.who: wish for wish in mine if wish.who not in granted}
        self._denied.update(denied)
        if denied:
            for number in {number for number, _ in self._running if number != member.number}:
                self._members[number].awaited()
        for number in {number for number, _ in granted if number != member.number}:
            self._members[number].look_again()
        return [instance for number, instance in granted if number == member.number]

    def is_awaited(self, member: "RateLimitedModel") -> bool:
        """Does another model wait for something of what this one's instances have?"""
        used = {
            resource for key, needs in self._running.items() if key[0] == member.number for resource in needs
        }
        return any(
            key[0] != member.number and not used.isdisjoint(wish.needs) and self._members[key[0]].waits()
            for key, wish in self._denied.items()
        )

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
    """One model version, as the limiter sees it: `waits` tells whether it has work, `look_again` has it ask again,
    `awaited` tells it that another one waits while it runs.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        number: int,
        needs: Collection[Amounts],
        waits: Callable[[], int],
        look_again: Callable[[], None],
        awaited: Callable[[], None],
    ) -> None:
        self._limiter = limiter
        self.number = number
        self.needs = needs
        self.waits = waits
        self.look_again = look_again
        self.awaited = awaited

    def select(self, candidates: Mapping[InstanceId, Amounts]) -> Sequence[InstanceId]:
        """Return which of them may run now, of those that there is work for."""
        return self._limiter.select(self, candidates)

    def is_awaited(self) -> bool:
        """See `RateLimiter`."""
        return self._limiter.is_awaited(self)

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
