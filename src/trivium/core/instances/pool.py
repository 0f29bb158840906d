"""The instances of one model version: who has a credit, who holds which items, what comes back.

The pool keeps the books; the scheduler fills it, the scaler opens and closes. An instance that dies takes
with it the items that user code may have got; the others go back to the queue.
"""

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Protocol, assert_never

from trivium.core.instances.mailbox import Mailbox
from trivium.core.request import Item
from trivium.machine.use import resident_bytes
from trivium.types.debug_state import InstanceDebugState
from trivium.types.interfaces import NO_OBSERVER, Instance, Port, RunObserver
from trivium.types.operations import Infer, InstanceStatus
from trivium.types.running import (
    Batch,
    Begun,
    Credit,
    Dead,
    Event,
    Executed,
    InstanceId,
    ItemId,
    Part,
    Placement,
    RecycleRequested,
    Stepped,
)
from trivium.types.spec import Isolation
from trivium.types.state import ItemState

STARTED = ItemState.STARTED  # members of an Enum are slow to look up in its class


LEAD_SECONDS = 0.0005
"""Work that one instance may hold in advance, by the mean of its recent runs."""

MOST_AHEAD = 15
"""Batches in advance at most; more were not faster, however short the runs."""


class Owner(Protocol):
    """The model version that a pool works for; it hears what happens to the items."""

    def executed(self, run: Executed, items: Sequence[Item]) -> None:
        """An execution ended these items, in the order of its outcomes."""
        ...

    def stepped(self, step: Stepped) -> None:
        """An instance has computed a step."""
        ...

    def part(self, item: Item, part: Part) -> None:
        """One part of one item, final or not."""
        ...

    def died(self, slot: "InstanceSlot", fate: Dead, lost: Sequence[Item], recalled: Sequence[Item]) -> None:
        """An instance is gone: `lost` items may have begun, `recalled` ones have not."""
        ...

    def stale(self) -> None:
        """An instance wants to be replaced."""
        ...

    def freed(self) -> None:
        """Credits came back, or an instance is gone: look at the queue again."""
        ...


class InstanceSlot:
    """One open instance. A negative number of credits counts what it holds in advance. `in_flight` items, each with a
    credit of its own, may be in work at once; 0: it runs one batch at a time.
    """

    __slots__ = (
        "credits",
        "ended",
        "hand_over",
        "held",
        "home",
        "idle_since",
        "in_flight",
        "instance",
        "is_dead",
        "is_lost",
        "is_stale",
        "opened_at",
        "placement",
        "was_killed",
    )

    def __init__(self, placement: Placement, now: float) -> None:
        self.instance: Instance | None = None
        self.hand_over: Callable[[Batch], None] = _not_open
        self.placement = placement
        self.credits = 1
        self.in_flight = 0
        self.held: dict[ItemId, Item] = {}
        self.idle_since = self.opened_at = now
        self.is_stale = self.is_dead = False
        self.is_lost = False  # a run of it did not end
        self.was_killed = False  # by a signal from outside that leaves no choice
        self.home: object = None  # whose it is, for the scaler
        self.ended = 0  # executions, and items that ended well by parts of their own

    def debug_state(self) -> InstanceDebugState:
        """Copy what the pool knows of it."""
        held = tuple(self.held)
        return InstanceDebugState(self.placement.name, self.credits, held, self.instance, self.in_flight)

    @property
    def process(self) -> int | None:
        """Return the number of its worker process; None where it has none."""
        if self.placement.isolation is not Isolation.PROCESS or self.instance is None:
            return None
        return next(iter(self.instance.threads), None)  # a worker's first thread has its process's number

    def status(self, number: InstanceId, now: float) -> InstanceStatus:
        """Describe it to a client; `now` is a time of the pool's clock."""
        placement, process = self.placement, self.process
        return InstanceStatus(
            number=number,
            name=placement.name,
            age=now - self.opened_at,
            started=time.time() - (now - self.opened_at),
            is_busy=bool(self.held),
            device=placement.device,
            device_id=placement.device_id,
            process=process,
            memory=None if process is None else resident_bytes(process),
        )

    def blockers(self) -> Iterable[Collection[ItemId]]:
        """Return groups of items: the instance can take more once all items of one group have ended. One that can take
        more now has an empty group.
        """
        if self.credits > 0:
            return ((),)
        return [(item,) for item in self.held] if self.in_flight else (self.held,)


