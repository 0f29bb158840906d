"""Between the wire and an adapter: the main thread runs user code, `intake` reads, also while it computes.

Batches are put in a row, cancellations noted, pings answered, the answers to upward calls handed to those who
wait. Before user code gets a batch its number goes into the page of marks, which outlives the worker: what had
not begun is run elsewhere.
"""

import contextlib
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, cast

from trivium_worker.runtime.adapter import Adapter
from trivium_worker.runtime.checks import Checks
from trivium_worker.runtime.faults import fault, outcomes_of
from trivium_worker.runtime.parts import CANCELLED, Parts
from trivium_worker.runtime.upward import WireHost
from trivium_worker.wire import frames
from trivium_worker.wire.intake import FrameReader
from trivium_worker.wire.loans import Kept, RetainedBlocks
from trivium_worker.wire.values import Item, Payload, Tensor
from trivium_worker.wire.writer import JOINED, Writer

COALESCE = 0.0001
"""Seconds that answers may wait for those of the next batch in hand."""

LONG = 0.001
"""Seconds of a batch behind which a look at the socket costs little beside it."""

LAST_WAIT = 0.005
"""Seconds between two looks at what has not ended yet, once there is nothing else to do."""

FAREWELL = 5.0
"""Seconds, at the end, for the server to read what has been written."""

BEGUN_MARK = 0
_ITEM, _ITEM_SIZE = frames.ITEM.unpack_from, frames.ITEM.size
_DONE = struct.Struct(frames.HEAD.format + frames.DONE_HEAD.format[1:]).pack

Batch = tuple[int, list[Item]]


