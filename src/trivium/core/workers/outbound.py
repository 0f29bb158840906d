"""The way to one worker: the frames of one turn of the loop leave in one write, as long as somebody is there."""

import asyncio

from trivium.core.clock import CallLast

LIMIT = 2**26
"""Bytes that the transport takes before it calls itself full; nobody here would wait for it."""


class FrameWriter:
    """Used on the loop only."""

    def __init__(self, call_last: CallLast) -> None:
        self._call_last = call_last
        self._out: list[bytes | memoryview] = []
        self._transport: asyncio.WriteTransport | None = None

    @property
    def is_connected(self) -> bool:
        """Is there a connection?"""
        return self._transport is not None

    def connected(self, transport: asyncio.WriteTransport) -> None:
        """What is written from now on goes there."""
        self._transport = transport
        transport.set_write_buffer_limits(LIMIT)

    def lost(self) -> None:
        """Nobody is there any more; what is written is thrown away."""
        self._transport = None

    def abort(self) -> None:
        """Close the connection, if there is one, at once; what has not left is lost."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def write(self, pieces: list[bytes | memoryview]) -> None:
        """Frames, or their pieces, at the end of this turn of the loop. The list is not the caller's any more."""
        if self._out:
            self._out += pieces
        else:
            self._out = pieces
            self._call_last(self._flush)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None:
            self._transport.write(b"".join(out))