class Pool:
    """Holds the open instances of one model version, and which items each has. Used on the loop only.

    `merges` and the mean run time, which the owner tells, decide how much an instance holds in advance; `in_order`: no
    item overtakes another or runs out of time before it runs.
    """

    def __init__(
        self,
        owner: Owner,
        mailbox: Mailbox,
        merges: bool,
        now: Callable[[], float],
        observer: RunObserver = NO_OBSERVER,
        in_order: bool = False,
    ) -> None:
        self._owner, self._mailbox, self._merges, self._now = owner, mailbox, merges, now
        self._in_order = in_order
        self._slots: dict[InstanceId, InstanceSlot] = {}
        self._leaving: dict[InstanceId, InstanceSlot] = {}  # retired, with items that have not ended
        self._only: tuple[InstanceId, InstanceSlot] | None = None
        self._only_free: Sequence[InstanceId] = ()  # what `free` said of it last
        self._has_many = False  # does an instance have many items in work?
        self._next = 0
        self._lead = 0
        self._ran = observer.ran
        self.calls = 0
        """Upward calls among the items that wait or run. While there are any nothing is handed over in advance: a call
        behind the very item that waits for it would never begin.
        """

    @property
    def size(self) -> int:
        """Open instances."""
        return len(self._slots)

    @property
    def ahead(self) -> int:
        """Batches held in advance: they wait as those in the queue do."""
        return sum(-slot.credits for slot in self._slots.values() if slot.credits < 0)

    @property
    def places(self) -> int:
        """Executions that the open instances may have in work at once."""
        return sum(slot.in_flight or 1 for slot in self._slots.values())

    @property
    def used(self) -> int:
        """Return how many of the places are taken now."""
        slots = self._slots.values()
        return sum(
            min(len(slot.held), slot.in_flight) if slot.in_flight else bool(slot.held) for slot in slots
        )

    @property
    def lead(self) -> int:
        """Batches that each instance may be handed in advance, while no upward call waits or runs."""
        return self._lead

    def keep_order(self, in_order: bool) -> None:
        """Let items overtake one another from now on, or not."""
        self._in_order = in_order

    def call_begun(self) -> None:
        """An upward call waits or runs from now on."""
        self.calls += 1

    def call_ended(self) -> None:
        """One of them has ended."""
        self.calls -= 1

    def slots(self) -> dict[InstanceId, InstanceSlot]:
        """The live table, for the scaler to read."""
        return self._slots

    def threads(self) -> Set[int]:
        """Count the threads of the open instances: see `Instance.threads`."""
        instances = (slot.instance for slot in self._slots.values())
        return {thread for instance in instances if instance is not None for thread in instance.threads}

    def in_work(self) -> list[InstanceSlot]:
        """Return every instance that may have a run in hand, open or retired."""
        return [slot for slot in (*self._slots.values(), *self._leaving.values()) if slot.held]

    def run_ages(self) -> list[float]:
        """Return the seconds that each run in hand has taken by now."""
        now = self._now()
        starts = [slot.instance.running_since for slot in self.in_work() if slot.instance is not None]
        return [now - since for since in starts if since is not None]

    @property
    def running(self) -> int:
        """Return how many items the instances have, open or retired, those in advance among them."""
        return sum(len(slot.held) for slot in (*self._slots.values(), *self._leaving.values()))

    def held(self) -> list[Item]:
        """Every item that an instance has, open or retired."""
        slots = (*self._slots.values(), *self._leaving.values())
        return [item for slot in slots for item in slot.held.values()]

    def beside(self, item: ItemId) -> Collection[ItemId]:
        """The items that an instance has to end for this one to end, itself among them; none if no instance has it."""
        for slot in (*self._slots.values(), *self._leaving.values()):
            if item in slot.held:
                return slot.held if slot.credits <= 0 and not slot.in_flight else (item,)
        return ()

    def reserve(self, placement: Placement) -> tuple[InstanceId, InstanceSlot, Port]:
        """Names for an instance that is to be opened; `admit` it when it is."""
        self._next += 1
        slot = InstanceSlot(replace(placement, number=self._next), self._now())
        return self._next, slot, self._mailbox.port(partial(self._deliver, self._next, slot))

    def admit(self, number: InstanceId, slot: InstanceSlot, instance: Instance) -> None:
        """It can take work from now on."""
        slot.instance = instance
        slot.hand_over = instance.start
        slot.in_flight = instance.in_flight
        slot.credits = slot.in_flight or 1
        slot.idle_since = self._now()
        self._slots[number] = slot
        self._count()
        self._owner.freed()

    def retire(self, number: InstanceId) -> None:
        """Close an instance; what it holds still ends through its port."""
        slot = self._slots.pop(number)
        if slot.held:
            self._leaving[number] = slot
        self._count()
        assert slot.instance is not None
        slot.instance.close()

    @property
    def is_busy(self) -> bool:
        """Can none of the instances begin anything now?"""
        return not any(slot.credits > 0 for slot in self._slots.values())

    @property
    def startable(self) -> int:
        """Return how many batches, or items where each is one, the instances can begin now."""
        return sum(slot.credits for slot in self._slots.values() if slot.credits > 0)

    def free(self) -> Iterable[InstanceId]:
        """Credits, as often as each instance has them, the least busy one in front."""
        only = self._only
        lead = 0 if self.calls else self._lead
        if only is not None:
            count = only[1].credits + lead
            if count <= 0:
                return ()
            if count != len(self._only_free):
                self._only_free = (only[0],) * count
            return self._only_free
        credits = {number: slot.credits for number, slot in self._slots.items()}
        return least_busy_first(credits) if self._has_many else by_turns(credits, lead)

    def admitted(self, instances: list[InstanceId]) -> Collection[InstanceId]:
        """Return, of those that shall be started now, the ones that may be: here all."""
        return instances

    def start(self, number: InstanceId, items: list[Item]) -> None:
        """Run them together; spends one credit, or one per item."""
        slot = self._slots[number]
        slot.credits -= len(items) if slot.in_flight else 1
        held = slot.held
        if len(items) == 1:  # what follows, for one
            item = items[0]
            item.state = STARTED
            item.instance = number
            held[item.item] = item
            slot.hand_over(Batch([item.item], [item.operation], [item.rows]))
            return
        numbers: list[ItemId] = []
        operations: list[Infer] = []
        rows: list[int] = []
        for item in items:
            item.state = STARTED
            item.instance = number
            name = item.item
            held[name] = item
            numbers.append(name)
            operations.append(item.operation)
            rows.append(item.rows)
        slot.hand_over(Batch(numbers, operations, rows))

    def cancel(self, item: Item) -> None:
        """Tell the instance that nobody waits for it; it still ends here."""
        instance = self._holder(item)
        if instance is not None:
            instance.cancel(item.item)

    def hold(self, item: Item) -> None:
        """Tell the instance that its receiver is full. One that waits is in no instance yet."""
        instance = self._holder(item)
        if instance is not None:
            instance.hold(item.item)

    def resume(self, item: Item) -> None:
        """Tell the instance that its receiver has room again."""
        instance = self._holder(item)
        if instance is not None:
            instance.resume(item.item)

    def shares(self, item: Item) -> bool:
        """Has its instance other items in hand, which may wait for the very thread that this one has? Those whose own
        receivers are full wait for them.
        """
        slot = self._slots.get(item.instance) or self._leaving.get(item.instance)
        if slot is None or slot.in_flight:
            return False
        return any(other is not item and not other.is_held for other in slot.held.values())

    def _holder(self, item: Item) -> Instance | None:
        slot = self._slots.get(item.instance) or self._leaving.get(item.instance)
        return None if slot is None else slot.instance

    def observe(self, mean_run: float) -> None:
        """The mean seconds of recent executions, 0 before the first; also where an instance has many items in work, and
        its executions say nothing of when it can take another.
        """
        self._lead = lead(mean_run, len(self._slots), self._merges, self._in_order)
        if mean_run:
            self._ran(self, mean_run)

    def _count(self) -> None:
        self._only = next(iter(self._slots.items())) if len(self._slots) == 1 else None
        self._only_free = ()
        self._has_many = any(slot.in_flight for slot in self._slots.values())

    def _deliver(self, number: InstanceId, slot: InstanceSlot, events: Sequence[Event]) -> None:
        if slot.is_dead:
            return  # what an abandoned one had on its way
        for event in events:
            if type(event) is Executed:
                slot.ended += 1
                held, numbers = slot.held, event.items
                if event.batch:
                    _executed(event, held)
                items = [held.pop(numbers[0])] if len(numbers) == 1 else [*map(held.pop, numbers)]
                self._owner.executed(event, items)
            elif type(event) is Credit:
                slot.credits += event.count
            elif type(event) is Stepped:
                self._owner.stepped(event)
            elif isinstance(event, Part):
                item = slot.held.pop(event.item) if event.final else slot.held[event.item]
                slot.ended += event.final and event.error is None
                self._owner.part(item, event)
            else:
                self._deliver_fate(number, slot, event)
        if not slot.held:
            slot.idle_since = self._now()
            if self._leaving:
                self._leaving.pop(number, None)
        self._owner.freed()

    def _deliver_fate(
        self, number: InstanceId, slot: InstanceSlot, event: Begun | RecycleRequested | Dead
    ) -> None:
        if isinstance(event, Begun):
            _begin(event.items, slot.held)
        elif isinstance(event, RecycleRequested):
            slot.is_stale = True
            self._owner.stale()
        elif isinstance(event, Dead):
            self._finalize(number, slot, event)
        else:
            assert_never(event)

    def _finalize(self, number: InstanceId, slot: InstanceSlot, fate: Dead) -> None:
        slot.is_dead, slot.was_killed = True, fate.was_killed
        self._slots.pop(number, None)
        self._leaving.pop(number, None)
        self._count()
        held, slot.held = slot.held, {}
        lost = [item for item in held.values() if item.state is not STARTED]
        recalled = [item for item in held.values() if item.state is STARTED]
        self._owner.died(slot, fate, lost, recalled)


