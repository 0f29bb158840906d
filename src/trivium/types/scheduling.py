"""What a scheduling policy sees and what it decides.

`decide(view, settings, now) -> Decision` is a pure function: it neither changes nor keeps the view, and the
same function runs in the server, in the tests and on a virtual clock.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Protocol

import msgspec

from trivium.types.errors import Code
from trivium.types.running import InstanceId, ItemId


class Entry(Protocol):
    """A queued item as a policy sees it. Items of different `shape_key` never share a batch."""

    @property
    def item(self) -> ItemId: ...
    @property
    def rows(self) -> int: ...
    @property
    def shape_key(self) -> Hashable: ...
    @property
    def level(self) -> int: ...
    @property
    def enqueued_at(self) -> float: ...
    @property
    def queue_deadline(self) -> float | None: ...
    @property
    def is_demotable(self) -> bool: ...


class QueueView(Protocol):
    """The live queue, read-only; never a snapshot."""

    @property
    def count(self) -> int:
        """Items waiting."""
        ...

    def entries(self) -> Iterator[Entry]:
        """In the order they are due: by level, then by arrival, those demoted last of their level."""
        ...

    def expired(self, now: float) -> Sequence[Entry]:
        """Those whose time in the queue is up at `now`."""
        ...

    def next_expiry(self, after: float) -> float | None:
        """The earliest time later than `after` at which one's time is up."""
        ...

    def free(self) -> Sequence[InstanceId]:
        """Instances with a credit, the one to use first in front; one that holds two credits stands twice."""
        ...


class Cut(msgspec.Struct, frozen=True, gc=False):
    """Run these together, on that instance."""

    instance: InstanceId
    entries: list[Entry]


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What the scheduler shall do now. `wake_at` is later than the `now` it was decided at, or None when
    only an arrival, a credit or a cancellation can change anything.
    """

    cuts: list[Cut] = []
    reject: list[tuple[Entry, Code]] = []
    demote: list[Entry] = []
    wake_at: float | None = None
