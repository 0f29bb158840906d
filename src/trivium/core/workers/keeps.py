"""Leases that are held on a worker's behalf: of copies in the arena until their items end, and of blocks that user code
still has when its item is answered, until the worker tells that they are gone. Sans-IO.
"""

from collections.abc import Mapping

from trivium.core.workers.arena import ArenaLease
from trivium.types.buffers import Lease
from trivium.types.operations import Infer
from trivium.types.running import ItemId
from trivium_child import frames

KEEPING = frames.KEPT, frames.FREED


class RetainedLeases:
    """Of one worker. `copies` are leases by item, `kept` by the worker's own numbers of blocks."""

    def __init__(self, copies: dict[ItemId, Lease]) -> None:
        self.copies = copies
        self.kept: dict[int, Lease] = {}

    def take(self, kind: int, body: memoryview, items: Mapping[ItemId, Infer]) -> None:
        """A frame of a worker that has these items: a block outlives one that is answered next, or is not kept any
        more. LookupError for an item or a block that it does not have; StructError for what is no such frame.
        """
        if kind == frames.FREED:
            for (number,) in frames.NUMBER.iter_unpack(body):
                self.kept.pop(number).release()
            return
        item, number = frames.KEPT_BODY.unpack(body)
        lease = self.copies.get(item) or items[item].payload.lease
        if not isinstance(lease, ArenaLease) or number in self.kept:
            raise LookupError(f"item {item} keeps block {number}, which cannot be")
        lease.hold()
        self.kept[number] = lease

    def forget(self, item: ItemId) -> None:
        """It has ended."""
        if self.copies and (copy := self.copies.pop(item, None)) is not None:
            copy.release()

    def close(self) -> None:
        """The worker is gone, and with it all that it had."""
        for leases in (self.copies, self.kept):
            for lease in leases.values():
                lease.release()
            leases.clear()
