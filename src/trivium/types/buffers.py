"""Buffers with owners.

A request body larger than a socket read is received straight into a lent buffer, and tensors view it. Two
parties need it: the front end, until the answer is on the wire (an answer may view its request), and the
core, until the instance is done with the item (a client may be gone by then). Each holds the lease; the last
release gives the buffer back. Reference counts of Python are no substitute: a transport keeps no copy.

What is made of a body, such as the tensors of a JSON text, lives as long as its request and is booked with it, in the
books of whoever bounds the bytes that are held.
"""

from collections.abc import Callable
from typing import Protocol


class Books(Protocol):
    """Counts the bytes that are booked for one lease."""

    def add(self, size: int) -> None:
        """Book so many bytes more. Raises the ServeError that refuses the request where there is no room."""
        ...

    def close(self) -> None:
        """Nothing of it is held any more."""
        ...


class Lease:
    """A lent writable buffer, counted by hand. Used on the event loop only.

    Born held once, by whoever borrowed it. `give_back` is called with it, exactly once, at the last release; its books,
    if it has any, are closed then, so that bytes stay booked for as long as anybody holds them.
    """

    __slots__ = ("_books", "_give_back", "_holders", "_outside", "view")

    def __init__(self, view: memoryview, give_back: Callable[["Lease"], None]) -> None:
        self.view = view
        self._holders = 1
        self._give_back = give_back
        self._outside = 0
        self._books: Books | None = None

    def enter(self, books: Books, outside: int = 0) -> None:
        """Book the lease there from now on. So many of the bytes booked already lie `outside` of its buffer."""
        self._books, self._outside = books, outside

    @property
    def is_booked(self) -> bool:
        """Has it books?"""
        return self._books is not None

    def hold(self) -> None:
        """One more party needs the buffer. It must still be held by somebody."""
        assert self._holders > 0, "a lease was held after it had been given back"
        self._holders += 1

    def release(self) -> None:
        """One party is done. The caller must not touch `view` afterwards."""
        assert self._holders > 0, "a lease was released more often than held"
        self._holders -= 1
        if self._holders == 0:
            books, self._books, self._outside = self._books, None, 0
            if books is not None:
                books.close()
            self._give_back(self)

    def cover(self, size: int) -> None:
        """Book what was made of the buffer and lies outside of it: so many bytes, altogether. Raises as `Books.add`."""
        if self._books is not None and size > self._outside:
            self._books.add(size - self._outside)
            self._outside = size
