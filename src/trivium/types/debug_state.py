"""Copies of what a served model holds at one moment, for a developer who debugs and for tests: copies, which change
nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.types.interfaces import Instance
from trivium.types.running import InstanceId, ItemId
from trivium.types.scheduling import SequenceId


@dataclass(frozen=True, slots=True)
class SequenceDebugState:
    """Describes the sequences of a model: those that are not over, the items that run for them, and whether a timer is
    set for the next decision.
    """

    open: tuple[SequenceId, ...] = ()
    running: tuple[ItemId, ...] = ()
    has_timer: bool = False


@dataclass(frozen=True, slots=True)
class InstanceDebugState:
    """Describes one open instance: its name, how many batches it may be handed (negative: so many wait in it behind
    those that run), the items that it holds, the instance itself, and how many items it may have in work at once (0: it
    runs one batch at a time).
    """

    name: str
    credits: int
    held: tuple[ItemId, ...]
    instance: Instance | None
    in_flight: int = 0

    @property
    def is_at_rest(self) -> bool:
        """Does it hold no item, and may it be handed exactly one batch, or as many items as it takes at all?"""
        return self.credits == (self.in_flight or 1) and not self.held


@dataclass(frozen=True, slots=True)
class ModelDebugState:
    """Describes one served model: its items that have not ended (`active`), those of them in the queue (`queued`), the
    batches handed over in advance (`ahead`) and how many of them each instance may have (`lead`), the upward calls
    among its items (`calls`), its open instances by number, its sequences, the failed openings in a row of each group,
    whether another instance may be opened, the bytes lent from the memory that its workers share, and the items with
    parts that their receivers have not taken (`unread`).
    """

    active: int
    queued: int
    ahead: int
    lead: int
    calls: int
    instances: Mapping[InstanceId, InstanceDebugState]
    sequences: SequenceDebugState
    failures: tuple[int, ...]
    can_grow: bool
    arena_lent: int
    unread: int = 0

    @property
    def is_at_rest(self) -> bool:
        """Is no item left anywhere, and every instance free?"""
        everywhere = (self.active, self.queued, self.ahead, self.calls)
        return not any(everywhere) and all(each.is_at_rest for each in self.instances.values())
