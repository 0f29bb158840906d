"""One request on the side of the program that runs the application: what it receives goes to Trivium's loop, and what
that answers is sent from here.

The two are loops of two threads, which hand each other values: nothing here waits for a lock that the other holds for
long. Knows no protocol and no limit.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

import msgspec

from trivium.types.errors import ServeError, anew, frameless

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PIECE = 256 * 1024
"""Bytes of an answer that are sent at a time: as many as are said to have left at once."""


class AnswerStart(msgspec.Struct, frozen=True, gc=False):
    """The head of an answer."""

    status: int
    headers: list[tuple[bytes, bytes]]


class AnswerPiece(msgspec.Struct, frozen=True, gc=False):
    """Some of an answer's body, of `size` bytes; nothing follows the `final` one."""

    buffers: tuple[memoryview, ...]
    size: int
    final: bool


class CallEnd(msgspec.Struct, frozen=True, gc=False):
    """Nothing is sent any more: the client has left, or an answer that has begun breaks off for this reason."""

    why: Exception | None


Step = AnswerStart | AnswerPiece | CallEnd


class CalledConnection(Protocol):
    """Hears of a request from its caller. Every method is called on Trivium's loop."""

    def begin(self, first: bytes | None, is_last: bool) -> None:
        """The head is there, and perhaps the first piece of its body."""
        ...

    def take(self, piece: bytes, is_last: bool) -> None:
        """A piece of the body has come."""
        ...

    def taken(self, size: int, is_last: bool) -> None:
        """So many bytes of the answer were sent; with the last of them it is over."""
        ...

    def left(self) -> None:
        """The client has left, or is served: nothing is sent any more."""
        ...


class AsgiCaller:
    """Runs one request. Made on the loop of the program that runs the application; what `post` does runs a function on
    Trivium's, if that still runs.
    """

    def __init__(self, post: Callable[..., None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._post = post
        self._steps: deque[Step] = deque()
        self._woken = asyncio.Event()
        self._may_read = asyncio.Event()
        self._lock = threading.Lock()
        self._is_broken = False

    # -- called on Trivium's loop ----------------------------------------------------------------------

    def give(self, step: Step) -> bool:
        """Have this sent next. False where nobody can send it any more."""
        self._steps.append(step)
        return self._call(self._woken.set)

    def read_on(self) -> None:
        """The next piece of the body is wanted."""
        self._call(self._may_read.set)

    def break_off(self, why: Exception | None) -> None:
        """Send nothing more. From here on the buffers that were given are not read any more."""
        with self._lock:
            self._is_broken = True
        self.give(CallEnd(why))

    def _call(self, work: Callable[[], object]) -> bool:
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:  # that loop is closed
            return False
        return True

    # -- on the loop of the program --------------------------------------------------------------------

    async def run(
        self, connection: CalledConnection, receive: Receive, send: Send, peeks: bool, seconds: float
    ) -> None:
        """Serve the request. With `peeks` it is seen first, for so many seconds, whether it has a body at all."""
        reading: asyncio.Task[None] | None = None
        try:
            first = await _first(receive, seconds) if peeks else None
            if first is not None and first["type"] == "http.disconnect":
                return
            piece = None if first is None else bytes(first.get("body") or b"")
            self._post(connection.begin, piece, first is not None and not first.get("more_body"))
            reading = asyncio.ensure_future(self._read(connection, receive))
            await self._send_all(connection, send)
        finally:
            with contextlib.suppress(ServeError):  # nobody is there any more whom that concerns
                self._post(connection.left)
            if reading is not None:
                reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({reading})

    async def _read(self, connection: CalledConnection, receive: Receive) -> None:
        """Hand on what comes: pieces of the body as they are wanted, then that the client has left."""
        try:
            while True:
                await self._may_read.wait()
                message = await receive()
                if message["type"] == "http.disconnect":
                    self.break_off(None)
                    return
                is_last = not message.get("more_body")
                if not is_last:
                    self._may_read.clear()
                self._post(connection.take, bytes(message.get("body") or b""), is_last)
        except Exception as error:  # of the program's own, such as a body beyond a limit that it has
            self.break_off(frameless(error))

    async def _send_all(self, connection: CalledConnection, send: Send) -> None:
        while True:
            while not self._steps:
                self._woken.clear()
                if not self._steps:
                    await self._woken.wait()
            step = self._steps.popleft()
            if isinstance(step, CallEnd) or self._is_broken:
                why = step.why if isinstance(step, CallEnd) else None
                if why is not None:
                    raise anew(
                        why
                    )  # the server of the program cuts the connection: the client sees that it broke off
                return
            try:
                if isinstance(step, AnswerStart):
                    start = {"type": "http.response.start", "status": step.status, "headers": step.headers}
                    await send(start)
                elif await self._send_piece(connection, send, step):
                    return
            except OSError:  # since ASGI 2.4: the client has left
                return

    async def _send_piece(self, connection: CalledConnection, send: Send, step: AnswerPiece) -> bool:
        """Send a piece, in smaller ones where it is large; returns whether that was the last."""
        left = step.size
        for buffer in step.buffers:
            for begin in range(0, len(buffer), PIECE):
                with self._lock:
                    if self._is_broken:
                        return False
                    data = bytes(buffer[begin : begin + PIECE])
                left -= len(data)
                is_last = step.final and not left
                await send({"type": "http.response.body", "body": data, "more_body": not is_last})
                self._post(connection.taken, len(data), is_last)
        if step.final and not step.size:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            self._post(connection.taken, 0, True)
        return step.final


async def _first(receive: Receive, seconds: float) -> Message | None:
    """Return the first message of a request; None where it does not come in time, which is a body that comes late."""
    waiting = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({waiting}, timeout=seconds)
        return waiting.result() if waiting.done() else None
    finally:
        waiting.cancel()
