"""Bounds the part of one answer that is on its way to the server: so many parts, and so many bytes of them.

Whoever sends waits here while the answer's receiver is full; the thread that reads the wire tells what has been taken.
It knows no frames and no user code.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from trivium_worker.wire import frames

BYTES = 2**20
"""On their way, from which on no further part leaves; one may always be, however long."""


class Window:
    """The window of one item. Used by any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sizes: deque[int] = deque()  # of the parts that have been written and not been taken
        self._bytes = 0
        self._count = 0  # parts that were let in and not taken
        self._is_open = True
        self._on_change: Callable[[], Any] | None = None

    def enter_now(self, on_change: Callable[[], Any]) -> bool | None:
        """Let a further part in without waiting: True, or False once it is closed. None while there is no room; then
        `on_change` is called once, by whichever thread, when that may have changed.
        """
        with self._changed:
            if self._is_open and not self._has_room():
                self._on_change = on_change
                return None
            self._count += self._is_open
            return self._is_open

    def enter(self, waits: Callable[[], None]) -> bool:
        """Waits until a further part may be sent, and calls `waits` before; False once it is closed."""
        with self._changed:
            if self._is_open and self._has_room():
                self._count += 1
                return True
        waits()
        with self._changed:
            while self._is_open and not self._has_room():
                self._changed.wait()
            self._count += self._is_open
            return self._is_open

    def wrote(self, size: int) -> None:
        """A part that was let in has so many bytes; before it is written."""
        with self._changed:
            self._sizes.append(size)
            self._bytes += size

    def leave(self) -> None:
        """A part that was let in will not be written."""
        with self._changed:
            self._count -= 1
            self._tell()

    def taken(self, count: int) -> None:
        """The oldest of those that were written have been taken."""
        with self._changed:
            for _ in range(min(count, len(self._sizes))):
                self._bytes -= self._sizes.popleft()
                self._count -= 1
            self._tell()

    def close(self) -> None:
        """Tell those who wait that nobody wants more."""
        with self._changed:
            self._is_open = False
            self._tell()

    def _tell(self) -> None:
        self._changed.notify_all()
        on_change, self._on_change = self._on_change, None
        if on_change is not None:
            on_change()

    def _has_room(self) -> bool:
        return self._count < frames.WINDOW and self._bytes < BYTES
