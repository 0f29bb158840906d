"""Runs an adapter that takes many requests at once: each is a task on the main thread's event loop.

A second thread reads, so that the server hears of the worker, and a request of its cancellation, also while user code
keeps the loop from its other tasks. Each request gives its credit back with its final part.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic
from typing import Any

from trivium_worker.runtime.adapter import Adapter, Setup
from trivium_worker.runtime.faults import ENDS_PROCESS, failure_of, fault
from trivium_worker.runtime.parts import CANCELLED, Parts
from trivium_worker.wire.values import END, Item, Outcome, Payload


@contextlib.contextmanager
def on_own_loop(adapter: Adapter, setup: Setup) -> Iterator[None]:
    """Have an adapter take as many requests at once as its settings say, on a loop of its own, which the block may use
    to load user code. It is closed where that raises.
    """
    adapter.in_flight = int(setup.settings["in_flight"])
    adapter.loop = asyncio.new_event_loop()
    asyncio.set_event_loop(adapter.loop)  # for what user code makes while it is imported
    try:
        yield
    except BaseException:
        adapter.loop.close()
        raise


class Tasks:
    """One per worker. `todo` and `items` are what has come and not been taken up, and what has not ended; `begun` notes
    the number of a batch before user code gets it, and `ended` is called behind the end of an item.
    """

    def __init__(
        self,
        adapter: Adapter,
        todo: "deque[Any]",
        items: dict[int, Item],
        parts: Parts,
        begun: Callable[[int], None],
        ended: Callable[[], None],
    ) -> None:
        self._adapter = adapter
        self._todo = todo
        self._items = items
        self._parts = parts
        self._note_begun = begun
        self._ended = ended
        self._loop: asyncio.AbstractEventLoop = adapter.loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._since: dict[int, float] = {}
        parts.begun = self._since
        self._is_stopping = False

    def run(self) -> None:
        """Serve until the server has said stop and all has ended. What ends the process passes."""
        self._loop.call_soon(self._take_up)
        self._loop.run_forever()

    # -- from the thread that reads ------------------------------------------------------------------------

    def alert(self) -> None:
        """Something has come."""
        self._loop.call_soon_threadsafe(self._take_up)

    def cancel(self, number: int) -> None:
        """Nobody waits for the item any more."""
        self._loop.call_soon_threadsafe(self._cancel, number)

    # -- on the loop ---------------------------------------------------------------------------------------

    def _take_up(self) -> None:
        while self._todo:
            batch: tuple[int, Any] | None = self._todo.popleft()
            if batch is None:
                self._is_stopping = True
                self._stop_if_done()
                return
            number, items = batch
            for item in items:
                task = self._loop.create_task(self._serve(number, item))
                self._tasks.add(task)  # the loop itself may forget it
                task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._stop_if_done()

    def _stop_if_done(self) -> None:
        if self._is_stopping and not self._tasks:
            self._loop.stop()

    def _cancel(self, number: int) -> None:
        task = self._running.get(number)
        if task is not None:  # else it has not begun, and will see it then
            task.cancel()

    async def _serve(self, number: int, item: Item) -> None:
        if item.is_cancelled:
            self._parts.send(item, CANCELLED, True, None)
            return
        self._note_begun(number)
        self._since[item.number] = monotonic()
        task = asyncio.current_task()
        assert task is not None
        self._running[item.number] = task
        try:
            outcome = await self._outcome(item)
        finally:
            del self._running[item.number]
        if outcome is not None or item.number in self._items:
            self._parts.send(item, END if outcome is None else outcome, True, None)
        self._since.pop(item.number, None)
        self._ended()

    async def _outcome(self, item: Item) -> Outcome:
        try:
            return await self._adapter.serve(item, partial(self._send, item))
        except asyncio.CancelledError as error:
            return CANCELLED if item.is_cancelled else fault(error)
        except ENDS_PROCESS:
            raise
        except BaseException as error:
            return failure_of(error)

    async def _send(self, item: Item, payload: Payload) -> None:
        """Send one part, once there is room for it. Others get their turn behind it in any case."""
        while True:
            room = self._loop.create_future()
            if self._parts.offer(item, payload, partial(self._loop.call_soon_threadsafe, _set, room)):
                break
            await room
        await asyncio.sleep(0)


def _set(room: "asyncio.Future[None]") -> None:
    if not room.done():
        room.set_result(None)
