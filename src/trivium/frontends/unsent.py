"""Keeps the books on answers that their clients have not read yet, so that slow readers cannot hold all memory.

Decides who is cut off when all together leave too much unread: whoever has left something unread for longest, since a
client that reads has nothing unread for long.
"""

from typing import Protocol


class SlowReader(Protocol):
    """Holds bytes that a client has not read."""

    def give_up(self) -> None:
        """Free them: the client has not read for longer than all others, and there is no room."""
        ...


class UnreadAnswers:
    """Bytes of answers by who holds them, `most` of them together; one alone may hold more. Used on the loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[SlowReader, int] = {}  # in the order in which they began to hold something
        self.held_bytes = 0

    def note(self, holder: SlowReader, size: int) -> None:
        """The holder has so many bytes by now; none any more where that is 0."""
        before = self._sizes.pop(holder, 0) if not size else self._sizes.get(holder, 0)
        self.held_bytes += size - before
        if not size:
            return
        self._sizes[holder] = size
        while self.held_bytes > self._most and len(self._sizes) > 1:
            slowest = next(each for each in self._sizes if each is not holder)
            self.held_bytes -= self._sizes.pop(slowest)
            slowest.give_up()
