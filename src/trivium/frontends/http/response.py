"""Makes the buffers that go out from an `HttpAnswer`, by RFC 9112: status line, fields, length or chunks.

Content-Length, Transfer-Encoding and Connection are written here and only here; the functions are pure.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from trivium.core.unread_answers import UnreadAnswers
from trivium.frontends.http.exchange import Exchange
from trivium.frontends.http.request import RequestBody
from trivium.frontends.limits import SMALL_BODY, HttpLimits
from trivium.types.wire import HttpAnswer

Buffers = list[bytes | memoryview]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = (
    b"Connection: keep-alive\r\n"  # for HTTP/1.0, where it is not the default, and as other servers have it
)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_OK = _STATUS_LINES[200]
_BODILESS = (204, 304)  # RFC 9110 8.6 and 15.4.5: neither a body nor, for 204, a length


def status_line(status: int, reason: bytes | None = None) -> bytes:
    """Write a status line with the standard phrase, if there is one, or another: what is no printable ASCII in it
    becomes '?'.
    """
    if reason is None:
        return _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"HTTP/1.1 %d %s\r\n" % (status, bytes(c if 32 <= c < 127 else 63 for c in reason))


_lengths: dict[int, bytes] = {}


def _length_line(size: int) -> bytes:
    line = _lengths.get(size)
    if line is None:
        line = b"Content-Length: %d\r\n" % size
        if len(_lengths) < 4096:
            _lengths[size] = line
    return line


def whole(answer: HttpAnswer, connection: bytes, is_head: bool) -> Buffers:
    """An answer of one part. `connection` is one of the lines above, or empty."""
    status, reason = answer.status, answer.reason
    if status == 200 and reason is None and not is_head:
        buffers: Buffers = [_OK, answer.fields, _length_line(answer.size), connection, b"\r\n"]
        for buffer in answer.buffers:  # a star would be one means of the language more, which is in no cache
            buffers.append(buffer)
        return buffers
    start = status_line(status, reason)
    if status in _BODILESS:
        return [start, answer.fields, connection, b"\r\n"]
    length = _length_line(answer.size)
    if is_head:
        return [start, answer.fields, length, connection, b"\r\n"]
    return [start, answer.fields, length, connection, b"\r\n", *answer.buffers]


def opening(answer: HttpAnswer, framing: bytes) -> Buffers:
    """The head of an answer in parts; `framing` is CHUNKED, or CLOSE where the end of the connection ends it."""
    return [status_line(answer.status, answer.reason), answer.fields, framing, b"\r\n"]


def part(answer: HttpAnswer, is_chunked: bool) -> Buffers:
    """One part's body. An empty one writes nothing: an empty chunk would end the answer."""
    buffers: Buffers = []
    if answer.size and is_chunked:
        buffers += (b"%x\r\n" % answer.size, *answer.buffers, b"\r\n")
    elif answer.size:
        buffers += answer.buffers
    if answer.final and is_chunked:
        buffers.append(LAST_CHUNK)
    return buffers


class Outbox:
    """The writing side of one connection: answers to its transport, and what waits until they have left.

    Decides how an answer is framed and whether its client reads fast enough: while the transport holds as much as it
    should, whoever makes the parts of an answer is held back. A transport does not copy the buffers it is given, so
    that a lease is released only once the write buffer is empty. `is_paused`: the transport holds as much as it
    should; nothing new is begun meanwhile.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        limits: HttpLimits,
        unread: UnreadAnswers,
        on_slow: Callable[[], None],
    ) -> None:
        """`on_slow` is called where the client has read nothing for longer than others, and memory is wanted."""
        self.is_paused = False
        self.give_up = on_slow
        self._unread = unread
        self._transport = transport
        self._limits = limits
        self._fixed = limits.fields
        self._staying = KEEP_ALIVE if limits.says_keep_alive else b""
        self._sending: list[Exchange] = []  # answered, with leases
        self._backlog = 0  # bytes unsent when last looked at
        self._is_watched = False
        self._begun: Exchange | None = None  # whose answer in parts has begun, and not ended

    def write(self, exchange: Exchange, answer: HttpAnswer, is_last: bool) -> None:
        """Write an answer or one part of it. `is_last`: the connection closes behind it."""
        if answer.final and not exchange.is_streaming:
            connection = CLOSE if is_last else self._staying if exchange.request.is_http11 else KEEP_ALIVE
            if self._fixed:
                connection = self._fixed + connection
            buffers = whole(answer, connection, exchange.request.is_head)
        else:
            buffers = self._part(exchange, answer, is_last)
        if answer.size <= SMALL_BODY:
            self._transport.write(b"".join(buffers))
        else:
            self._transport.writelines(buffers)
        if self.is_paused:
            self._unread.note(self, self._transport.get_write_buffer_size())
            if not answer.final:
                self._hold(exchange)

    def _part(self, exchange: Exchange, answer: HttpAnswer, is_last: bool) -> Buffers:
        buffers: Buffers = []
        is_chunked = exchange.request.is_http11
        if not exchange.is_streaming:
            exchange.is_streaming = True
            exchange.request.keeps_alive &= is_chunked  # in HTTP/1.0 only the end of the connection ends it
            closing = self._staying if exchange.request.keeps_alive and not is_last else CLOSE
            buffers = opening(answer, self._fixed + (CHUNKED if is_chunked else b"") + closing)
        if not exchange.request.is_head:
            buffers += part(answer, is_chunked)
        self._backlog += answer.size  # it cannot have left yet
        self._begun = None if answer.final else exchange
        return buffers

    @staticmethod
    def _hold(exchange: Exchange) -> None:
        if exchange.ticket is not None:
            exchange.ticket.hold()

    def write_continue(self) -> None:
        """RFC 9110 10.1.1: the client may send its body."""
        self._transport.write(CONTINUE)

    def watch_closely(self) -> None:
        """This client's requests are large: from now on the transport tells when its buffer is empty."""
        if not self._is_watched:
            self._is_watched = True
            # Over TLS (which has no `write_eof`) a buffer is full from `high` on, else beyond it: 0 would be always.
            self._transport.set_write_buffer_limits(high=0 if self._transport.can_write_eof() else 1)

    def release_when_sent(self, exchange: Exchange, intake: RequestBody) -> None:
        """Its final answer has been written, and may view its request, if that was received in place."""
        if intake.lease is not None and self._transport.get_write_buffer_size():
            self._sending.append(exchange)
        else:
            exchange.release()

    def pause(self) -> None:
        """The transport asks for it."""
        self.is_paused = True
        self._backlog = self._transport.get_write_buffer_size()
        self._unread.note(self, self._backlog)
        if self._begun is not None:
            self._hold(self._begun)

    def resume(self) -> None:
        """The transport has sent enough; everything, where it is watched closely."""
        self.is_paused = False
        self.release()
        if self._begun is not None and self._begun.ticket is not None:
            self._begun.ticket.resume()

    def release(self) -> None:
        """Nothing that was given to the transport is read any more."""
        self._unread.note(self, 0)
        while self._sending:
            self._sending.pop().release()

    def forget(self) -> None:
        """The connection is gone: this breaks the cycle with it."""
        del self.give_up

    def is_overfull(self) -> bool:
        """An answer in parts comes faster than its client reads, and has come too far."""
        return self.is_paused and self._transport.get_write_buffer_size() > self._limits.unsent_bytes

    def has_progressed(self) -> bool:
        """Has enough left since the last call?"""
        unsent = self._transport.get_write_buffer_size()
        progress, self._backlog = self._backlog - unsent, unsent
        return unsent > 0 and progress >= self._limits.slowest_rate
