"""Runs vLLM's engine on an event loop in a thread of its own, and hands what comes of it to the thread that steps.

What the engine raises for one request ends that one. The end of the engine itself ends the process, with its reason in
the log: the server answers all that were running, and starts another.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from trivium.types.errors import frameless
from trivium_worker.wire.vital import VitalThread

log = logging.getLogger(__name__)

_LOOK = 0.5
"""Seconds between two looks at whether the engine still is."""

_PATIENCE = 20.0
"""Seconds that its end is waited for."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EngineOutput:
    """Holds what came for a sequence, by its key: vLLM's own output, or what it raised."""

    key: int
    output: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class EngineOrder:
    """Asks for a sequence: vLLM's own input, parameters, and adapter, if any."""

    key: int
    inputs: Any
    sampling: Any
    adapter: Any = None


class EngineEnded(Exception):
    """Nothing more can come of the engine."""


class EngineThread:
    """One per instance. `open_engine` makes the engine, on the loop; `wake` is called when something came.

    What came and was not taken is bounded by what the running requests asked for.
    """

    def __init__(self, open_engine: Callable[[], Any], wake: Callable[[], None]) -> None:
        self._open = open_engine
        self._wake = wake
        self._came: SimpleQueue[EngineOutput] = SimpleQueue()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._opened: Future[Any] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._closing: asyncio.Event
        self.engine: Any = None
        self._thread: VitalThread | None = None

    def start(self) -> Any:
        """Return the opened engine. Raises what opening it raises."""
        self._thread = VitalThread(lambda: asyncio.run(self._run()), "trivium-vllm")
        self.engine = self._opened.result()
        return self.engine

    def submit(self, order: EngineOrder) -> None:
        """Have a sequence computed."""
        self._loop.call_soon_threadsafe(self._begin, order)

    def abort(self, key: int) -> None:
        """Nobody waits for a sequence any more. No effect on one that has ended."""
        self._loop.call_soon_threadsafe(self._cancel, key)

    def take(self) -> list[EngineOutput]:
        """Return what has come since the last time."""
        found: list[EngineOutput] = []
        while True:
            try:
                found.append(self._came.get_nowait())
            except Empty:
                return found

    def ask(self, asked: Coroutine[Any, Any, T], seconds: float) -> T:
        """Have the engine do something, and return its answer. Raises what it raises, and TimeoutError."""
        future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """End the engine, and what it computes."""
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(_PATIENCE)

    @property
    def running(self) -> int:
        """Return how many sequences the engine has."""
        return len(self._tasks)

    # -- on the loop --

    async def _run(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        try:
            engine = self._open()
        except BaseException as error:  # code of a folder may ask for the exit, and no load may wait forever
            self._opened.set_exception(frameless(error))
            return
        self._opened.set_result(engine)
        while not self._closing.is_set():
            await self._look(engine)
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        engine.shutdown()

    async def _look(self, engine: Any) -> None:
        if engine.errored:
            raise EngineEnded(
                "vLLM's engine has ended; its own lines above say why. The model is loaded again."
            )
        try:
            async with asyncio.timeout(_LOOK):
                await self._closing.wait()
        except TimeoutError:
            pass

    def _begin(self, order: EngineOrder) -> None:
        task = self._tasks[order.key] = self._loop.create_task(self._follow(order))
        # Not at the end of the task's own code: what is cancelled before it has begun never gets there.
        task.add_done_callback(lambda _: self._tasks.pop(order.key, None))

    def _cancel(self, key: int) -> None:
        if (task := self._tasks.get(key)) is not None:
            task.cancel()

    async def _follow(self, order: EngineOrder) -> None:
        try:
            outputs = self.engine.generate(
                order.inputs, order.sampling, str(order.key), lora_request=order.adapter
            )
            async for output in outputs:
                self._put(EngineOutput(order.key, output))
        except Exception as error:
            if not self.engine.errored:  # else all end, with the process
                self._put(EngineOutput(order.key, error=frameless(error)))

    def _put(self, output: EngineOutput) -> None:
        self._came.put(output)
        self._wake()
