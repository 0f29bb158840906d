"""One request inside the core, from the door to its final part.

The item is also its ticket: whoever submitted it may cancel it. It moves by the table in `types/state`, and
only `end` may call the sink with a final part, so it ends exactly once.
"""

from collections.abc import Callable, Hashable

from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Sink, Timer
from trivium.types.operations import Infer
from trivium.types.running import InstanceId, ItemId
from trivium.types.state import ItemState


class Item:
    """A queued or running request. `enqueued_at` is on the core's clock; times are seconds.

    `cancelled_by` is the owner's way to take the item out of wherever it is.
    """

    __slots__ = (
        "cancelled_by",
        "deadline",
        "enqueued_at",
        "instance",
        "is_demotable",
        "item",
        "level",
        "operation",
        "queue_deadline",
        "rows",
        "shape_key",
        "sink",
        "state",
        "timer",
    )

    def __init__(
        self,
        item: ItemId,
        operation: Infer,
        sink: Sink,
        enqueued_at: float,
        cancelled_by: Callable[["Item", ServeError], None],
    ) -> None:
        self.item = item
        self.operation = operation
        self.sink = sink
        self.enqueued_at = enqueued_at
        self.cancelled_by = cancelled_by
        self.rows = 1
        self.shape_key: Hashable = None
        self.level = 1
        self.queue_deadline: float | None = None
        self.is_demotable = False
        self.state = ItemState.QUEUED
        self.instance: InstanceId | None = None
        self.deadline: float | None = None
        self.timer: Timer | None = None

    def cancel(self, why: ServeError) -> None:
        """End it with `why`, wherever it is; nothing happens if it has ended."""
        if self.state is not ItemState.ENDED:
            self.cancelled_by(self, why)


CANCELLED = ServeError(Code.CANCELLED, "The request was cancelled by its client.")
