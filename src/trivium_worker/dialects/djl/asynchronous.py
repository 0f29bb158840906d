"""The asynchronous handlers of DJL Serving: `async def handle(inputs)`, many requests at once on one event loop.

It returns an Output, None, or an async generator of Outputs, each of which is a piece of the answer. Source: spec sheet
`djl`, sections 3.2, 8.1, 8.4 and 8.5.
"""

import inspect
from typing import Any

from trivium_worker.dialects.djl.handler import (
    METHODS,
    DjlAdapter,
    failure_of,
    guarded,
    opening,
    pieces_of,
    words_of,
)
from trivium_worker.dialects.djl.request import show, single
from trivium_worker.dialects.djl.result import closing, content_type_of, piece_of, whole
from trivium_worker.runtime.adapter import Host, Send, Setup
from trivium_worker.runtime.tasks import on_own_loop
from trivium_worker.runtime.traces import print_trace
from trivium_worker.wire.values import END, Failure, Item, Outcome, Part, Raw


class AsyncDjlAdapter(DjlAdapter):
    """One handler, which has its initialisation and all its requests on one loop."""

    def __init__(self, setup: Setup, host: Host) -> None:
        with on_own_loop(self, setup):
            super().__init__(setup, host)

    async def serve(self, item: Item, send: Send) -> Outcome:
        """See `Adapter`."""
        if item.method not in METHODS:
            return await self._serve_named(item)
        shown = guarded(show, item)
        if isinstance(shown, Failure):
            return shown
        item.payload = Raw([])  # the handler has copies: what the request lay in is free
        try:
            made = await self._made(single(shown, self._name, self._always))
        except Exception as error:
            return failure_of(error)
        if inspect.isasyncgen(made):
            return await self._generated(item, made, send)
        output = self._checked(made)
        if isinstance(output, (Failure, Raw)):
            return output
        if output.stream_content is not None:
            return await self._streamed(item, output, send)
        answer = guarded(piece_of, output)
        return self._finished([item], [answer if isinstance(answer, Failure) else answer[0]], output)[0]

    async def _serve_named(self, item: Item) -> Outcome:
        """Call the function that an item names, with or without async, in place of the handler."""
        try:
            function, inputs = self._named(item)
            made = function(inputs)
            output = self._checked(await made if inspect.isawaitable(made) else made)
        except Exception as error:
            return failure_of(error)
        outcome: Outcome = output if isinstance(output, (Failure, Raw)) else guarded(whole, output)
        return outcome

    def _first(self, inputs: Any) -> Any:
        return self.loop.run_until_complete(self._last_of(inputs))

    async def _last_of(self, inputs: Any) -> Any:
        made = await self._made(inputs)
        if not inspect.isasyncgen(made):
            return made
        outputs = [output async for output in made]
        return outputs[-1] if outputs else None

    async def _made(self, inputs: Any) -> Any:
        """Return what the handler returns once it has been waited for, or its generator."""
        made = self._function(inputs)
        if inspect.isasyncgen(made):
            return made
        if not inspect.isawaitable(made):
            raise Failure(
                (
                    f"{self._name} returned {type(made).__name__}, which cannot be awaited. Define it "
                    "with async def, or leave out option.async_mode."
                ),
                "model failed",
                424,
            )
        return await made

    async def _generated(self, item: Item, outputs: Any, send: Send) -> Outcome:
        """Send each piece; the last one is the outcome. What is raised behind the first is the last piece."""
        answer = _Answer(send)
        try:
            async for output in outputs:
                if not isinstance(output, self._output_type):
                    raise _no_piece(output)
                if await answer.add(*piece_of(output)):
                    return self._finished([item], [answer.end()], output)[0]
                output.execute_finalize()
            return answer.end()
        except Exception as error:
            if not answer.has_begun:
                return failure_of(error)
            print_trace(error)
            return Raw([Part(words_of(error).encode("utf-8"), answer.kind)])
        finally:
            await _closed(outputs)

    async def _streamed(self, item: Item, output: Any, send: Send) -> Outcome:
        """Send what a plain iterator yields, while other requests have their turns between two pieces."""
        first = guarded(whole, output)
        if isinstance(first, Failure):
            return first
        answer = _Answer(send)
        with closing(output.stream_content):
            for data in pieces_of(output.stream_content, output.stream_output_formatter):
                part = Part(data, content_type_of(first.properties))
                await answer.add(Raw([part], first.properties, (), first.status, first.reason), False)
        outcome = (
            answer.end() if answer.has_begun else opening(first, Part(b"", content_type_of(first.properties)))
        )
        return self._finished([item], [outcome], output)[0]


async def _closed(outputs: Any) -> None:
    """Let a generator clean up; what that raises hurts no answer."""
    try:
        await outputs.aclose()
    except Exception as error:
        print_trace(error)


def _no_piece(output: Any) -> Failure:
    text = f"Invalid output type: {type(output).__name__}. Each piece of a generator must be an Output."
    return Failure(text, "model failed", 424)


class _Answer:
    """Gathers the pieces of one answer: the first that holds anything has the status and all headers so far."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._last: Raw | None = None
        self._properties: dict[str, str] = {}
        self.has_begun = False
        self.kind = ""

    async def add(self, piece: Raw, is_last: bool) -> bool:
        """Send a piece, or keep it where it is the last. An empty one is not sent. Returns whether it is the last."""
        self._properties.update(piece.properties)
        self.kind = content_type_of(self._properties)
        data = piece.parts[0].data if piece.parts else b""
        part = Part(data, self.kind)
        if not self.has_begun:
            piece = Raw([part], self._properties, (), piece.status, piece.reason)
        else:
            piece = Raw([part])
        if is_last or not len(data):
            self._last = piece if is_last or not self.has_begun else self._last
            return is_last
        self.has_begun = True
        self._last = None
        await self._send(piece)
        return False

    def end(self) -> Outcome:
        """Return what ends the answer."""
        last = self._last
        if self.has_begun:
            return END if last is None or not len(last.parts[0].data) else last
        return Raw([], status=204, reason="No content") if last is None else last
