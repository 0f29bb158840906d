"""The way up: events of all instances cross to the loop through one deque.

Wake-ups are what a hand-over costs, so there is one per drained set: whoever pushes first signals, the others
only append, until the loop has begun to drain.
"""

from collections import deque
from collections.abc import Callable, Sequence

from trivium.types.running import Event

Deliver = Callable[[Sequence[Event]], None]


class Mailbox:
    """One per server. `signal` asks the loop, from any thread, to call `drain` soon."""

    def __init__(self, signal: Callable[[Callable[[], None]], object]) -> None:
        self._signal = signal
        self._sets: deque[tuple[Deliver, Sequence[Event]]] = deque()
        self._is_signalled = False

    def port(self, deliver: Deliver) -> "MailboxPort":
        """A port whose events reach `deliver` on the loop, in order."""
        return MailboxPort(self, deliver)

    def push(self, deliver: Deliver, events: Sequence[Event]) -> None:
        """Put events in, from any thread."""
        self._sets.append((deliver, events))
        if not self._is_signalled:
            self._is_signalled = True
            self._signal(self.drain)

    def close(self) -> None:
        """Nothing is delivered from now on: the loop is going, and there may be none left to signal."""
        self._signal = _nobody

    def drain(self) -> None:
        """Take all events out, on the loop. Signals are accepted again before the first set is taken, so that none is
        missed.
        """
        self._is_signalled = False
        sets = self._sets
        while sets:
            deliver, events = sets.popleft()
            deliver(events)


def _nobody(drain: Callable[[], None]) -> None:
    pass


class MailboxPort:
    """Takes what one instance pushes."""

    __slots__ = ("_mailbox", "deliver")

    def __init__(self, mailbox: Mailbox, deliver: Deliver) -> None:
        self._mailbox = mailbox
        self.deliver = deliver

    def push(self, events: Sequence[Event]) -> None:
        """Push events, from any thread."""
        self._mailbox.push(self.deliver, events)
