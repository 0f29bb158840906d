"""The bounded queue of one model version: what waits, in which order, until when.

It only holds; `schedulers/policy` decides and `schedulers/dynamic` acts. Every change is O(1) but for an
expiry, which looks at all that have a deadline.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from trivium.core.request import Item
from trivium.types.running import InstanceId, ItemId
from trivium.types.state import ItemState

Lane = OrderedDict[ItemId, Item]


class RequestQueue:
    """Waiting items in lanes, which are served in this order: level 1, what was demoted from it, level 2, and so on.

    A lane is made when it is first used, so that a level nobody asks for costs nothing. `free` tells which instances
    have a credit, so that the queue is all that a policy has to see.
    """

    def __init__(self, free: Callable[[], Iterable[InstanceId]]) -> None:
        self._lanes: dict[int, Lane] = {}
        self._in_order: list[Lane] = []  # the same lanes
        self.deadlines: list[tuple[float, ItemId, Item]] = []
        self.count = 0
        self.rows = 0
        self.free = free

    def add(self, item: Item) -> None:
        """Put an item at the end of its level."""
        number = 2 * item.level - 2
        try:
            self._lanes[number][item.item] = item
        except KeyError:
            self._lane(number)[item.item] = item
        self.count += 1
        self.rows += item.rows
        if item.queue_deadline is not None:
            heapq.heappush(self.deadlines, (item.queue_deadline, item.item, item))

    def put_back(self, item: Item) -> None:
        """Put an item at the front of its level: it was handed out and recalled. Its time in the queue is not
        counted.
        """
        lane = self._lane(2 * item.level - 2)
        lane[item.item] = item
        lane.move_to_end(item.item, last=False)
        self.count += 1
        self.rows += item.rows
        item.queue_deadline = None

    def take(self, items: Sequence[Item]) -> None:
        """All of these out: they are about to run."""
        lanes = self._lanes
        rows = 0
        for item in items:
            lane, number = 2 * item.level - 2, item.item
            if lanes[lane].pop(number, None) is None:
                del lanes[lane + 1][number]
            rows += item.rows
        self.rows -= rows
        self.count -= len(items)

    def remove(self, item: Item) -> bool:
        """Take it out of whichever lane it waits in; False if it waits in none."""
        first = 2 * item.level - 2
        lanes = (self._lanes.get(first), self._lanes.get(first + 1))
        if not any(lane and lane.pop(item.item, None) is not None for lane in lanes):
            return False
        self.count -= 1
        self.rows -= item.rows
        return True

    def demote(self, item: Item) -> None:
        """Put it behind all others of its level, with no deadline any more."""
        lane = 2 * item.level - 2
        self._lane(lane + 1)[item.item] = self._lanes[lane].pop(item.item)
        item.queue_deadline = None

    def level_count(self, level: int) -> int:
        """Items waiting at one level, those demoted included."""
        return len(self._lanes.get(2 * level - 2, ())) + len(self._lanes.get(2 * level - 1, ()))

    def entries(self) -> Iterator[Item]:
        """Yield the entries in the order in which they are due."""
        lanes = self._in_order
        if len(lanes) == 1:
            return iter(lanes[0].values())
        return chain.from_iterable([lane.values() for lane in lanes if lane])

    def expired(self, now: float) -> Sequence[Item]:
        """Those whose time in the queue is up at `now`."""
        self._forget_settled()
        if not self.deadlines or self.deadlines[0][0] > now:
            return ()
        due = [row for row in self.deadlines if row[0] <= now and _waits_until(row[2], row[0])]
        return [item for _, _, item in sorted(due)]

    def next_expiry(self, after: float) -> float | None:
        """The earliest time later than `after` at which one's time is up."""
        self._forget_settled()
        if not self.deadlines:
            return None
        if self.deadlines[0][0] > after:
            return self.deadlines[0][0]
        return min(
            (due for due, _, item in self.deadlines if due > after and _waits_until(item, due)), default=None
        )

    def _lane(self, number: int) -> Lane:
        try:
            return self._lanes[number]
        except KeyError:
            lane = self._lanes[number] = OrderedDict()
            self._in_order = [self._lanes[each] for each in sorted(self._lanes)]
            return lane

    def _forget_settled(self) -> None:
        """Items that left the queue leave their deadline behind; drop those in front."""
        while self.deadlines and not _waits_until(self.deadlines[0][2], self.deadlines[0][0]):
            heapq.heappop(self.deadlines)


def _waits_until(item: Item, deadline: float) -> bool:
    return item.state is ItemState.QUEUED and item.queue_deadline == deadline
