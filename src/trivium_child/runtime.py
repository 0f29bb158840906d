"""Between the wire and an adapter: the main thread runs user code, `intake` reads, also while it computes.

Batches are put in a row, cancellations noted, pings answered, the answers to upward calls handed to those who
wait. Before user code gets a batch its number goes into the page of marks, which outlives the worker: what had
not begun is run elsewhere.
"""

import contextlib
import os
import socket
import threading
import time
import traceback
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, Optional, Tuple

from trivium_child import frames
from trivium_child.adapter import Adapter
from trivium_child.intake import Intake
from trivium_child.upward import WireHost
from trivium_child.values import END, Failure, Item
from trivium_child.writer import Writer

COALESCE = 0.0001
"""Seconds that answers may wait for those of the next batch in hand."""

WINDOW = 16
"""Parts of one item that may be on their way; a further one waits until the server has passed one on."""

BEGUN_MARK = 0
CANCELLED = Failure("The request was cancelled by its client.", "cancelled")

Batch = Tuple[int, List[Item]]


class Runtime:
    """One per worker. `marks` is shared with the server, `arena` holds large request bodies, read-only."""

    def __init__(self, wire: socket.socket, marks: memoryview, arena: memoryview) -> None:
        self._wire = wire
        self._marks = marks.cast("Q")
        self._arena = arena
        self._texts = frames.Texts()
        self._answers = frames.AnswerTexts()
        self._part_answers = frames.AnswerTexts()
        self._part_lock = threading.Lock()
        self._writer = Writer(wire)
        self._todo: "Deque[Optional[Batch]]" = deque()
        self._intake = Intake(wire, self._todo, self._take)
        self._items: Dict[int, Item] = {}
        self._windows: Dict[int, threading.Semaphore] = {}
        self._pid = os.getpid()
        self.host = WireHost(self._writer, self._texts, self._intake.needed)

    # -- start and end -------------------------------------------------------------------------------------

    def await_setup(self) -> Dict[str, Any]:
        """The first frame; starts the thread that reads all others."""
        buffer = b""
        while True:
            found, used = frames.frames(buffer)
            if found:
                kind, body = found[0]
                assert kind == frames.SETUP, "the first frame was not the setup"
                assert used == len(buffer), "something came before the worker was ready"
                told = frames.read(body)
                break
            came = self._wire.recv(2**16)
            if not came:
                os._exit(70)
            buffer += came
        self._intake.needed()  # user code that is being loaded may ask something
        return dict(told)

    def refuse(self, message: str, code: str) -> None:
        """Tell why there is no adapter."""
        self._writer.write(frames.frame(frames.REFUSED, frames.text({"message": message, "code": code})))

    def forget(self) -> None:
        """In a process that user code forked: it is no worker."""
        self._writer.is_mine = False
        with contextlib.suppress(OSError):
            os.close(self._wire.fileno())

    def run(self, adapter: Adapter) -> None:
        """Serve until told to stop. What ends user code's process ends it here, too: SystemExit passes."""
        self._writer.write(frames.frame(frames.READY, frames.text({"pid": self._pid})))
        pending: List[Any] = []
        first = 0.0
        while True:
            try:
                batch = self._todo.popleft()
            except IndexError:
                self._intake.wait()
                continue
            if batch is None:
                break
            began, ended = self._execute(adapter, batch, pending)
            first = first or began
            del batch
            if not self._todo or ended - first > COALESCE:
                self._writer.write(*pending)
                pending = []
                first = 0.0
        if pending:
            self._writer.write(*pending)
        adapter.close()

    # -- a batch -------------------------------------------------------------------------------------------

    def _execute(self, adapter: Adapter, batch: Batch, pending: List[Any]) -> Tuple[float, float]:
        number, items = batch
        live = [item for item in items if not item.is_cancelled]
        self._marks[BEGUN_MARK] = number
        self._intake.begin()
        began = time.monotonic()
        outcomes = _outcomes(adapter, live) if live else []
        ended = time.monotonic()
        self._intake.end()
        pieces: List[Any] = []
        count = 0
        if len(live) != len(items):
            self._end_cancelled(item for item in items if item.is_cancelled and item not in live)
        for item, outcome in zip(live, outcomes):
            if outcome is None:
                continue  # it ends by its own parts
            count += 1
            self._items.pop(item.number, None)
            self._windows.pop(item.number, None)
            try:
                pieces += self._answers.write(item.number, outcome)
            except Exception as error:
                pieces += self._answers.write(item.number, _fault(error))
        head = frames.DONE_HEAD.pack(number, count, began, ended)
        size = len(head) + 1 + sum(map(len, pieces))
        pending.append(frames.HEAD.pack(size, frames.DONE))
        pending.append(head)
        pending += pieces
        return began, ended

    def _end_cancelled(self, items: Iterable[Item]) -> None:
        for item in items:
            self._send_part(item, CANCELLED, True, None)

    def _send_part(self, item: Item, outcome: Any, final: bool, parameters: Optional[Dict[str, Any]]) -> None:
        if item.number not in self._items:
            return  # it has ended
        final = final or outcome is END or isinstance(outcome, Failure)
        if item.is_cancelled and not final:
            return
        if not final:
            window = self._windows.get(item.number)
            if window is None:
                window = self._windows.setdefault(item.number, threading.Semaphore(WINDOW))
            if not window.acquire(blocking=False):
                self._intake.needed()
                window.acquire()
            if item.is_cancelled:
                return
        else:
            self._items.pop(item.number, None)
            self._windows.pop(item.number, None)
            if item.is_cancelled:
                outcome = CANCELLED
        with self._part_lock:
            flags = frames.FINAL if final else 0
            pieces = self._part_answers.write(item.number, outcome, flags, parameters)
            size = 1 + sum(map(len, pieces))
            self._writer.write(frames.HEAD.pack(size, frames.PART), *pieces)

    # -- from whichever thread reads ------------------------------------------------------------------------------

    def _take(self, kind: int, body: memoryview) -> None:
        if kind == frames.RUN:
            self._todo.append(self._batch(body))
        elif kind == frames.CANCEL:
            self._cancel(frames.NUMBER.unpack(body)[0])
        elif kind == frames.TAKEN:
            number, count = frames.TAKEN_BODY.unpack(body)
            window = self._windows.get(number)
            for _ in range(count if window is not None else 0):
                window.release()  # type: ignore[union-attr]
        elif kind == frames.REPLY:
            self.host.replied(body)
        elif kind == frames.PING:
            self._writer.write(frames.frame(frames.PONG))
        elif kind == frames.STOP:
            self._todo.append(None)
        else:
            raise ValueError("a frame of unknown kind %d" % kind)

    def _batch(self, body: memoryview) -> Batch:
        number, count = frames.RUN_HEAD.unpack_from(body, 0)
        at, items = frames.RUN_HEAD.size, []
        read, payload_of, send, held = self._texts.read, frames.read_payload, self._send_part, self._items
        for _ in range(count):
            fixed = frames.ITEM.unpack_from(body, at)
            item_number, rows, id_size, text_size, place, base, size = fixed
            at += frames.ITEM.size
            request_id = str(body[at : at + id_size], "utf-8") if id_size else ""
            at += id_size
            about = read(bytes(body[at : at + text_size]))
            at += text_size
            if place == frames.INLINE:
                data = body[at : at + size]
                at += size
            else:
                data = self._arena[base : base + size]
            item = Item(item_number, request_id, rows, payload_of(about, data), about, send)
            held[item_number] = item
            items.append(item)
        return number, items

    def _cancel(self, number: int) -> None:
        item = self._items.get(number)
        if item is not None:
            item.is_cancelled = True
            window = self._windows.get(number)
            if window is not None:
                window.release()
            self.host.abandon(number)


def _outcomes(adapter: Adapter, items: List[Item]) -> List[Any]:
    try:
        outcomes = adapter.run(items)
        if len(outcomes) != len(items):
            raise Failure(
                "The adapter made %d outcomes of %d requests; report this." % (len(outcomes), len(items))
            )
        return outcomes
    except Failure as failure:
        return [failure] * len(items)
    except MemoryError as error:
        return [Failure("The model ran out of memory. %s" % error, "out of memory")] * len(items)
    except Exception as error:
        return [_fault(error)] * len(items)


def _fault(error: BaseException) -> Failure:
    with contextlib.suppress(Exception):  # user code may have closed its standard error
        traceback.print_exception(type(error), error, error.__traceback__)
    where = traceback.extract_tb(error.__traceback__)
    place = " (%s, line %s)" % (where[-1].filename, where[-1].lineno) if where else ""
    return Failure("The model raised %s: %s%s" % (type(error).__name__, error, place))
