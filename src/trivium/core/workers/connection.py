"""The connection to one worker: frames that go out, frames that come in, and what is kept for them.

Lives on the loop. Frames of one turn of the loop leave in one write. What batches mean is `process`'s business.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import Protocol, cast

from trivium.core.clock import CallLast
from trivium.core.workers.arena import ArenaLease
from trivium.core.workers.wire import UNREADABLE, ProtocolError
from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Check
from trivium.types.observing import DeathCause
from trivium.types.operations import Infer
from trivium.types.running import MOST_IN_FLIGHT, Credit, Event, ItemId
from trivium_worker.wire import frames
from trivium_worker.wire.window import BYTES

CREDIT = Credit(1)
DONE = frames.DONE
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
        """Send there what is written from now on."""
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
    """Holds the leases of one worker. `copies` are leases by item, `kept` by the worker's own numbers of blocks."""

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
    """Sends the requests of one worker. What is due goes out as one frame per item."""

    def __init__(self) -> None:
        self.due: dict[ItemId, int] = {}
        self.held: dict[ItemId, int] = {}  # parts that its receiver has not made room for yet
        self._sizes: dict[ItemId, int] = {}  # bytes of those and of what is due

    @property
    def is_stopped(self) -> bool:
        """Has some item sent all that it may, because its receiver is full? Then its model may wait for that."""
        return any(map(self.has_stopped, self.held))

    def has_stopped(self, item: ItemId) -> bool:
        """Has this item sent all that it may, parts or bytes of them, because its receiver is full?"""
        return item in self.held and (self.held[item] >= frames.WINDOW or self._sizes.get(item, 0) >= BYTES)

    def came(self, item: ItemId, size: int) -> None:
        """A part of so many bytes has come that is not its last."""
        self.due[item] = self.due.get(item, 0) + 1
        self._sizes[item] = self._sizes.get(item, 0) + size

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
        self._sizes.pop(item, None)

    def write(self) -> list[bytes | memoryview]:
        """The frames for what is due and not held; they are due no more."""
        due, self.due = self.due, {}
        pieces: list[bytes | memoryview] = []
        for item, count in due.items():
            if item in self.held:
                self.held[item] += count
            else:
                self._sizes.pop(item, None)
                pieces.append(frames.frame(frames.TAKEN, frames.TAKEN_BODY.pack(item, count)))
        return pieces


READINESS_FRAMES = frames.READY, frames.REFUSED, frames.CHECKED

Told = Callable[[str], None]


class ReadinessProbe:
    """`opened` is done when the worker can take batches, or fails with LOAD_FAILED, WORKER_DIED or OUT_OF_MEMORY."""

    def __init__(self, write: Callable[[list[bytes | memoryview]], None]) -> None:
        self._write = write
        self._waiting: list[Told] = []
        self._is_asked = False
        self.in_flight = 0  # items that it takes at once; 0: a batch at a time
        self.steps = False
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
                self.in_flight = _checked_in_flight(told.get("in_flight", 0))
                self.steps = told.get("steps") is True
                self.opened.set_result(None)
        else:
            lacks_memory = told.get("code") == Code.OUT_OF_MEMORY.value
            self._fail(Code.OUT_OF_MEMORY if lacks_memory else Code.LOAD_FAILED, str(told["message"]))

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


def _checked_in_flight(told: object) -> int:
    if type(told) is not int or not 0 <= told <= MOST_IN_FLIGHT:
        raise ProtocolError(f"it asks for {told!r} items at once, and may for 0 to {MOST_IN_FLIGHT}")
    return told


class FrameOwner(Protocol):
    """The instance whose frames a connection carries."""

    def done(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """The end of a batch has come. Raises what `UNREADABLE` lists."""

    def part(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """A part of an answer has come. Raises what `UNREADABLE` lists."""

    def credit(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """One of many items has ended. Raises what `UNREADABLE` lists."""

    def stepped(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """A step is over. Raises what `UNREADABLE` lists."""

    def upcall(self, kind: int, body: memoryview) -> None:
        """User code asks something of the server. Raises what `UNREADABLE` lists."""

    def received(self, events: list[Event]) -> bool:
        """All frames that came at once have been read. Returns whether the events were passed on."""

    def kill(self, why: str, cause: DeathCause | None = None) -> None:
        """The worker must end; `cause` is by what it is lost."""

    def disconnected(self) -> None:
        """There is no connection any more."""


class WorkerConnection(asyncio.Protocol):
    """The frames of one worker, both ways, and the leases, receipts and readiness that they carry.

    `items` are the requests that the worker has, and `copies` the leases of their copies.
    """

    def __init__(
        self,
        owner: FrameOwner,
        items: Mapping[ItemId, Infer],
        copies: dict[ItemId, Lease],
        call_last: CallLast,
    ) -> None:
        self._owner = owner
        self._items = items
        self._outbound = FrameWriter(call_last)
        self.write = self._outbound.write  # frames to the worker, at the end of this turn of the loop
        self.leases = RetainedLeases(copies)
        self.receipts = FlowControl()
        self.probe = ReadinessProbe(self.write)
        self._kept = bytearray()
        self.heard_at = monotonic()

    @property
    def is_connected(self) -> bool:
        """Is there a connection?"""
        return self._outbound.is_connected

    def abort(self) -> None:
        """Close the connection at once; what has not left is lost."""
        self._outbound.abort()

    def send_receipts(self) -> None:
        """Send the receipts that are due."""
        if self.receipts.due:
            self.write(self.receipts.write())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is ours."""
        self._outbound.connected(cast(asyncio.WriteTransport, transport))  # uvloop's is none by its class

    def connection_lost(self, error: Exception | None) -> None:
        """The worker has ended, or closed its socket, which comes to the same."""
        self._outbound.lost()
        self._owner.disconnected()

    def data_received(self, data: bytes) -> None:
        """Whole frames are dealt with; of one that is not whole the bytes are kept."""
        self.heard_at = monotonic()
        if self._kept:
            self._kept += data
            if len(self._kept) < frames.wanted(self._kept, 0):
                return
            data = bytes(self._kept)
        events: list[Event] = []
        owner = self._owner
        try:
            found, used = frames.frames(data)
            done = 0
            for kind, at, end in found:
                if kind == DONE:
                    owner.done(data, at, end, events)
                    done += 1
                else:
                    self._take(kind, data, at, end, events)
            if done:
                events.append(CREDIT if done == 1 else Credit(done))
            if self._kept or used < len(data):
                self._kept = bytearray(data[used:])
        except UNREADABLE as error:
            owner.kill(f"it sent what cannot be understood ({error})", DeathCause.CONNECTION)
            self._outbound.abort()  # nothing that follows can be understood either
        if events and owner.received(events):
            self.send_receipts()  # after that, since whoever got a part may be full now

    def _take(self, kind: int, came: bytes, at: int, end: int, events: list[Event]) -> None:
        if kind == frames.PART:
            self._owner.part(came, at, end, events)
        elif kind == frames.CREDIT:
            self._owner.credit(came, at, end, events)
        elif kind == frames.STEP:
            self._owner.stepped(came, at, end, events)
        elif kind in READINESS_FRAMES:
            self.probe.take(kind, memoryview(came)[at:end])
        elif kind in LEASE_FRAMES:
            self.leases.take(kind, memoryview(came)[at:end], self._items)
        elif kind != frames.PONG:
            self._owner.upcall(kind, memoryview(came)[at:end])
