"""A call with messages both ways: the glue between a channel and `grpc_stream.Stream`, which knows what it means.

Decides when a message is handed over and when a response counts as taken: once it has left for the transport, which
the client's windows and the transport's own buffer both decide. One task per call; deadlines are kept by a timer.
"""

import asyncio
from collections import deque

from trivium.frontends.h2.call import CallConnection
from trivium.frontends.h2.channel import Channel
from trivium.frontends.h2.rpc_head import RpcHead
from trivium.frontends.h2.state import DEADLINE_EXCEEDED, RpcMethod, reset_status, why_reset
from trivium.frontends.h2.stream_call import Stream
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind

_LATE = RpcAnswer(code=DEADLINE_EXCEEDED, details="Deadline Exceeded")
_END = None
_SLACK = 32 * 1024
"""Bytes of responses that may wait for the next turn without holding up the stream."""


class StreamingCall:
    """A call whose answer has several messages. The client of a server stream sends one."""

    def __init__(self, place: CallConnection, channel: Channel, head: RpcHead, method: RpcMethod) -> None:
        loop = asyncio.get_running_loop()
        self._place = place
        self._loop = loop
        self._channel = channel
        self._head = head
        self._is_single = method.kind is RpcKind.SERVER_STREAM
        self._has_request = False
        self._began = loop.time()
        self._messages: deque[bytes | None] = deque()
        self._reader: asyncio.Future[None] | None = None  # waits for a message
        self._writer: asyncio.Future[None] | None = None  # waits until all has been sent
        self._said: RpcAnswer | None = None  # the end, where the stream did not say it
        self._is_gone = False  # by the client or the server
        self._stream = Stream(place, method, self._call, self._read, self._write)
        place.site.enter(self._stream)
        self._task: asyncio.Task[RpcAnswer] | None
        self._task = loop.create_task(self._stream.run(), name=f"gRPC {head.method}")
        self._task.add_done_callback(self._on_over)
        self._timer = None if head.timeout is None else loop.call_later(head.timeout, self._on_deadline)

    def on_message(self, message: bytes) -> None:
        if self._is_single and self._has_request:
            self._channel.give_back(len(message))  # ignored, as grpcio does
            return
        self._has_request = True
        self._channel.kept += len(message)
        self._push(message)

    def on_end(self) -> None:
        self._push(_END)

    def on_sent(self) -> None:
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    def on_refused(self, answer: RpcAnswer) -> None:
        self._said = answer
        self._cancel()

    def on_reset(self) -> None:
        self._is_gone = True
        self._cancel()

    def abort(self, answer: RpcAnswer) -> None:
        """The server cannot wait any longer."""
        self._is_gone = True
        self._channel.end(answer.code, answer.details)
        self._said = answer
        self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _on_deadline(self) -> None:
        self._channel.end(_LATE.code, _LATE.details)
        self.on_refused(_LATE)

    def _call(self) -> RpcCall:
        head = self._head
        timeout = head.timeout
        if timeout is not None:
            timeout = max(timeout - (self._loop.time() - self._began), 0.0)
        return RpcCall(head.method, self._place.site.without_key(head.metadata), timeout)

    def _push(self, message: bytes | None) -> None:
        self._messages.append(message)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def _read(self) -> bytes | None:
        while not self._messages:
            self._reader = self._loop.create_future()
            await self._reader
        message = self._messages[0]
        if message is not _END:
            self._messages.popleft()
            self._channel.kept -= len(message)
            self._channel.give_back(len(message))  # who reads it books it at once
        return message

    async def _write(self, message: bytes) -> None:
        self._channel.send(message)
        if self._channel.unsent > _SLACK:
            self._writer = self._loop.create_future()
            await self._writer

    def _on_over(self, task: asyncio.Task[RpcAnswer]) -> None:
        """Also where it was cancelled before its first step. A task that was cancelled holds the frames of its last
        step, and they the call.
        """
        self._task = None
        if self._timer is not None:
            self._timer.cancel()
        said, is_answered = self._said, not self._is_gone
        if task.cancelled():
            is_answered &= said is not None
        elif (error := task.exception()) is not None:
            said = self._place.site.refuse(
                self._call(), error if isinstance(error, Exception) else LookupError()
            )
        elif said is None and is_answered:
            said = task.result()
        if said is None:
            code = reset_status(why_reset(self._head.timeout, self._loop.time() - self._began))
        else:
            code = said.code
            self._channel.end(code, said.details)
        self._place.leave(self._stream, code, is_answered)
        self._messages.clear()
        del self._stream  # which holds this call