class Runtime:
    """One per worker. `marks` and `arena`, which holds large request bodies, are shared with the server."""

    def __init__(self, wire: socket.socket, marks: memoryview, arena: memoryview) -> None:
        self._wire = wire
        self._marks = marks.cast("Q")
        self.loans = RetainedBlocks(arena)
        self._texts = frames.Texts()
        self._answers = frames.AnswerTexts()
        self._writer = Writer(wire)
        self._todo: deque[Batch | None] = deque()
        self._intake = FrameReader(wire, self._todo, self._take)
        self._items: dict[int, Item] = {}
        self._parts = Parts(self._items, self._writer, self.loans, self._intake.needed)
        self.host = WireHost(self._writer, self._texts, self._intake.needed, self._intake.interrupt)
        self._cancel_task: Callable[[int], None] | None = None

    # -- start and end -------------------------------------------------------------------------------------

    def await_setup(self) -> dict[str, Any]:
        """The first frame; starts the thread that reads all others."""
        buffer = b""
        while True:
            found, used = frames.frames(buffer)
            if found:
                kind, at, end = found[0]
                assert kind == frames.SETUP, "the first frame was not the setup"
                assert used == len(buffer), "something came before the worker was ready"
                told = frames.read(buffer[at:end])
                break
            came = self._wire.recv(2**16)
            if not came:
                os._exit(70)
            buffer += came
        self._intake.needed()  # user code that is being loaded may ask something
        return dict(told)

    def refuse(self, message: str, code: str) -> None:
        """Tell why there is no adapter."""
        self._writer.send(frames.frame(frames.REFUSED, frames.text({"message": message, "code": code})))

    def forget(self) -> None:
        """Forget the worker in a process that user code forked: it is none."""
        self._writer.is_mine = False
        with contextlib.suppress(OSError):
            os.close(self._wire.fileno())

    def run(self, adapter: Adapter) -> None:
        """Serve until the server says stop. What ends user code's process ends it here, too: SystemExit passes."""
        self._checks = Checks(adapter, self._writer)
        ready = {
            "checks": adapter.has_check,
            "in_flight": adapter.slots or adapter.in_flight,
            "steps": adapter.slots > 0,
        }
        self._writer.send(frames.frame(frames.READY, frames.text(ready)))
        if adapter.slots:
            self._serve_steps(adapter)
        elif adapter.in_flight:
            self._serve_many(adapter)
        else:
            self._serve_batches(adapter)
        self._outlast()
        adapter.close()

    def hang_up(self) -> None:
        """Leave nothing that was written unread by the server, which closes when it has read the last of it."""
        self._intake.end()
        self._writer.end()
        self._intake.outlast(FAREWELL)

    def _serve_many(self, adapter: Adapter) -> None:
        from trivium_worker.runtime.tasks import (
            Tasks,  # few workers need asyncio, which takes a while to load
        )

        tasks = Tasks(adapter, self._todo, self._items, self._parts, self._begun, self._tell_freed)
        self._cancel_task = tasks.cancel
        self._intake.read_apart(tasks.alert)
        tasks.run()

    def _serve_steps(self, adapter: Adapter) -> None:
        from trivium_worker.runtime.steps import Steps

        steps = Steps(
            adapter,
            self._todo,
            self._items,
            self._parts,
            self._writer,
            self._intake,
            self._begun,
            self._tell_freed,
        )
        self._cancel_task = steps.cancel
        steps.run()

    def _begun(self, number: int) -> None:
        self._marks[BEGUN_MARK] = number

    def _tell_freed(self) -> None:
        if self.loans.freed:
            self._writer.send(self.loans.take_freed())

    def _serve_batches(self, adapter: Adapter) -> None:
        pending: list[Any] = []
        over: list[int] = []
        kept: Kept = []
        first, held = 0.0, 0
        while True:
            if not self._todo:  # an exception would cost more, in cold memory behind a long run
                self._intake.wait()
                continue
            batch = self._todo.popleft()
            if batch is None:
                break
            at = len(pending)
            began, ended, size = self._execute(adapter, batch, pending, over)
            first = first or began
            held += size
            del batch
            if over:
                held += self.loans.ended(over, pending, at, kept)
                over.clear()
            # What is long is written before the next batch: user code may use its memory again.
            if not self._todo or ended - first > COALESCE or held > JOINED:
                self._write(pending, held, kept)
                first = held = 0
            if self._todo and ended - began > LONG:
                self._intake.glance()
        if pending:
            self._write(pending, held, kept)

    def _write(self, pending: list[Any], size: int, kept: Kept) -> None:
        self._writer.write(pending, size)
        pending.clear()
        if kept:
            self.loans.written(kept)
        if self.loans.freed:
            self._tell_freed()

    def _outlast(self) -> None:
        """Let answers in progress end after the server has said stop: threads of user code still send their parts."""
        while self._items:
            self._intake.needed()
            sleep(LAST_WAIT)

    # -- a batch -------------------------------------------------------------------------------------------

    def _execute(
        self, adapter: Adapter, batch: Batch, pending: list[Any], over: list[int]
    ) -> tuple[float, float, int]:
        """Run a batch and add its answers' pieces to `pending`, items that they end to `over` where something lies in
        the arena; when it began and ended, and bytes of the pieces.
        """
        number, items = batch
        live = items
        for item in items:
            if item.is_cancelled:
                live = [item for item in items if not item.is_cancelled]
                break
        self._marks[BEGUN_MARK] = number
        self._intake.begin()
        began = monotonic()
        outcomes = outcomes_of(adapter, live) if live else []
        ended = monotonic()
        self._intake.turn += 1
        at = len(pending)
        pending.append(b"")
        size = frames.DONE_HEAD.size + 1
        count = 0
        held, windows, write, lent = self._items, self._parts.windows, self._answers.write, self.loans.out
        if live is not items:
            for item in items:
                if item not in live:
                    self._parts.send(item, CANCELLED, True, None)
        for item, outcome in zip(live, outcomes, strict=False):
            if outcome is None or held.pop(item.number, None) is None:
                continue  # it ends by its own parts, or has: another thread was quicker
            count += 1
            if lent:
                over.append(item.number)
            if windows:
                self._parts.close(item.number)
            try:
                size += write(pending, item.number, outcome)
            except Exception as error:
                size += write(pending, item.number, fault(error))
        rows = 0 if count == len(live) else sum(item.rows for item in live)
        pending[at] = _DONE(size, frames.DONE, number, count, began, ended, rows)
        return began, ended, size + 4

    # -- from whichever thread reads ------------------------------------------------------------------------------

    def _take(self, kind: int, came: bytes, at: int, end: int) -> None:
        if kind == frames.RUN:
            self._todo.append(self._batch(came, at))
            return
        body = memoryview(came)[at:end]
        if kind == frames.CANCEL:
            self._cancel(frames.NUMBER.unpack(body)[0])
        elif kind == frames.TAKEN:
            number, count = frames.TAKEN_BODY.unpack(body)
            self._parts.taken(number, count)
        elif kind == frames.REPLY:
            self.host.replied(body)
        elif kind == frames.PING:
            self._writer.send(frames.frame(frames.PONG))
        elif kind == frames.CHECK:
            self._checks.begin()
        elif kind == frames.STOP:
            self._todo.append(None)
        else:
            raise ValueError(f"a frame of unknown kind {kind}")

    def _batch(self, came: bytes, at: int) -> Batch:
        number, count = frames.RUN_HEAD.unpack_from(came, at)
        items: list[Item] = []
        at += frames.RUN_HEAD.size
        view = memoryview(came)
        known, outlet, held = self._texts.known, self._parts, self._items
        for _ in range(count):
            item_number, rows, id_size, text_size, place, base, size = _ITEM(came, at)
            at += _ITEM_SIZE
            request_id = ""
            if id_size:
                request_id = came[at : at + id_size].decode()
                at += id_size
            text = came[at : at + text_size]
            about = known(text) or self._texts.read(text)
            at += text_size
            data = self.loans.view(item_number, base, size) if place else view[at : at + size]
            at += 0 if place else size
            tensors = about.get("tensors")
            if tensors is not None and len(tensors) == 1 and tensors[0][3] == size:
                name, datatype, shape, _ = tensors[0]
                payload: Payload = [Tensor(name, datatype, shape, data)]
            else:
                payload = cast(Payload, frames.read_payload(about, data))  # listed: for functions alone
            item = Item(item_number, request_id, rows, payload, about, outlet)
            held[item_number] = item
            items.append(item)
        return number, items

    def _cancel(self, number: int) -> None:
        item = self._items.get(number)
        if item is not None:
            item.is_cancelled = True
            self._parts.cancel(number)
            self.host.cancel_calls(number)
            if self._cancel_task is not None:
                self._cancel_task(number)