def _not_open(batch: Batch) -> None:
    raise AssertionError("work was handed to an instance that has not been admitted")


def _executed(run: Executed, held: Mapping[ItemId, Item]) -> None:
    """Tell the items that end later, by parts of their own."""
    for number in run.batch:
        item = held.get(number)
        if item is not None:
            item.run = run


def _begin(numbers: Iterable[ItemId], held: Mapping[ItemId, Item]) -> None:
    for number in numbers:
        item = held.get(number)
        if item is not None and item.state is STARTED:  # it may have been cancelled on the way
            item.state = ItemState.BEGUN


def lead(mean_run: float, instances: int, merges: bool, in_order: bool) -> int:
    """Batches in advance of the running one. `mean_run`, in seconds, is 0 before the first execution.

    With several instances a long lead would let a slow one hoard; a merging model gains more by waiting. A single
    instance whose items run `in_order`, none overtaking another or running out of time in the queue, always has the
    next one in hand: one that sleeps between two long runs wakes up on another core, with nothing in its caches.
    """
    if merges or not mean_run:
        return 0
    if mean_run > LEAD_SECONDS:
        return 1 if in_order and instances == 1 else 0
    batches = min(int(LEAD_SECONDS / max(mean_run, 1e-6)), MOST_AHEAD if instances == 1 else 1)
    return max(batches, 1) if in_order and instances == 1 else batches


def by_turns(credits: Mapping[int, int], lead: int) -> list[int]:
    """Instances as often as each can take a batch, `lead` in advance included: the least busy one in front."""
    rows = [(turn - count, number) for number, count in credits.items() for turn in range(count + lead)]
    return [number for _, number in sorted(rows)]


def least_busy_first(credits: Mapping[int, int]) -> Iterator[int]:
    """Yield what `by_turns` without a lead returns, as far as somebody asks: of hundreds of credits few are used."""
    rows = [(-count, number) for number, count in credits.items() if count > 0]
    heapq.heapify(rows)
    while rows:
        count, number = rows[0]
        yield number
        if count < -1:
            heapq.heapreplace(rows, (count + 1, number))
        else:
            heapq.heappop(rows)
