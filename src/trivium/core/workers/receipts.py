"""Which parts a worker is told have been taken: it sends so many ahead, and waits for receipts before it sends more.

A receipt is due once a part has been passed on, and is kept back while the receiver of the item is full. Sans-IO: it
knows numbers and frames, and neither processes nor receivers.
"""

from trivium.types.running import ItemId
from trivium_child import frames


class FlowControl:
    """Of one worker. What is due goes out as one frame per item."""

    def __init__(self) -> None:
        self.due: dict[ItemId, int] = {}
        self.held: dict[ItemId, int] = {}  # parts that its receiver has not made room for yet

    @property
    def is_stopped(self) -> bool:
        """Has some item sent all that it may, because its receiver is full? Then its model may wait for that."""
        return any(count >= frames.WINDOW for count in self.held.values())

    def came(self, item: ItemId) -> None:
        """A part has come that is not its last."""
        self.due[item] = self.due.get(item, 0) + 1

    def hold(self, item: ItemId) -> None:
        """Its receiver is full."""
        self.held.setdefault(item, 0)

    def resume(self, item: ItemId) -> None:
        """Its receiver has room for all that has come."""
        count = self.held.pop(item, 0)
        if count:
            self.due[item] = self.due.get(item, 0) + count

    def forget(self, item: ItemId) -> None:
        """It has ended: nothing of it waits any more."""
        self.due.pop(item, None)
        self.held.pop(item, None)

    def write(self) -> list[bytes | memoryview]:
        """The frames for what is due and not held; they are due no more."""
        due, self.due = self.due, {}
        pieces: list[bytes | memoryview] = []
        for item, count in due.items():
            if item in self.held:
                self.held[item] += count
            else:
                pieces.append(frames.frame(frames.TAKEN, frames.TAKEN_BODY.pack(item, count)))
        return pieces
