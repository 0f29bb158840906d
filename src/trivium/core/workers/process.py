"""An instance that is a worker process: batches out as frames, outcomes in, and what becomes of it when it dies.

Lives on the loop. What user code had begun when the process died is told by the page of marks, which the
process writes and does not take with it. Watching over it (deadlines, memory, silence) is `watch`'s work.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
from collections import deque
from typing import cast

from trivium.core.workers import post_mortem
from trivium.core.workers.arena import Arena
from trivium.core.workers.output import Output
from trivium.core.workers.spawn import BEGUN_MARK, Spawned
from trivium.core.workers.upward import Upward
from trivium.core.workers.wire import AnswerReader, BatchWriter, Garbage
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Port
from trivium.types.operations import Infer
from trivium.types.running import Batch, Begun, Credit, Dead, Event, Executed, ItemId, Part
from trivium_child import frames

END_SECONDS = 10.0
"""For a worker that was told to stop; then SIGTERM, and after as long again as `TERM_SECONDS`, SIGKILL."""
TERM_SECONDS = 2.0
LINGER = 0.2
"""Seconds between the end of the process and that of its connection, which a process that it forked may keep open."""
CREDIT = Credit(1)
DONE = frames.DONE


class ProcessInstance(asyncio.Protocol):
    """Owns the process from the moment it has been spawned. `ready` is done when it can take batches, or fails."""

    def __init__(
        self, name: str, spawned: Spawned, arena: Arena, upward: Upward, log: logging.Logger
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._spawned = spawned
        self._writer = BatchWriter(arena)
        self._reader = AnswerReader()
        self._upward = upward
        self._log = log
        self._port: Port | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._kept = bytearray()
        self._out: list[bytes | memoryview] = []
        self._number = 0
        self._batches: deque[tuple[int, list[ItemId]]] = deque()
        self._items: dict[ItemId, Infer] = {}
        self._is_closing = False
        self._is_gone = False
        self._has_ended = False
        self._why = ""
        self._oom_kills = post_mortem.oom_kills()
        self._outputs = [
            Output(descriptor, f"{name} {stream}", level, log)
            for descriptor, stream, level in zip(
                spawned.outputs, ("stdout", "stderr"), (logging.INFO, logging.WARNING), strict=True
            )
        ]
        self.pid = spawned.process.pid
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.ended_items = 0
        self.busy_since: float | None = None
        self.heard_at = self._loop.time()
        upward.attach(self)
        self._pidfd = _open_pidfd(self.pid)
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._process_ended)

    # -- the instance's contract ---------------------------------------------------------------------------

    def attach(self, port: Port) -> None:
        """Where events go from now on."""
        self._port = port

    def start(self, batch: Batch) -> None:
        """Hand a batch over, with all others of this turn of the loop in one write."""
        self._number = number = self._number + 1
        items, held = batch.items, self._items
        self._batches.append((number, items))
        for item, operation in zip(items, batch.operations, strict=True):
            held[item] = operation
        if self.busy_since is None:
            self.busy_since = self._loop.time()
        if self._is_gone:
            return  # its death is on the way to the pool, and takes these items along
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += self._writer.write(number, batch)

    def cancel(self, item: ItemId) -> None:
        """Tell the worker, and give up the calls that the item makes."""
        if item in self._items:
            self._upward.abandon(item)
            self.write([frames.frame(frames.CANCEL, frames.NUMBER.pack(item))])

    def close(self) -> None:
        """Ask it to end after what it holds; it is made to if it does not."""
        if self._is_closing or self._is_gone:
            return
        self._is_closing = True
        self.write([frames.frame(frames.STOP)])
        self._loop.call_later(END_SECONDS, self._spawned.kill, signal.SIGTERM)
        self._loop.call_later(END_SECONDS + TERM_SECONDS, self._spawned.kill)

    def kill(self, why: str) -> None:
        """End it now; `why` goes into the post-mortem."""
        if not self._is_gone:
            self._why = self._why or why
            self._spawned.kill()

    def write(self, pieces: list[bytes | memoryview]) -> None:
        """Frames to the worker, at the end of this turn of the loop."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += pieces

    def operation(self, item: ItemId) -> Infer | None:
        """What the worker has in hand under that number."""
        return self._items.get(item)

    @property
    def oldest_is_begun(self) -> bool:
        """Has user code got the batch that was handed over first?"""
        return bool(self._batches) and self._spawned.marks[BEGUN_MARK] >= self._batches[0][0]

    def last_words(self) -> str:
        """The last lines on its standard error, for a sentence to end with; empty where there are none."""
        last = self._outputs[1].last
        return f" Its last words: {' / '.join(last)}" if last else ""

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and not self._is_gone:
            self._transport.write(b"".join(out))

    # -- from the worker -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is ours."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is none by its class
        self._transport.set_write_buffer_limits(2**26)

    def data_received(self, data: bytes) -> None:
        """Whole frames are dealt with; of one that is not whole the bytes are kept."""
        self.heard_at = self._loop.time()
        if self._kept:
            self._kept += data
            if len(self._kept) < frames.wanted(self._kept, 0):
                return
            data = bytes(self._kept)
        events: list[Event] = []
        try:
            found, used = frames.frames(data)
            for kind, at, end in found:
                if kind == DONE:
                    self._done(data, at, end, events)
                else:
                    self._take(kind, data, at, end, events)
            if self._kept or used < len(data):
                self._kept = bytearray(data[used:])
        except (ValueError, KeyError, TypeError) as error:
            self.kill(f"it sent what cannot be understood ({error})")
        if events and self._port is not None and not self._is_gone:
            self._port.deliver(events)

    def _take(self, kind: int, came: bytes, at: int, end: int, events: list[Event]) -> None:
        if kind == frames.PART:
            self._part(came, at, end, events)
        elif kind == frames.READY:
            if not self.ready.done():
                self.ready.set_result(None)
        elif kind == frames.REFUSED:
            told = frames.read(came[at:end])
            if not self.ready.done():
                self.ready.set_exception(ServeError(Code.LOAD_FAILED, str(told["message"])))
        elif kind != frames.PONG:
            self._upward.take(kind, memoryview(came)[at:end])

    def _done(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        number, items, outcomes, began, ended = self._reader.done(came, at, end)
        batches = self._batches
        if not batches or batches[0][0] != number:
            raise Garbage(f"the end of batch {number}, which was not its turn")
        batches.popleft()
        self.busy_since = self.heard_at if batches else None
        if items:
            held = self._items
            if self._writer.copies or self._upward.is_calling:
                for item in items:
                    self._forget(item)
            else:
                for item in items:
                    del held[item]
            events.append(Executed(items, outcomes, began, began, ended, ended))
            self.ended_items += len(items)
        events.append(CREDIT)

    def _part(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        item, outcome, is_final, parameters = self._reader.part(came, at, end)
        if item not in self._items:
            raise Garbage(f"a part of item {item}, which it does not have")
        if self.busy_since is not None:
            self.busy_since = self._loop.time()
        if is_final:
            self._forget(item)
            self.ended_items += 1
        else:
            self.write([frames.frame(frames.TAKEN, frames.TAKEN_BODY.pack(item, 1))])
        error = outcome if isinstance(outcome, ServeError) else None
        events.append(
            Part(item, None if isinstance(outcome, ServeError) else outcome, error, is_final, parameters)
        )

    def _forget(self, item: ItemId) -> None:
        if self._items.pop(item, None) is None:
            raise Garbage(f"the end of item {item}, which it does not have")
        copies = self._writer.copies
        if copies and (copy := copies.pop(item, None)) is not None:
            copy.release()
        self._upward.abandon(item)

    # -- the end -------------------------------------------------------------------------------------------

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended, or closed its socket, which comes to the same."""
        self._transport = None
        if self._has_ended:
            self._loop.call_soon(self._bury)
        else:
            self._loop.call_later(LINGER, self._cut_off)

    def _cut_off(self) -> None:
        """It lives on without a connection."""
        if not self._is_gone:
            self.kill("it had closed its connection to the server")
            self._bury()

    def _process_ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._has_ended = True
        if self._transport is None:
            self._bury()
        else:
            self._loop.call_later(LINGER, self._bury)

    def _bury(self) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        status = self._reap()
        if self._transport is not None:
            self._transport.abort()
        for output in self._outputs:
            output.close()
        last = list(self._outputs[1].last)
        memory = self._oom_kills, post_mortem.oom_kills()
        text = post_mortem.describe(self._name, self.pid, status, self._why, memory, last)
        expected = self._is_closing and not self._items and status == 0
        self._log.log(logging.DEBUG if expected else logging.ERROR, "%s", text)
        if not self.ready.done():
            self.ready.set_exception(ServeError(Code.LOAD_FAILED, text))
        self._upward.close()
        begun = self._spawned.marks[BEGUN_MARK]
        waiting = {item for number, items in self._batches if number > begun for item in items}
        held, self._items = self._items, {}
        for copy in self._writer.copies.values():
            copy.release()
        if self._port is not None and (held or not self._is_closing):
            lost = tuple(item for item in held if item not in waiting)
            self._port.deliver([Begun(lost), Dead(text)])
        self.gone.set_result(None)

    def _reap(self) -> int | None:
        """The exit status. What the process has started in its session ends with it."""
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        self._spawned.kill()  # before it is reaped: until then its group's number is nobody else's
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._spawned.process.wait(1.0)
        return None


def _open_pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # an old kernel: the end of the connection tells, too
        return -1
