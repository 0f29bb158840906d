"""A gRPC stream: several requests in work at once, their responses interleaved as they come.

Decides when a request is read, when a response is written, and when the stream ends; knows no frames, and is given
the functions that read and write a message. One reader, one writer; between them a bounded list. While the
client takes less than comes, whoever makes the responses of this stream is held back, and no request is read.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

from trivium.frontends.h2.call import COSTLY_BYTES, CallConnection, DecodedCall
from trivium.frontends.h2.channel import NO_REQUEST
from trivium.frontends.h2.state import (
    ANSWERED,
    CANCELLED,
    GOING_DOWN,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    ActiveCall,
    RpcMethod,
    why_reset,
)
from trivium.frontends.held import message_lease, submit
from trivium.types.buffers import Lease
from trivium.types.errors import ServeError, anew, frameless, noted
from trivium.types.interfaces import RpcEncoder, Ticket
from trivium.types.operations import ResponsePart
from trivium.types.wire import CostlyRpcAnswer, RpcAnswer, RpcCall, RpcKind

_OK = RpcAnswer()
FULL, HALF = 2**16, 2**15
"""Bytes of unsent responses from which on those who make them are held, and down to which they stay so."""


class Stream(ActiveCall):
    """One call. `read()` gives the next request message, None at their end; `write(message)` returns when the
    client can take more. `make_call()` describes the call as it is now. A server stream has one request, and
    an end without it is an error. Times are seconds of the loop's clock.
    """

    def __init__(
        self,
        place: CallConnection,
        method: RpcMethod,
        make_call: Callable[[], RpcCall],
        read: Callable[[], Awaitable[bytes | None]],
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._now = asyncio.get_running_loop().time
        call = make_call()
        super().__init__(call.method, place.peer, self._now())
        self._timeout = call.timeout
        self._place = place
        self._site = place.site
        self._use = place.use
        self._protocol = method.protocol
        self._is_single = method.kind is RpcKind.SERVER_STREAM
        self._make_call = make_call
        self._read_message = read
        self._write_message = write
        self._numbers = itertools.count()
        self._open: dict[int, Lease] = {}  # request in work -> what is booked for its message
        self._tickets: dict[int, Ticket] = {}
        self._behind: dict[
            int, list[ResponsePart]
        ] = {}  # parts of it that wait for one to be written elsewhere
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._is_full = False  # all that is in work is held
        self._is_read_out = False
        self._is_draining = False
        self._end: RpcAnswer | None = None  # a status that ends the stream behind what is unsent
        self._turn = asyncio.Event()  # something is to be written, or the stream may be over
        self._room = asyncio.Event()  # another request may be read

    async def run(self) -> RpcAnswer:
        """Serve until the client has sent all and been answered; the status to end the call with. Cancelled, it
        cancels all that runs. A stream that its metadata do not allow ends before its first message.
        """
        call = self._make_call()
        try:
            self._protocol.admit(call)
        except Exception as error:
            return self._site.refuse(call, noted(error))
        reader = asyncio.ensure_future(self._read())
        try:
            await self._write()
            return self._end or _OK
        finally:
            reader.cancel()
            self._site.unread.note(self, 0)
            await asyncio.gather(reader, return_exceptions=True)
            self._cancel_all(why_reset(self._timeout, self._now() - self.began))

    def begin_drain(self) -> None:
        """Read no more requests; end when those in work are answered."""
        self._is_draining = True
        self._turn.set()

    # -- requests --------------------------------------------------------------------------------------

    async def _read(self) -> None:
        limit = self._site.limits.stream_requests
        try:
            while (message := await self._read_message()) is not None:
                if self._is_draining or self._end is not None:
                    break
                await self._begin(message)
                if self._is_single:
                    return
                while self._is_full or len(self._open) >= limit:
                    self._room.clear()
                    await self._room.wait()
            if self._is_single and message is None:
                self._stop(NO_REQUEST)
        finally:  # a call that cannot be read any further is at its end
            self._is_read_out = True
            self._turn.set()

    async def _begin(self, message: bytes) -> None:
        number = next(self._numbers)
        size = len(message)
        call = self._make_call()
        try:
            self._site.reserve(size, self._use)
        except ServeError as error:
            self._push(self._site.refuse(call, frameless(error)))
            return
        self._open[number] = lease = message_lease(self._site, self._use, size)
        try:
            if size > COSTLY_BYTES and self._protocol.is_costly(call, message):
                operation, encoder = await self._decode_elsewhere(call, message, lease)
            else:
                operation, encoder = self._protocol.decode(call, message)
            if number not in self._open:  # the stream has ended meanwhile
                return
            core, sink = self._site.core, partial(self._take, number, call, encoder)
            is_small = size <= COSTLY_BYTES
            ticket = core.submit(operation, sink) if is_small else submit(core, operation, sink, lease)
        except Exception as error:
            self._close(number)
            self._push(self._site.refuse(call, noted(error)))
            return
        if number in self._open:
            self._tickets[number] = ticket
            if not self._may_send(number):
                ticket.hold()
        else:
            ticket.cancel(ANSWERED)  # without effect where the core has said its last part

    async def _decode_elsewhere(self, call: RpcCall, message: bytes, lease: Lease) -> DecodedCall:
        done: asyncio.Future[DecodedCall | Exception] = asyncio.get_running_loop().create_future()

        def on_decoded(result: DecodedCall | Exception) -> None:
            lease.release()
            if not done.done():
                done.set_result(result)

        lease.hold()  # the stream may end while the thread reads it
        self._place.elsewhere(lambda: self._protocol.decode(call, message), on_decoded)
        result = await done
        if isinstance(result, Exception):
            raise anew(result)
        return result

    # -- responses -------------------------------------------------------------------------------------

    def _take(self, number: int, call: RpcCall, encoder: RpcEncoder, part: ResponsePart) -> None:
        """The sink of one request."""
        if number not in self._open:
            return
        if (behind := self._behind.get(number)) is not None:
            behind.append(part)
            return
        try:
            answer = encoder.encode(part)
        except Exception as error:
            answer = self._site.refuse(call, noted(error))
        if part.error is not None:
            self._site.note_cause(call, part.error, answer)
        if type(answer) is CostlyRpcAnswer:
            self._write_elsewhere(number, call, encoder, part, answer)
        else:
            self._say(number, part, answer)

    def _write_elsewhere(
        self, number: int, call: RpcCall, encoder: RpcEncoder, part: ResponsePart, answer: CostlyRpcAnswer
    ) -> None:
        """Meanwhile whoever makes further parts is held, and those that are on their way wait."""
        self._behind[number] = []
        if number in self._tickets:
            self._tickets[number].hold()
        lease = self._open[number]
        lease.hold()  # the stream may end while the thread reads what views it

        def written(result: RpcAnswer | Exception) -> None:
            lease.release()
            behind = self._behind.pop(number)
            if number in self._open:
                said = self._site.refuse(call, result) if isinstance(result, Exception) else result
                self._say(number, part, said)
            for later in behind:
                self._take(number, call, encoder, later)
            if number in self._tickets and self._may_send(number):
                self._tickets[number].resume()

        self._place.elsewhere(answer.write, written)

    def _may_send(self, number: int) -> bool:
        """May who makes the responses to that request go on?"""
        return not self._is_full and number not in self._behind

    def _say(self, number: int, part: ResponsePart, answer: RpcAnswer) -> None:
        if answer.final or part.final:
            ticket = self._tickets.get(number)
            self._close(number)
            if not part.final and ticket is not None:
                ticket.cancel(ANSWERED)
        self._push(answer)

    def _close(self, number: int) -> None:
        self._open.pop(number).release()
        self._tickets.pop(number, None)
        self._room.set()
        self._turn.set()

    def _push(self, answer: RpcAnswer) -> None:
        if answer.code:
            self._stop(answer)
            return
        if answer.message is None:
            return
        self._unsent.append(answer.message)
        self._unsent_bytes += len(answer.message)
        self._turn.set()
        if self._unsent_bytes > FULL:
            self._site.unread.note(self, self._unsent_bytes)
        if self._unsent_bytes > FULL and not self._is_full:
            self._is_full = True
            for ticket in self._tickets.values():
                ticket.hold()
        if self._unsent_bytes > self._site.limits.unsent_bytes and len(self._unsent) > 1:
            self.give_up()

    def give_up(self) -> None:
        """Responses come faster than the client reads, and have come too far. It hears that as soon as it has read
        what is on its way.
        """
        text = (
            f"The client has left {self._unsent_bytes} bytes of responses unread; the limit is "
            f"{self._site.limits.unsent_bytes}. Read faster, or ask for less at a time."
        )
        self._unsent.clear()
        self._unsent_bytes = 0
        self._site.unread.note(self, 0)
        self._stop(RpcAnswer(code=RESOURCE_EXHAUSTED, details=text))

    def _stop(self, end: RpcAnswer) -> None:
        if self._end is None:
            self._end = end
            self._cancel_all(CANCELLED)
            self._turn.set()

    async def _write(self) -> None:
        while True:
            while self._unsent:
                message = self._unsent.popleft()
                self._unsent_bytes -= len(message)
                self.sent += len(message)
                await self._write_message(message)
                if self._is_full and self._unsent_bytes <= HALF:
                    self._resume()
            if self._end is not None or (self._is_read_out and not self._open):
                return
            if self._is_draining and not self._open:
                self._stop(RpcAnswer(code=UNAVAILABLE, details=GOING_DOWN))
                return
            self._turn.clear()
            await self._turn.wait()

    def _resume(self) -> None:
        self._is_full = False
        self._site.unread.note(self, self._unsent_bytes)
        self._room.set()
        for number, ticket in list(self._tickets.items()):
            if self._may_send(number):
                ticket.resume()

    def _cancel_all(self, why: ServeError) -> None:
        tickets = list(self._tickets.values())
        for number in list(self._open):
            self._close(number)
        for ticket in tickets:
            ticket.cancel(why)
