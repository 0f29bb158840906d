"""Rows without a request: a model of the direct strategy may tell sequences apart by the row that each of them owns.

Stands between the pool and an instance: fills the gaps of a batch, and keeps what becomes of them from the pool.
Sheet "triton", sections 7.7 and 12.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from trivium.core.instances.delegating import DelegatingInstance
from trivium.core.instances.scaler import Launch
from trivium.core.schedulers.sequence.controls import Controls
from trivium.types.interfaces import Instance, Port
from trivium.types.running import Batch, Begun, Credit, Event, Executed, ItemId, Part, Placement
from trivium.types.scheduling import SequenceId

FIRST_IDLE: ItemId = 1 << 62
"""Numbers from here on are nobody's items."""


def around(launch: Launch, slot: Callable[[SequenceId], int], controls: Controls) -> Launch:
    """Opens the same instances, with a row for every slot up to the last one that has a request."""

    async def launch_slotted(placement: Placement, port: Port) -> Instance:
        real = RealPort(port)
        return SlottedInstance(await launch(placement, real), slot, controls, real.counts)

    return launch_slotted


class SlottedInstance(DelegatingInstance):
    """An instance whose batches have the requests in the rows of their sequences' slots."""

    def __init__(
        self,
        instance: Instance,
        slot: Callable[[SequenceId], int],
        controls: Controls,
        counts: deque[int],
    ) -> None:
        super().__init__(instance)
        self._slot = slot
        self._controls = controls
        self._numbers = itertools.count(FIRST_IDLE)
        self._counts = counts

    def start(self, batch: Batch) -> None:
        """Put the requests in the order of their slots and fill the gaps."""
        by_slot: dict[int, int] = {}
        for i, operation in enumerate(batch.operations):
            assert operation.sequence is not None
            by_slot[self._slot(operation.sequence.id)] = i
        whole = Batch([], [], [])
        for slot in range(max(by_slot) + 1):
            i = by_slot.get(slot, -1)
            whole.items.append(batch.items[i] if i >= 0 else next(self._numbers))
            whole.operations.append(
                batch.operations[i] if i >= 0 else self._controls.idle(batch.operations[0])
            )
            whole.rows.append(1)
        self._counts.append(len(batch.items))
        self._instance.start(whole)


class RealPort:
    """Passes on what is about requests. `counts` are those in each batch that is in work, in order."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self.counts: deque[int] = deque()

    def push(self, events: Sequence[Event]) -> None:
        """See `Port`."""
        self._port.push(list(self._real(events)))

    def deliver(self, events: Sequence[Event]) -> None:
        """See `Port`."""
        self._port.deliver(list(self._real(events)))

    def _real(self, events: Sequence[Event]) -> Iterator[Event]:
        counts = iter(tuple(self.counts))  # one for each batch in hand; their credits may come together
        for event in events:
            if isinstance(event, Executed):
                kept = [i for i, item in enumerate(event.items) if item < FIRST_IDLE]
                count = next(counts, 0)
                rows = count if event.rows else 0
                yield Executed(
                    [event.items[i] for i in kept],
                    [event.outcomes[i] for i in kept],
                    event.began,
                    event.input_ready,
                    event.output_began,
                    event.ended,
                    rows,
                    event.batch,
                )
            elif isinstance(event, Part):
                if event.item < FIRST_IDLE:
                    yield event
            elif isinstance(event, Begun):
                yield Begun(tuple(item for item in event.items if item < FIRST_IDLE))
            else:
                if isinstance(event, Credit):
                    for _ in range(min(event.count, len(self.counts))):
                        self.counts.popleft()
                yield event
