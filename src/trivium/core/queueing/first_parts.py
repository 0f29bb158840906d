"""ResponseDispatcher whose first part is timed: for models that answer in several parts, where that was asked for."""

from collections.abc import Callable

from trivium.core.observability.statistics import VersionCounters
from trivium.core.queueing.payload_adapter import PayloadAdapter
from trivium.core.queueing.responses import ENDED, ResponseDispatcher
from trivium.core.request import Item
from trivium.types.errors import ServeError
from trivium.types.metrics import Measurements
from trivium.types.running import ItemId, Part
from trivium.types.spec import ModelSpec


class TimedResponseDispatcher(ResponseDispatcher):
    """As `ResponseDispatcher`; an item is among `_begun` from its first part until it ends."""

    def __init__(
        self, spec: ModelSpec, door: PayloadAdapter, counters: VersionCounters, now: Callable[[], float]
    ) -> None:
        super().__init__(spec, door, counters, now)
        self._begun: set[ItemId] = set()

    def part(self, item: Item, part: Part) -> bool:
        """Count it, if it is the first one that holds anything."""
        if part.payload is not None and item.state is not ENDED and item.item not in self._begun:
            self._begun.add(item.item)
            self._counters.began_to_answer(item, self._now())
        if part.final:
            self._begun.discard(item.item)
        return super().part(item, part)

    def end(self, item: Item, error: ServeError) -> None:
        """An item that has ended may still be pushed parts: they are nobody's."""
        self._begun.discard(item.item)
        super().end(item, error)


def answering(
    spec: ModelSpec, door: PayloadAdapter, now: Callable[[], float], measures: Measurements
) -> tuple[VersionCounters, ResponseDispatcher]:
    """What counts and what answers for one version; first parts are timed where that is measured."""
    counters = VersionCounters(measures, now, spec.metrics.first_part_bounds)
    kind = TimedResponseDispatcher if measures.first_parts else ResponseDispatcher
    return counters, kind(spec, door, counters, now)
