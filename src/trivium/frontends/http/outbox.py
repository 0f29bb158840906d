"""The writing side of one connection: answers to its transport, and what waits until they have left.

Decides how an answer is framed and whether its client reads fast enough: while the transport holds as much as it
should, whoever makes the parts of an answer is held back. A transport does not copy the buffers it is given, so that a
lease is released only once the write buffer is empty.
"""

import asyncio

from trivium.frontends.http.exchange import Exchange
from trivium.frontends.http.request_body import RequestBody
from trivium.frontends.http.response import (
    CHUNKED,
    CLOSE,
    CONTINUE,
    KEEP_ALIVE,
    Buffers,
    opening,
    part,
    whole,
)
from trivium.frontends.limits import SMALL_BODY, HttpLimits
from trivium.types.wire import HttpAnswer


class Outbox:
    """`is_paused`: the transport holds as much as it should; nothing new is begun meanwhile."""

    def __init__(self, transport: asyncio.Transport, limits: HttpLimits) -> None:
        self.is_paused = False
        self._transport = transport
        self._limits = limits
        self._sending: list[Exchange] = []  # answered, with leases
        self._backlog = 0  # bytes unsent when last looked at
        self._is_watched = False
        self._begun: Exchange | None = None  # whose answer in parts has begun, and not ended

    def write(self, exchange: Exchange, answer: HttpAnswer, is_last: bool) -> None:
        """Write an answer or one part of it. `is_last`: the connection closes behind it."""
        if answer.final and not exchange.is_streaming:
            connection = CLOSE if is_last else b"" if exchange.is_http11 else KEEP_ALIVE
            buffers = whole(answer, connection, exchange.is_head)
        else:
            buffers = self._part(exchange, answer, is_last)
        if answer.size <= SMALL_BODY:
            self._transport.write(b"".join(buffers))
        else:
            self._transport.writelines(buffers)
        if self.is_paused and not answer.final:
            self._hold(exchange)

    def _part(self, exchange: Exchange, answer: HttpAnswer, is_last: bool) -> Buffers:
        buffers: Buffers = []
        is_chunked = exchange.is_http11
        if not exchange.is_streaming:
            exchange.is_streaming = True
            exchange.keeps_alive &= is_chunked  # in HTTP/1.0 only the end of the connection ends it
            closing = b"" if exchange.keeps_alive and not is_last else CLOSE
            buffers = opening(answer, (CHUNKED if is_chunked else b"") + closing)
        if not exchange.is_head:
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
            self._transport.set_write_buffer_limits(high=0)

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
        while self._sending:
            self._sending.pop().release()

    def is_overfull(self) -> bool:
        """An answer in parts comes faster than its client reads, and has come too far."""
        return self.is_paused and self._transport.get_write_buffer_size() > self._limits.unsent_bytes

    def has_progressed(self) -> bool:
        """Has enough left since the last call?"""
        unsent = self._transport.get_write_buffer_size()
        progress, self._backlog = self._backlog - unsent, unsent
        return unsent > 0 and progress >= self._limits.slowest_rate
