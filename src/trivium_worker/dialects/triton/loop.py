"""The event loop of models whose `execute` is a coroutine: in a thread of its own, made when it is first needed.

It runs on between batches, so that what a model started goes on. Few models need asyncio, which takes a while to load.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trivium_worker.dialects.triton.texts import reported
from trivium_worker.runtime.faults import ENDS_PROCESS
from trivium_worker.wire.values import Failure, Item, anew, frameless
from trivium_worker.wire.vital import VitalThread

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

Items = tuple[Item, ...]
Kinds = tuple[type[BaseException], ...]


class EventLoop:
    """Used by the main thread, and by whoever asks the model whether it is ready."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def result(self, coroutine: Any, items: Items, ends: Kinds = ENDS_PROCESS) -> Any:
        """Run it and wait. Raises a Failure, which the log has, for what it raises; errors of the kinds `ends` as they
        are.
        """
        value, error = self._submit(coroutine, items, ends).result()
        if isinstance(error, Failure):
            raise anew(error)
        if error is not None:
            raise type(error)(*error.args)
        return value

    def start(self, coroutine: Any, items: Items, failed: Callable[[Failure], None]) -> None:
        """Run it in the background; `failed` gets, in the loop's thread, what it raises, which the log has by then."""

        def done(future: "Future[Any]") -> None:
            if future.cancelled():
                return
            error = future.result()[1]
            if error is not None:
                failed(error)

        self._submit(coroutine, items, ()).add_done_callback(done)

    def stop(self) -> None:
        """End the loop and what runs in it."""
        import asyncio

        if self._loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    def _submit(self, coroutine: Any, items: Items, ends: Kinds) -> "Future[Any]":
        import asyncio

        with self._making:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = VitalThread(self._loop.run_forever, "triton-loop")
        return asyncio.run_coroutine_threadsafe(_guarded(coroutine, items, ends), self._loop)


async def _guarded(coroutine: Any, items: Items, ends: Kinds) -> Any:
    """Return what the coroutine returns or raised: a SystemExit, raised here, would end the loop's thread unheard."""
    from c_python_backend_utils.backend import COROUTINE_ITEMS

    COROUTINE_ITEMS.set(items)
    try:
        return await coroutine, None
    except ends as error:
        return None, frameless(error)
    except (Exception, *ENDS_PROCESS) as error:
        return None, reported(error)


async def _cancel_others() -> None:
    import asyncio

    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
