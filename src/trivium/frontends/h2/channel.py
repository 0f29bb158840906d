"""One stream of a connection as the call on it sees it: messages in, responses and a status out.

Source: RFC 9113, sections 5.1 and 8.1; "gRPC over HTTP2". Decides which frames an answer is, and when the client may
send more. The call owns what runs; the session owns the connection.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from trivium.codecs.compression import LEAST_BYTES, MOST_BYTES, deflate
from trivium.frontends.h2 import frames
from trivium.frontends.h2.flow import Bytes, Sender, SendFlow
from trivium.frontends.h2.frames import FLOW_CONTROL_ERROR, STREAM_CLOSED, StreamFault
from trivium.frontends.h2.messages import CallRefused, MessageReader, Packed
from trivium.frontends.h2.responses import (
    OPENING,
    PREFIX,
    before_answer,
    behind_answer,
    opening,
    refusal,
    trailers,
)
from trivium.frontends.h2.state import DEADLINE_EXCEEDED, INTERNAL, LAST_RESORT, RESOURCE_EXHAUSTED, GrpcState
from trivium.frontends.held import message_lease
from trivium.frontends.shares import AddressUse
from trivium.frontends.turns import Result
from trivium.types.buffers import Lease
from trivium.types.errors import ServeError, frameless
from trivium.types.wire import RpcAnswer

_log = logging.getLogger(__name__)

WINDOW = 4 * 2**20
"""Bytes that a client may send on a stream before it has to wait; grpcio's number."""

_SMALL = 16 * 1024
"""Bytes of an answer up to which it is one frame."""

NO_REQUEST = RpcAnswer(
    code=INTERNAL, details="The call ended without a request message, or in the middle of it. Send it whole."
)


UNREAD = RpcAnswer(
    code=RESOURCE_EXHAUSTED,
    details="The client takes its responses too slowly, and what it has not taken was dropped. Read faster, or ask for "
    "less at a time.",
)
LATE_MESSAGE = RpcAnswer(
    code=DEADLINE_EXCEEDED,
    details="The request message did not come in time. Send it faster, or in smaller messages.",
)


class ChannelListener(Protocol):
    """A call. Nothing follows `on_end` but `on_reset` and `on_sent`, and nothing `on_reset`."""

    def on_message(self, message: bytes) -> None:
        """A whole request. Its bytes stay booked until the channel's `give_back`, or its end."""
        ...

    def on_end(self) -> None:
        """The client has sent all."""
        ...

    def on_sent(self) -> None:
        """Hear that what was to be sent has left for the transport."""
        ...

    def on_refused(self, answer: RpcAnswer) -> None:
        """Hear that what the client sent cannot be taken; the call has been ended with `answer`."""
        ...

    def on_reset(self) -> None:
        """The client has cancelled the call, or is gone."""
        ...


class ChannelConnection(Protocol):
    """The connection as its channels use it."""

    site: GrpcState
    use: AddressUse
    flow: SendFlow
    is_choked: bool

    def put(self, *buffers: Bytes) -> None:
        """Write, at the end of this turn."""
        ...

    def answered(self, channel: "Channel") -> None:
        """Its last frame has been put: forget it."""
        ...

    def elsewhere(self, work: Callable[[], Result], done: Callable[[Result | Exception], None]) -> None:
        """Do it somewhere else than on the loop; `done` is called on it, with what became of it."""
        ...

    def wake(self) -> None:
        """There may be something to send by the flow."""
        ...


