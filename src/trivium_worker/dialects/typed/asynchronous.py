"""Typed handlers with `async def predict`: many requests at once on one event loop, up to a bound that it states."""

from typing import Any

from trivium_worker.dialects.typed.handler import TypedAdapter, failure_of
from trivium_worker.runtime.adapter import Host, Send, Setup
from trivium_worker.runtime.tasks import on_own_loop
from trivium_worker.wire.values import END, Item, Outcome, Raw


class AsyncTypedAdapter(TypedAdapter):
    """One object, which has its `setup` and all its requests on one loop."""

    def __init__(self, setup: Setup, host: Host) -> None:
        with on_own_loop(self, setup):
            super().__init__(setup, host)

    async def serve(self, item: Item, send: Send) -> Outcome:
        """See `Adapter`."""
        as_body = isinstance(item.payload, Raw)
        try:
            values = self.bodies.values(item)
            self.trace.set(item.context)
            item.payload = Raw([])  # the handler has what it needs: what the request lay in is free
            made = self.predict(**values)
            if not self.signature.streams:
                return self.bodies.answer(await made, as_body)
            return await self._generated(made, as_body, send)
        except Exception as error:
            return failure_of(error)

    def close(self) -> None:
        """See `Adapter`."""
        closing = getattr(self.handler, "close", None)
        made = closing() if callable(closing) else None
        if hasattr(made, "__await__"):
            self._await(made)

    def _await(self, made: Any) -> None:
        self.loop.run_until_complete(made)

    async def _generated(self, pieces: Any, as_body: bool, send: Send) -> Outcome:
        has_begun = False
        try:
            async for piece in pieces:
                await send(self.bodies.answer(piece, as_body))
                has_begun = True
        finally:
            await pieces.aclose()
        return END if has_begun or not as_body else self.empty()
