"""Views that a scheduling policy sees, and the decisions that it makes.

`decide(view, settings, now) -> Decision` is a pure function: it neither changes nor keeps the view, and the
same function runs in the server, in the tests and on a virtual clock.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence, Sized
from typing import Protocol

import msgspec

from trivium.types.errors import Code
from trivium.types.operations import SequenceRef
from trivium.types.running import InstanceId, ItemId


class Alone:
    """The shape key of one item that runs alone: it equals no other. A batch with it waits for nothing."""

    __slots__ = ()


class Entry(Protocol):
    """A queued item as a policy sees it. Items of different `shape_key` never share a batch; `Alone` is one of them."""

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
    @property
    def sequence(self) -> SequenceRef | None: ...


class QueueView(Protocol):
    """The live queue, read-only; never a snapshot."""

    @property
    def count(self) -> int:
        """Items waiting."""
        ...

    @property
    def deadlines(self) -> Sized:
        """Empty where nothing that waits can expire."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Yield them in the order in which they are due: by level, then by arrival, those demoted last of their
        level.
        """
        ...

    def expired(self, now: float) -> Sequence[Entry]:
        """Those whose time in the queue is up at `now`."""
        ...

    def next_expiry(self, after: float) -> float | None:
        """The earliest time later than `after` at which one's time is up."""
        ...

    def free(self) -> Iterable[InstanceId]:
        """Instances with a credit, the one to use first in front; one that holds two credits stands twice."""
        ...


SequenceId = int | str


class SequenceSlot(msgspec.Struct, eq=False):
    """A sequence that has begun to arrive and is not over; the scheduler's own, a policy only reads it.

    It has `slot` of `instance` (0: none yet), which has so many items of it `in_work`. `is_closed`: its last request
    has arrived; `is_ending`: that was handed to the instance, as the first one was if it `has_begun`. Nothing
    happened to it since `quiet_since`; it has been there since `since`.
    """

    id: SequenceId
    quiet_since: float
    instance: InstanceId = 0
    slot: int = 0
    in_work: int = 0
    is_closed: bool = False
    is_ending: bool = False
    has_begun: bool = False
    since: float = 0.0


class SequenceView(Protocol):
    """Shows a policy for sequences all that it sees, live and read-only. Every entry belongs to one of the records."""

    def entries(self) -> Iterator[Entry]:
        """Return the same as in `QueueView`."""
        ...

    def free(self) -> Iterable[InstanceId]:
        """Return the same as in `QueueView`."""
        ...

    def instances(self) -> Collection[InstanceId]:
        """Those that are open. A record on any other has lost its state."""
        ...

    def records(self) -> Iterable[SequenceSlot]:
        """Return the records in any order."""
        ...


class Bind(msgspec.Struct, frozen=True, gc=False):
    """The sequence has this slot from now on."""

    sequence: SequenceId
    instance: InstanceId
    slot: int


class Release(msgspec.Struct, frozen=True, gc=False):
    """The sequence is over and has no slot any more; `why` unless it ended as it should."""

    sequence: SequenceId
    why: Code | None


class Cut(msgspec.Struct, frozen=True, gc=False):
    """Run these together, on that instance."""

    instance: InstanceId
    entries: list[Entry]


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Says what the scheduler shall do now. `wake_at` is later than the `now` it was decided at, or None when only an
    arrival, a credit or a cancellation can change anything.
    """

    cuts: list[Cut] = []
    reject: list[tuple[Entry, Code]] = []
    demote: list[Entry] = []
    wake_at: float | None = None


class SequenceDecision(msgspec.Struct, frozen=True, gc=False):
    """Says, like `Decision`, what the scheduler shall do, for sequences. `unbind` (it begins anew) and `release` come
    before `bind`, and that before the cuts.
    """

    cuts: list[Cut]
    reject: list[tuple[Entry, Code]]
    unbind: list[SequenceId]
    release: list[Release]
    bind: list[Bind]
    wake_at: float | None = None