class Channel(Sender):
    """Used on the loop only. `coding`: how responses are packed, empty for not. `kept`: bytes of messages that the
    call has been given and not begun with; of the window so much is not given back. `lease`: of a large message, which
    it holds until the answer has left.
    """

    __slots__ = (
        "_is_open",
        "_line",
        "_looked_at",
        "_missed_since",
        "_owed",
        "_room",
        "_sent_then",
        "_unread_since",
        "_waiting",
        "awaits_first",
        "coding",
        "is_half_closed",
        "is_over",
        "kept",
        "lease",
        "receiver",
        "requests",
    )

    def __init__(
        self,
        line: ChannelConnection,
        number: int,
        requests: MessageReader,
        coding: str,
        awaits_first: bool = True,
    ) -> None:
        """`awaits_first`: the call has one request, which has a time to come even if nothing of it has come."""
        super().__init__(number, line.flow.initial)
        self._line = line
        self._room = WINDOW
        self._owed = 0
        self._is_open = False  # the response's headers have been sent
        self.requests = requests
        self.awaits_first = awaits_first
        self._looked_at = -1  # the number of the message that was not whole at the last look
        self._missed_since = 0.0
        self._unread_since: float | None = None  # nearly nothing of what is unsent has left since
        self._sent_then = 0
        self.coding = coding
        self._waiting: deque[bytes | Packed | None] | None = None  # behind one that is being unpacked
        self.kept = 0
        self.lease: Lease | None = None
        self.is_half_closed = False  # the client has sent all
        self.is_over = False  # the call has been answered or cancelled
        self.receiver: ChannelListener | None = None

    # -- from the client -------------------------------------------------------------------------------

    def take(self, piece: memoryview, counted: int, ends: bool) -> None:
        """DATA; see `Hears.on_data`. StreamFault where it must not come."""
        if self.is_half_closed:
            raise StreamFault(self.number, STREAM_CLOSED, "DATA came behind the end of its stream")
        self._room -= counted
        self._owed += counted
        if self._room < 0:
            raise StreamFault(self.number, FLOW_CONTROL_ERROR, "DATA came beyond its window")
        self.is_half_closed = ends
        if self.is_over:
            return
        try:
            for message in self.requests.feed(piece):
                self._deliver(message)
        except (CallRefused, ServeError) as error:
            self._refuse(frameless(error))
        if ends:
            self.half_close()
        else:
            self.give_back(0)

    def half_close(self) -> None:
        """The client has sent all."""
        self.is_half_closed = True
        if self.is_over or self.receiver is None:
            return
        if self.requests.is_between_messages:
            self._deliver(None)
        else:
            self._refuse(CallRefused(NO_REQUEST))

    def _deliver(self, message: bytes | Packed | None) -> None:
        """Hand to the call, in order: a message, or (None) that there are no more."""
        if self._waiting is not None:
            self._waiting.append(message)
        elif self.receiver is None:
            return
        elif message is None:
            self.receiver.on_end()
        elif isinstance(message, Packed):
            self._waiting = deque()
            lease = self.lend(len(message.message))
            self._line.elsewhere(message.unpack, lambda result: self._on_unpacked(lease, result))
        else:
            self.receiver.on_message(message)

    def _on_unpacked(self, lease: Lease, result: bytes | Exception) -> None:
        lease.release()
        waiting, self._waiting = self._waiting, None
        if self.is_over or waiting is None:
            return
        if isinstance(result, Exception):
            self._refuse(result)
            return
        try:
            self.requests.book(len(result))
        except ServeError as error:
            self._refuse(frameless(error))
            return
        self._deliver(result)
        while waiting:
            self._deliver(waiting.popleft())
        self.give_back(0)

    def _refuse(self, error: Exception) -> None:
        """End the call, since what came cannot be taken."""
        if isinstance(error, CallRefused):
            answer = error.answer
        elif isinstance(error, ServeError):
            answer = RpcAnswer(code=RESOURCE_EXHAUSTED, details=error.message)
        else:
            _log.error("a message could not be unpacked", exc_info=error)
            answer = LAST_RESORT
        receiver = self.receiver
        if receiver is not None and not self.is_over:
            self.end(answer.code, answer.details)
            receiver.on_refused(answer)

    def end_if_late(self, now: float, seconds: float, rate: int) -> None:
        """End the call if a message has not come whole in so many seconds, plus its bytes so far / `rate`, since it was
        first missed by a call of this method.
        """
        requests = self.requests
        came = requests.came
        if self.is_over or not (came or (self.awaits_first and not requests.begun)):
            self._looked_at = -1
        elif requests.begun != self._looked_at:
            self._looked_at, self._missed_since = requests.begun, now
        elif now >= self._missed_since + seconds + came / rate:
            self._refuse(CallRefused(LATE_MESSAGE))

    def end_if_unread(self, now: float, seconds: float, rate: int) -> None:
        """End the call if less than `rate` bytes of what it has to send have left in so many seconds, since that was
        first seen by a call of this method.
        """
        if not self.unsent:
            self._unread_since = None
        elif self._unread_since is None or self.sent - self._sent_then >= rate:
            self._unread_since, self._sent_then = now, self.sent
        elif now >= self._unread_since + seconds:
            self._line.flow.drop(self)
            if self.is_over:  # its status would tell of a whole answer
                self._line.put(frames.reset(self.number, frames.CANCEL))
                self._line.answered(self)
            else:
                self._refuse(CallRefused(UNREAD))

    def lend(self, size: int) -> Lease:
        """Return the lease of a message of that size, which owns from now on what is booked for it."""
        self.requests.held -= size
        return message_lease(self._line.site, self._line.use, size)

    def give_back(self, size: int) -> None:
        """A message of `size` bytes is needed no more, or books itself; the client may send more."""
        if self.is_over:
            return  # `close` gives back all
        if size:
            self.requests.held -= size
            self._line.site.unreserve(size, self._line.use)
        room = 0 if self._waiting else self._owed - self.kept
        if room >= WINDOW // 2 and not self.is_half_closed:
            self._line.put(frames.window_update(self.number, room))
            self._room += room
            self._owed -= room

    # -- to the client ---------------------------------------------------------------------------------

    def answer(self, message: bytes) -> None:
        """The one response, and the end."""
        if self.is_over:
            return
        line = self._line
        flow = line.flow
        size = len(message) + PREFIX.size
        if (
            size > _SMALL
            or size > self.window
            or size > flow.window
            or flow.unsent
            or line.is_choked
            or self.coding
        ):
            self.send(message)
            self.end(0, "")
            return
        flow.window -= size
        self.is_over = True
        line.put(before_answer(self.number, len(message)), message, behind_answer(self.number))
        line.answered(self)

    def send(self, message: bytes) -> None:
        """One of several responses."""
        if self.is_over:
            return
        if not self._is_open:
            self._is_open = True
            self._line.put(
                frames.headers(self.number, opening(self.coding) if self.coding else OPENING, False)
            )
        packed = 0
        if self.coding and LEAST_BYTES <= len(message) <= MOST_BYTES:
            packed, message = 1, deflate((message,), self.coding)
        self._line.flow.put(self, PREFIX.pack(packed, len(message)), message)
        self._line.wake()

    def end(self, code: int, details: str) -> None:
        """The status, behind what is unsent."""
        if self.is_over:
            return
        self.is_over = True
        block = trailers(code, details) if self._is_open else refusal(code, details)
        tail = frames.headers(self.number, block, True)
        if self._line.flow.end(self, tail):
            self._line.put(tail)
            self._line.answered(self)

    def cut_short(self) -> None:
        """Send the status now, if it has been said: what is unsent in front of it is dropped."""
        if self.tail:
            tail = self.tail
            self._line.flow.drop(self)
            self._line.put(tail)
            self._line.answered(self)

    def on_sent(self) -> None:
        """Hear from the flow control that what was to be sent has left."""
        if self.is_over:
            self._line.answered(self)
        elif self.receiver is not None:
            self.receiver.on_sent()

    def close(self) -> None:
        """Hear from the session that nothing more comes or goes."""
        self.is_over = True
        self._line.flow.drop(self)
        self._line.site.unreserve(self.requests.held, self._line.use)
        self.requests.held = 0
        self.receiver = None
        lease, self.lease = self.lease, None
        if lease is not None:
            lease.release()
