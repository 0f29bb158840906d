"""Keeps the books on answers that their receivers have not taken yet, so that slow readers cannot hold all memory.

Decides who is cut off when all together leave too much unread: whoever has taken nothing for longest, since who reads
takes something now and then.
"""

from typing import Protocol


class SlowReader(Protocol):
    """Holds bytes that a receiver has not taken."""

    def give_up(self) -> None:
        """Free them: the receiver has taken nothing for longer than all others, and there is no room."""
        ...


class UnreadAnswers:
    """Bytes of answers by who holds them, `most` of them together; one alone may hold more. Used on the loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[SlowReader, int] = {}  # in the order in which something of them was taken last
        self.held_bytes = 0

    def note(self, holder: SlowReader, size: int) -> None:
        """The holder has so many bytes by now; none any more where that is 0."""
        before = self._sizes.get(holder, 0)
        if size < before:
            del self._sizes[holder]  # something was taken: it goes behind the others
        self.held_bytes += size - before
        if not size:
            return
        self._sizes[holder] = size
        while self.held_bytes > self._most and len(self._sizes) > 1:
            slowest = next(each for each in self._sizes if each is not holder)
            self.held_bytes -= self._sizes.pop(slowest)
            slowest.give_up()
