"""One request inside the core, from the door to its final part.

The item is also its ticket: whoever submitted it may cancel it. It moves by the table in `types/state`, and
only its owner may call the sink with a final part, so it ends exactly once.
"""

from collections.abc import Hashable
from functools import partial
from typing import Protocol

import msgspec

from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock, Sink, Timer
from trivium.types.operations import Infer, SequenceRef
from trivium.types.running import Executed, InstanceId, ItemId
from trivium.types.state import ItemState


class ItemOwner(Protocol):
    """Queues and ends the item."""

    def cancel(self, item: "Item", why: ServeError) -> None:
        """End it with `why`, wherever it is. Called only while it has not ended."""
        ...

    def resume(self, item: "Item") -> None:
        """Its receiver, which was full, has room again. Called only while it has not ended."""
        ...


class Item(msgspec.Struct, eq=False):
    """A queued or running request; times are seconds on the core's clock. Unlike the other values of the
    request path it changes, and belongs to the loop.
    """

    item: ItemId
    operation: Infer
    sink: Sink
    enqueued_at: float
    owner: ItemOwner
    rows: int = 1
    shape_key: Hashable = None
    level: int = 1
    queue_deadline: float | None = None
    is_demotable: bool = False
    state: ItemState = ItemState.QUEUED
    instance: InstanceId = 0
    timer: Timer | None = None
    is_held: bool = False
    run: Executed | None = None  # that it was in, if that ended before the item did

    @property
    def sequence(self) -> SequenceRef | None:
        """Return its place in a sequence."""
        return self.operation.sequence

    def keep_deadline(self, seconds: float, clock: Clock, reason: str = "") -> None:
        """End it once `seconds` have passed since it came, unless it has ended by then; for a `reason`, if there is
        one. What deadline it had before holds no more.
        """
        if self.timer is not None:
            self.timer.cancel()
        end = partial(self.cancel, out_of_time(self.operation.model, seconds, reason))
        self.timer = clock.call_at(self.enqueued_at + seconds, end)

    def cancel(self, why: ServeError) -> None:
        """End it with `why`, wherever it is; nothing happens if it has ended."""
        if self.state is not ItemState.ENDED:
            self.owner.cancel(self, why)

    def hold(self) -> None:
        """See `Ticket`. What comes for it from now on is kept."""
        self.is_held = self.state is not ItemState.ENDED

    def resume(self) -> None:
        """See `Ticket`."""
        if self.is_held:
            self.is_held = False
            if self.state is not ItemState.ENDED:
                self.owner.resume(self)


def out_of_time(model: str, seconds: float, reason: str = "") -> ServeError:
    """Return the error of a request to a model that has not ended by its deadline; for a `reason`, if there is one."""
    text = f"The request to model '{model}' ran out of time: its deadline of {seconds:g} s."
    return ServeError(Code.EXPIRED, text, info=ErrorInfo.of(reason, model=model) if reason else None)


CANCELLED = ServeError(Code.CANCELLED, "The request was cancelled by its client.")
GIVEN_UP = ServeError(
    Code.DRAINING, "The server went down before this request was done. Send it elsewhere, or again."
)


class CompletedTicket:
    """The ticket of an operation that ended when it was submitted, or that cannot be cancelled."""

    def cancel(self, why: ServeError) -> None:
        """Too late, or not to be undone half-way."""

    def hold(self) -> None:
        """It answers once."""

    def resume(self) -> None:
        """It was not held."""


COMPLETED = CompletedTicket()
