"""Has work done in threads that would hold up a loop, and its result brought back onto it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trivium.frontends.turns import Result
from trivium.types.errors import noted

_THREADS = 4


class ThreadOffload:
    """An `Offload` to threads of its own. Used on one loop; `close` waits for what has begun."""

    def __init__(self, name: str) -> None:
        """Its threads bear the name."""
        self._threads = ThreadPoolExecutor(_THREADS, name)
        self._working: set[asyncio.Future[Any]] = set()

    def __call__(self, work: Callable[[], Result], done: Callable[[Result | Exception], None]) -> None:
        """Run `work` in a thread, then call `done` on the loop with what it returned or raised, just once."""

        def attempt() -> Result | Exception:
            try:
                return work()
            except Exception as error:
                return noted(error)

        future = asyncio.get_running_loop().run_in_executor(self._threads, attempt)
        self._working.add(future)
        future.add_done_callback(self._working.discard)
        future.add_done_callback(lambda future: done(future.result()))

    async def close(self) -> None:
        """Return when all work is done and every thread gone."""
        if self._working:
            await asyncio.wait(self._working)
        self._threads.shutdown()
