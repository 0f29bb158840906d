"""TorchServe's asynchronous handlers: `async def handle(data, context)`, many requests at once on one event loop.

Each request is a call of its own, with a context of its own, and fails alone. Source: spec sheet `torchserve`, sections
3.4 and 11: batches have one request here.
"""

import asyncio
import copy
import inspect
from collections import deque
from typing import Any

from trivium_worker.dialects.torchserve.answers import answer_of, elements_of, failure_of
from trivium_worker.dialects.torchserve.handler import TorchServeAdapter, id_of
from trivium_worker.dialects.torchserve.rows import row_of
from trivium_worker.runtime.adapter import Host, Send, Setup
from trivium_worker.runtime.tasks import on_own_loop
from trivium_worker.wire.values import Failure, Item, Outcome, Raw

MOST_UNSENT = 64 * 2**20
"""Bytes of parts that wait for the reader of one request: who sends them does not wait."""


class AsyncTorchServeAdapter(TorchServeAdapter):
    """One handler, which has its initialisation and all its requests on one loop."""

    def __init__(self, setup: Setup, host: Host) -> None:
        with on_own_loop(self, setup):
            super().__init__(setup, host)

    async def serve(self, item: Item, send: Send) -> Outcome:
        """See `Adapter`."""
        row, headers = row_of(item, self._decodes)
        context = self._context_of(item, headers)
        item.payload = Raw([])  # the handler has what it needs: what the request lay in is free
        parts = context.cl_socket = PartSender(self.loop, context, send)
        try:
            made = self.entry([row], context)
            if not inspect.isawaitable(made):
                raise Failure(
                    (
                        f"Prediction failed: the handler returned a {type(made).__name__}, which cannot be "
                        "awaited. Define it with async def, or remove asyncCommunication from "
                        "model-config.yaml."
                    ),
                    status=503,
                )
            (element,) = elements_of(await made, 1)
            outcome: Outcome = answer_of(element, context.request_processor[0])
        except Exception as error:
            outcome = failure_of(error)
        try:
            return await parts.sent() or outcome
        finally:
            parts.stop()

    def _context_of(self, item: Item, headers: dict[str, Any]) -> Any:
        """Return a context for one request; what it measures goes where all of it goes."""
        context = copy.copy(self.context)
        context.request_processor = [self.processor_of(item, headers)]
        context.request_ids = {0: id_of(item)}
        context.metrics = copy.copy(self.context.metrics)
        context.metrics.request_ids = context.request_ids
        context.stopping_criteria = None
        return context


class PartSender:
    """Takes the parts that one request's handler sends, from any thread, and sends one after the other. Nobody waits:
    what a reader has no room for is kept, as far as there may be so much.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, context: Any, send: Send) -> None:
        self._loop = loop
        self._context = context
        self._send = send
        self._parts: deque[Raw] = deque()
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._failure: Failure | None = None

    def send_parts(self, ret: Any, req_id_map: dict[int, str], message: str, code: int) -> None:
        """See `TorchServeAdapter.send_parts`."""
        elements: list[Any] = elements_of(ret, 1)
        if code != 200:
            self._failure = Failure(message, status=code if 400 <= code <= 599 else 500)
            return
        part = answer_of(elements[0], self._context.request_processor[0])
        size = len(part.parts[0].data)
        if self._bytes + size > MOST_UNSENT:
            raise Failure(
                (
                    f"Prediction failed: {self._bytes} bytes of parts wait for a slow reader, and no more "
                    "may. Await something between parts, or send fewer."
                ),
                status=503,
            )
        self._bytes += size
        self._loop.call_soon_threadsafe(self._add, part)

    async def sent(self) -> Failure | None:
        """Wait until all that was handed over has been sent; returns the failure that was among it."""
        await asyncio.sleep(0)  # until what other calls handed over is in the queue
        if self._task is not None:
            await self._task
        return self._failure

    def stop(self) -> None:
        """Send no more."""
        self._parts.clear()
        if self._task is not None:
            self._task.cancel()

    def _add(self, part: Raw) -> None:
        self._parts.append(part)
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        while self._parts:
            part = self._parts.popleft()
            await self._send(part)
            self._bytes -= len(part.parts[0].data)
