"""The live clock: `time.monotonic` and the running event loop. Simulation has its own, with the same face."""

import asyncio
import time
from collections.abc import Callable

from trivium.types.interfaces import Timer


class LoopClock:
    """A `Clock` over an asyncio loop. Timers of uvloop have a resolution of a millisecond."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now: Callable[[], float] = time.monotonic

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call once, not before `when`."""
        return self._loop.call_later(max(0.0, when - self.now()), callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call once, after what runs now."""
        self._loop.call_soon(callback)
