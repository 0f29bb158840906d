"""Buffers with owners.

A request body larger than a socket read is received straight into a lent buffer, and tensors view it. Two
parties need it: the front end, until the answer is on the wire (an answer may view its request), and the
core, until the instance is done with the item (a client may be gone by then). Each holds the lease; the last
release gives the buffer back. Reference counts of Python are no substitute: a transport keeps no copy.
"""

from collections.abc import Callable


class Lease:
    """A lent writable buffer, counted by hand. Used on the event loop only.

    Born held once, by whoever borrowed it. `give_back` is called with it, exactly once, at the last release.
    """

    __slots__ = ("_give_back", "_holders", "view")

    def __init__(self, view: memoryview, give_back: Callable[["Lease"], None]) -> None:
        self.view = view
        self._holders = 1
        self._give_back = give_back

    def hold(self) -> None:
        """One more party needs the buffer. It must still be held by somebody."""
        assert self._holders > 0, "a lease was held after it had been given back"
        self._holders += 1

    def release(self) -> None:
        """One party is done. The caller must not touch `view` afterwards."""
        assert self._holders > 0, "a lease was released more often than held"
        self._holders -= 1
        if self._holders == 0:
            self._give_back(self)
