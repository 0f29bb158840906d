"""A pool whose instances run within the rate limiter's bounds: one without a resource that it needs is not free.

Nothing is handed over in advance, since what waits in an instance would hold what it does not use.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice

from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.pool import InstanceSlot, Owner, Pool, least_busy_first
from trivium.core.instances.rate_limiter import RateLimitedModel
from trivium.core.instances.rate_policy import Amounts, needs_on
from trivium.core.request import Item
from trivium.types.interfaces import RunObserver
from trivium.types.running import Credit, Dead, Event, InstanceId, Placement
from trivium.types.spec import Device, InstanceGroup

CPU = "cpu"
"""In place of the number of a GPU."""


class LimitedPool(Pool):
    """Works like `Pool`. It leaves the limiter with its model. Where work `waits_for_one` of its instances, all that
    have a credit are free, and whether one may run is asked when it is known which.
    """

    def __init__(
        self,
        owner: Owner,
        mailbox: Mailbox,
        now: Callable[[], float],
        member: RateLimitedModel,
        waits_for_one: bool,
        observer: RunObserver,
    ) -> None:
        super().__init__(owner, mailbox, True, now, observer)
        self._member = member
        self._waits_for_one = waits_for_one

    def free(self) -> Iterable[InstanceId]:
        """Return, of those with a credit, the ones that may run."""
        free = super().free()
        if self._waits_for_one:
            return free
        return (
            self._free_of_many() if self._has_many else self._may_run([*islice(free, self._member.waits())])
        )

    def admitted(self, instances: list[InstanceId]) -> Collection[InstanceId]:
        """See `Pool`."""
        return self._may_run(instances) if self._waits_for_one else instances

    def _may_run(self, instances: Iterable[InstanceId]) -> Sequence[InstanceId]:
        return self._member.select({number: _needs(self._slots[number].placement) for number in instances})

    def _free_of_many(self) -> Iterable[InstanceId]:
        """Return the credits of instances that have what they need; others are asked for if these are too few."""
        credits = {number: slot.credits for number, slot in self._slots.items() if slot.credits > 0}
        running = {number: count for number, count in credits.items() if self._slots[number].held}
        if self._member.waits() > sum(running.values()):
            granted = self._may_run(number for number in credits if number not in running)
            running.update((number, credits[number]) for number in granted)
        return least_busy_first(running)

    def start(self, number: InstanceId, items: list[Item]) -> None:
        """Run them; the instance has what it needs until its credit comes back, or the last of many items ends."""
        slot = self._slots[number]
        if not (slot.in_flight and slot.held):
            placement = slot.placement
            self._member.acquire(number, _needs(placement), placement.claim.weight)
        super().start(number, items)

    def retire(self, number: InstanceId) -> None:
        """See `Pool`. One that has something in hand gives back what it needs when that ends."""
        is_idle = not self._slots[number].held
        super().retire(number)
        if is_idle:
            self._member.closed(number)

    def observe(self, mean_run: float) -> None:
        """See `Pool`. Nothing is held in advance."""
        super().observe(mean_run)
        self._lead = 0

    def _deliver(self, number: InstanceId, slot: InstanceSlot, events: Sequence[Event]) -> None:
        has_credit = any(isinstance(event, Credit) for event in events)
        if has_credit and not slot.in_flight:
            self._member.release(number)
        super()._deliver(number, slot, events)
        if has_credit and slot.in_flight and not slot.held:
            self._member.release(number)

    def _finalize(self, number: InstanceId, slot: InstanceSlot, fate: Dead) -> None:
        self._member.closed(number)
        super()._finalize(number, slot, fate)


def needs_of(group: InstanceGroup) -> list[Amounts]:
    """Return what an instance of the group needs, on each device that one may be on."""
    devices = map(str, group.device_ids or (0,)) if group.device is Device.GPU else (CPU,)
    return [needs_on(group.claim, device) for device in devices]


def _needs(placement: Placement) -> Amounts:
    return needs_on(placement.claim, str(placement.device_id) if placement.device is Device.GPU else CPU)
