"""When a front end looks at its connections: twice a second while one of them has something under way, else when
the first idle one has waited long enough. A server that nobody asks anything does not wake.
"""

import asyncio
import time

from trivium.frontends.http.state import HttpState

_SECONDS = 0.5


class Sweeper:
    """Keeps the site's time and its connections' deadlines, on `loop` with its time, from here until `close`."""

    def __init__(self, site: HttpState, loop: asyncio.AbstractEventLoop) -> None:
        self._site = site
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._sweep()

    def close(self) -> None:
        """No sweep follows."""
        self._site.wake = None
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        site = self._site
        site.sweep(self._loop.time(), time.time())
        until = site.idle_until()
        if until is None:
            self._timer = self._loop.call_later(_SECONDS, self._sweep)
            return
        site.wake = self._rouse
        seconds = until - site.now
        self._timer = self._loop.call_later(seconds, self._sweep) if seconds != float("inf") else None

    def _rouse(self) -> None:
        site = self._site
        site.wake = None
        site.now, site.epoch = self._loop.time(), time.time()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_SECONDS, self._sweep)
