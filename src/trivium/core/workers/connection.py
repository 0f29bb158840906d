"""The connection to one worker: frames that go out, frames that come in, and what is kept for them.

Lives on the loop. Frames of one turn of the loop leave in one write. What batches mean is `process`'s business.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from trivium.core.clock import CallLast
from trivium.core.workers.arena import ArenaLease
from trivium.core.workers.wire import ProtocolError
from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Check
from trivium.types.operations import Infer
from trivium.types.running import ItemId
from trivium_child import frames

WRITE_LIMIT = 2**26
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
        transport.set_write_buffer_limits(WRITE_LIMIT)

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


LEASE_FRAMES = frames.KEPT, frames.FREED


class RetainedLeases:
    """Of one worker. `copies` are leases by item, `kept` by the worker's own numbers of blocks."""

    def __init__(self, copies: dict[ItemId, Lease]) -> None:
        self.copies = copies
        self.kept: dict[int, Lease] = {}

    def take(self, kind: int, body: memoryview, items: Mapping[ItemId, Infer]) -> None:
        """A frame of a worker that has these items: a block outlives one that is answered next, or is not kept any
        more. LookupError for an item or a block that it does not have; StructError for what is no such frame.
        """
        if kind == frames.FREED:
            for (number,) in frames.NUMBER.iter_unpack(body):
                self.kept.pop(number).release()
            return
        item, number = frames.KEPT_BODY.unpack(body)
        lease = self.copies.get(item) or items[item].payload.lease
        if not isinstance(lease, ArenaLease) or number in self.kept:
            raise LookupError(f"item {item} keeps block {number}, which cannot be")
        lease.hold()
        self.kept[number] = lease

    def forget(self, item: ItemId) -> None:
        """It has ended."""
        if self.copies and (copy := self.copies.pop(item, None)) is not None:
            copy.release()

    def close(self) -> None:
        """The worker is gone, and with it all that it had."""
        for leases in (self.copies, self.kept):
            for lease in leases.values():
                lease.release()
            leases.clear()


class FlowControl:
    """Of one worker. What is due goes out as one frame per item."""

    def __init__(self) -> None:
        self.due: dict[ItemId, int] = {}
        self.held: dict[ItemId, int] = {}  # parts that its receiver has not made room for yet

    @property
    def is_stopped(self) -> bool:
        """Has some item sent all that it may, because its receiver is full? Then its model may wait for that."""
        return any(count >= frames.WINDOW for count in self.held.values())

    def came(self, item: ItemId) -> None:
        """A part has come that is not its last."""
        self.due[item] = self.due.get(item, 0) + 1

    def hold(self, item: ItemId) -> None:
        """Its receiver is full."""
        self.held.setdefault(item, 0)

    def resume(self, item: ItemId) -> None:
        """Its receiver has room for all that has come."""
        count = self.held.pop(item, 0)
        if count:
            self.due[item] = self.due.get(item, 0) + count

    def forget(self, item: ItemId) -> None:
        """It has ended: nothing of it waits any more."""
        self.due.pop(item, None)
        self.held.pop(item, None)

    def write(self) -> list[bytes | memoryview]:
        """The frames for what is due and not held; they are due no more."""
        due, self.due = self.due, {}
        pieces: list[bytes | memoryview] = []
        for item, count in due.items():
            if item in self.held:
                self.held[item] += count
            else:
                pieces.append(frames.frame(frames.TAKEN, frames.TAKEN_BODY.pack(item, count)))
        return pieces


READINESS_FRAMES = frames.READY, frames.REFUSED, frames.CHECKED

Told = Callable[[str], None]


class ReadinessProbe:
    """`opened` is done when the worker can take batches, or fails with LOAD_FAILED, or WORKER_DIED."""

    def __init__(self, write: Callable[[list[bytes | memoryview]], None]) -> None:
        self._write = write
        self._waiting: list[Told] = []
        self._is_asked = False
        self.check: Check | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, kind: int, body: memoryview) -> None:
        """A frame of the worker. ProtocolError, or what `UNREADABLE` lists, for what is none of these."""
        told = frames.read(body)
        if kind == frames.CHECKED:
            if not self._is_asked:
                raise ProtocolError("an answer to what nobody has asked")
            self._is_asked = False
            self._tell(str(told["why"]))
        elif kind == frames.READY:
            self.check = self._ask if told["checks"] is True else None
            if not self.opened.done():
                self.opened.set_result(None)
        else:
            self._fail(Code.LOAD_FAILED, str(told["message"]))

    def close(self, code: Code, why: str) -> None:
        """The worker is gone, or was never there."""
        self._fail(code, why)
        self.check = None
        self._tell(why)

    def _ask(self, told: Told) -> Callable[[], None]:
        if not self._is_asked:
            self._is_asked = True
            self._write([frames.frame(frames.CHECK)])
        self._waiting.append(told)
        return partial(self._leave, told)

    def _leave(self, told: Told) -> None:
        if told in self._waiting:
            self._waiting.remove(told)

    def _tell(self, why: str) -> None:
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            told(why)

    def _fail(self, code: Code, why: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(ServeError(code, why))
