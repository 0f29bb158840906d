"""An instance that is a worker process: batches out as frames, outcomes in, and what becomes of it when it dies.

Lives on the loop. What user code had begun when the process died is told by the page of marks, which the
process writes and does not take with it. Watching over it (deadlines, memory, silence) is `watch`'s work; the
process itself, its outputs and its end are `child_process`.
"""

import asyncio
import logging
import signal
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic

from trivium.core.clock import CallLast
from trivium.core.execution import not_written, unrun
from trivium.core.workers.arena import Arena
from trivium.core.workers.child_process import (
    BURIAL,
    END_SECONDS,
    LINGER,
    TERM_SECONDS,
    ChildProcess,
    Spawned,
)
from trivium.core.workers.connection import CREDIT, WorkerConnection
from trivium.core.workers.upcalls import Upcalls
from trivium.core.workers.wire import AnswerReader, BatchWriter, ProtocolError
from trivium.types.errors import Code, ServeError, noted
from trivium.types.interfaces import Check, Port
from trivium.types.observing import DeathCause, last_words
from trivium.types.operations import Infer
from trivium.types.recording import WORKER_LINE, RequestName, WorkerEnd, WorkerLine, WorkerVoice
from trivium.types.running import Batch, Begun, Credit, Dead, Event, Executed, ItemId, Part
from trivium.types.tracing import trace_id
from trivium_worker.wire import frames

MOST_NAMED = 16
"""Requests that a line of a worker names."""


@dataclass(frozen=True, slots=True)
class WorkerDebugState:
    """Describes one worker: the last batch that it was handed, by number, and its upward calls that have not ended."""

    last_batch: int
    open_calls: tuple[int, ...]


class ManyItems:
    """Keeps the times of the items of a worker that has many in work, each an execution of its own.

    They begin in the order in which they are handed over, so that the mark of the last one that has begun tells of all.
    """

    def __init__(self) -> None:
        self._owed: set[ItemId] = set()  # whose credit has not come back
        self._waiting: deque[tuple[int, ItemId]] = deque()  # not known to have begun
        self._since: dict[ItemId, float] = {}  # begun, with when that, or their last part, was seen
        self._stepped_at = 0.0

    def hand_over(self, number: int, items: Iterable[ItemId]) -> None:
        """The worker gets them under this number."""
        for item in items:
            self._owed.add(item)
            self._waiting.append((number, item))

    def look(self, begun: int, now: float) -> None:
        """User code has got everything up to this number."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= begun:
            _, item = waiting.popleft()
            if item in self._owed:
                self._since[item] = now

    def progress(self, item: ItemId, now: float) -> None:
        """It has sent a part, or may send more."""
        if item in self._since:
            self._since[item] = now

    def stepped(self, now: float) -> None:
        """A step has ended, in which all were that had begun."""
        self._stepped_at = now

    def end(self, item: ItemId) -> None:
        """It has ended; its credit is still owed."""
        self._since.pop(item, None)

    def settle(self, item: ItemId) -> None:
        """Its credit has come back. Raises ProtocolError where none was owed."""
        if item not in self._owed:
            raise ProtocolError(f"the credit of item {item}, for which it owes none")
        self._owed.remove(item)
        self._since.pop(item, None)

    def oldest(self, is_stopped: Callable[[ItemId], bool]) -> float | None:
        """Return since when the one that has gone without a sign for longest has; those that wait for their reader do
        not count.
        """
        oldest = min((since for item, since in self._since.items() if not is_stopped(item)), default=None)
        return None if oldest is None else max(oldest, self._stepped_at)

    def unbegun(self, begun: int) -> set[ItemId]:
        """Return those that stand after this number."""
        return {item for number, item in self._waiting if number > begun}


def _trace_of(infer: Infer) -> str:
    """Return the id of the trace that a request belongs to; empty without one."""
    origin = infer.origin
    return trace_id(infer.context or ("" if origin is None else origin.parent))


class ProcessInstance:
    """Owns the process from the moment it has been spawned."""

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        name: str,
        spawned: Spawned,
        arena: Arena,
        upward: Upcalls,
        log: logging.Logger,
        call_last: CallLast | None = None,
        voice: WorkerVoice | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._voice = None if voice is None else replace(voice, doing=self._in_hand)
        self._follows = voice is not None and voice.follows
        self._process = ChildProcess(name, spawned, log, self._process_ended, upward.hears, self._voice)
        self._writer = BatchWriter(arena)
        self._reader = AnswerReader()
        self._upward = upward
        self._log = log
        self._port: Port | None = None
        self._number = 0
        self.ended_items = 0
        self.serves = False  # it is open, warm, and has been handed over
        self.death: DeathCause | None = None  # once it is gone: None for an end that is as it should be
        self._batches: deque[tuple[int, list[ItemId]]] = deque()
        self._many: ManyItems | None = None
        self._items: dict[ItemId, Infer] = {}
        self.connection = WorkerConnection(
            self, self._items, self._writer.copies, call_last or self._loop.call_soon
        )
        self.write = self.connection.write
        self._cancelled: set[ItemId] = set()
        self._strays: list[ItemId] = []  # of an answer that turned out to be garbage
        self._is_closing = self._is_ending = self._is_gone = self._is_late = False
        self.last_words = self._process.last_words
        self.pid = self._process.pid
        self.threads = (self.pid,)  # its first one is what runs handlers
        self.opened = self.connection.probe.opened
        self.gone: asyncio.Future[str] = self._loop.create_future()  # with its post-mortem
        self.busy_since: float | None = None
        upward.attach(self)

    # -- the instance's contract ---------------------------------------------------------------------------

    def attach(self, port: Port) -> None:
        """Send events there from now on. Raises LOAD_FAILED where it is gone already: nobody would hear of that."""
        if self.gone.done():
            raise ServeError(Code.LOAD_FAILED, self.gone.result())
        self._port = port
        if self.in_flight and self._many is None:
            self._many = ManyItems()

    def start(self, batch: Batch) -> None:
        """Hand a batch over, with all others of this turn of the loop in one write."""
        self._number = number = self._number + 1
        items = batch.items
        if self._many is not None:
            self._many.hand_over(number, items)
        else:
            self._batches.append((number, items))
            if self.busy_since is None:
                self.busy_since = monotonic()
        assert len(items) == len(batch.operations) == len(batch.rows)
        for item, operation in zip(items, batch.operations):  # noqa: B905 - a keyword's argument is dear
            self._items[item] = operation
        if self._is_gone:
            return  # its death is on the way to the pool, and takes these items along
        try:
            pieces = self._writer.write(number, batch)
        except Exception as error:
            self._refuse(batch, noted(error))
        else:
            self.write(pieces)

    def _refuse(self, batch: Batch, error: Exception) -> None:
        """It cannot be handed over: its items end here."""
        for item in batch.items:
            self._forget(item)
        assert self._port is not None
        if self._many is None:
            self._batches.pop()
            if not self._batches:
                self.busy_since = None
            self._port.push([unrun(batch, error, monotonic()), CREDIT])
            return
        why = not_written(error)
        for item in batch.items:
            self._many.settle(item)
        self._port.push([*(Part(item, None, why) for item in batch.items), Credit(len(batch.items))])

    def cancel(self, item: ItemId) -> None:
        """Tell the worker, and give up the calls that the item makes."""
        if item in self._items:
            self._upward.cancel_calls(item)
            self.write([frames.frame(frames.CANCEL, frames.NUMBER.pack(item))])
            self._cancelled.add(item)
            self._end_if_idle()

    def hold(self, item: ItemId) -> None:
        """It gets no more receipts, so that it sends no more than its window."""
        if item in self._items:
            self.connection.receipts.hold(item)

    def resume(self, item: ItemId) -> None:
        """It gets the receipts that were kept back; its time with what it has in hand begins anew."""
        self.connection.receipts.resume(item)
        self.connection.send_receipts()
        self._progress(item)

    def _progress(self, item: ItemId) -> None:
        if self._many is not None:
            self._many.progress(item, monotonic())
        elif self.busy_since is not None:
            self.busy_since = monotonic()

    def interrupt(self, why: str) -> Collection[ItemId]:
        """See `Instance`: nothing but its death ends what user code does."""
        self._is_late = not self._is_gone
        self.kill(why, DeathCause.RUN_DEADLINE)
        return ()

    def abandon(self, why: str) -> None:
        """See `Instance`: it has been killed, and the system does not say that it is gone."""
        self._finalize()

    def close(self) -> None:
        """Ask it to end after what it holds; it is made to if it does not."""
        if not (self._is_closing or self._is_gone):
            self._is_closing = True
            self.write([frames.frame(frames.STOP)])
            self._end_if_idle()

    def _end_if_idle(self) -> None:
        """Let it finish what it holds for somebody, however long that takes, and then make it end."""
        if self._cancelled:
            self._cancelled.intersection_update(self._items)
        if self._is_closing and not self._is_ending and len(self._items) == len(self._cancelled):
            self._is_ending = True
            self._process.end_within(END_SECONDS, TERM_SECONDS)

    def _in_hand(self) -> tuple[RequestName, ...]:
        """Name the requests that user code has got and not ended, as far as they have names; not more than `MOST_NAMED`
        of them.
        """
        begun = self._process.begun
        items: Iterable[ItemId] = ()
        if self._many is not None:
            waiting = self._many.unbegun(begun)
            items = (item for item in self._items if item not in waiting)
        elif self._batches and self._batches[0][0] <= begun:
            items = self._batches[0][1]
        found = (self._items[item] for item in items if item in self._items)
        named = (RequestName(each.id, _trace_of(each)) for each in found)
        return tuple(islice((each for each in named if each.id or each.trace), MOST_NAMED))

    def about(self, text: str) -> Mapping[str, WorkerLine] | None:
        """See `CallingWorker`."""
        voice = self._voice
        if voice is None or not voice.follows:
            return None
        return {WORKER_LINE: WorkerLine(voice.instance, "log", text, voice.name, voice.doing())}

    def debug_state(self) -> "WorkerDebugState":
        """Copy what is known of the worker at this moment, for a developer who debugs."""
        return WorkerDebugState(self._number, self._upward.open_calls())

    def kill(self, why: str, cause: DeathCause | None = None) -> None:
        """End it now; `why` goes into the post-mortem, `cause` among what deaths are counted by, if this is one."""
        if not self._is_gone:
            if not self._process.was_killed_here:
                self.death = cause
            self._process.kill(why)

    @property
    def end(self) -> WorkerEnd:
        """Return why it has ended, once it has."""
        if self._is_late:
            return WorkerEnd.LATE
        return WorkerEnd.ASKED if self._is_closing else WorkerEnd.DIED

    @property
    def was_killed(self) -> bool:
        """Has it been made to end, once it served? One that was only being opened has cut nobody off."""
        return self._process.was_killed_here and self.serves

    @property
    def in_flight(self) -> int:
        """See `Instance`. The worker says it when it is ready."""
        return self.connection.probe.in_flight

    @property
    def check(self) -> Check | None:
        """See `Instance`."""
        return self.connection.probe.check

    def operation(self, item: ItemId) -> Infer | None:
        """Return what the worker has in hand under that number."""
        return self._items.get(item)

    @property
    def running_since(self) -> float | None:
        """See `Instance`. User code has had the batch since then."""
        if self._many is not None:
            self._many.look(self._process.begun, monotonic())
            return self._many.oldest(self.connection.receipts.has_stopped)
        is_begun = bool(self._batches) and self._process.begun >= self._batches[0][0]
        return self.busy_since if is_begun and not self.connection.receipts.is_stopped else None

    # -- from the worker -----------------------------------------------------------------------------------

    def received(self, events: list[Event]) -> bool:
        """See `FrameOwner`."""
        if self._port is None or self._is_gone:
            return False
        self._port.deliver(events)
        return True

    def upcall(self, kind: int, body: memoryview) -> None:
        """See `FrameOwner`."""
        self._upward.take(kind, body)

    def done(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """See `FrameOwner`."""
        if self._follows:
            self._process.read_outputs(True)  # while it is known whose lines they are
        number, items, outcomes, began, ended, rows = self._reader.done(came, at, end)
        if not (batches := self._batches) or batches[0][0] != number:
            raise ProtocolError(f"the end of batch {number}, which was not its turn")
        _, batch = batches.popleft()
        self.busy_since = self.connection.heard_at if batches else None
        held = self._items
        try:
            if self.connection.leases.copies or self._upward.calling or self.connection.receipts.held:
                for item in items:
                    self._forget(item)
            else:
                for item in items:
                    del held[item]
        except KeyError as error:
            self._strays = items
            raise ProtocolError(f"the end of item {error}, which it does not have") from error
        self.ended_items += len(items)
        if items or rows:
            run = Executed(items, outcomes, began, began, ended, ended, rows, batch if rows else ())
            events.append(run)
        if self._cancelled or self._is_closing:
            self._end_if_idle()

    def part(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """See `FrameOwner`."""
        item, outcome, is_final, parameters = self._reader.part(came, at, end)
        if item not in self._items:
            return  # it has ended: another thread of the handler was quicker
        self._progress(item)
        if is_final:
            if self._follows:
                self._process.read_outputs(False)
            self._forget(item)
            self.ended_items += 1
            self._end_if_idle()
        else:
            self.connection.receipts.came(item, end - at)
        payload, error = (None, outcome) if isinstance(outcome, ServeError) else (outcome, None)
        events.append(Part(item, payload, error, is_final, parameters))

    def credit(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """See `FrameOwner`."""
        run = self._reader.credit(came, at, end, self.connection.probe.steps)
        (item,) = run.batch
        if self._many is None or item in self._items:
            raise ProtocolError(f"the credit of item {item}, which has not ended")
        self._many.settle(item)
        events += (run, CREDIT)

    def stepped(self, came: bytes, at: int, end: int, events: list[Event]) -> None:
        """See `FrameOwner`. All items that have begun were in it."""
        if self._many is None or not self.connection.probe.steps:
            raise ProtocolError("a step of one that does not work in steps")
        self._many.stepped(monotonic())
        events.append(self._reader.stepped(came, at, end))

    def _forget(self, item: ItemId) -> None:
        del self._items[item]
        if self._many is not None:
            self._many.end(item)
        self.connection.leases.forget(item)
        self.connection.receipts.forget(item)
        self._upward.cancel_calls(item)

    # -- the end -------------------------------------------------------------------------------------------

    def disconnected(self) -> None:
        """See `FrameOwner`."""
        self._process.disconnected()
        if self._process.has_ended:
            self._loop.call_soon(self._finalize)
        elif not self._is_ending:  # else it says goodbye, or is made to end
            self._loop.call_later(LINGER, self._cut_off)

    def _cut_off(self) -> None:
        """It lives on without a connection."""
        if not self._is_gone:
            self.kill("it had closed its connection to the server", DeathCause.CONNECTION)
            self._loop.call_later(BURIAL, self._finalize)

    def _process_ended(self) -> None:
        if self.connection.is_connected:
            self._loop.call_later(LINGER, self._finalize)
        else:
            self._finalize()

    def _finalize(self) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        status, cause, last_lines = self._process.finalize()
        text = cause + last_words(last_lines)
        self.connection.abort()
        expected = self._is_closing and not self._items and status == 0
        if self._is_closing and (self._process.was_killed_here or status == -signal.SIGTERM):
            self.death = self.death or DeathCause.STOP_TIMEOUT
        elif not (expected or self._process.was_killed_here):
            self.death = self._process.cause_of_death(status)
        is_told = self._process.was_killed_here and not self.serves  # to whoever had it opened
        level = logging.DEBUG if expected or is_told else logging.ERROR
        self._log.log(level, "%s", text, extra=self.about(text))
        is_chance = status is not None and status < 0 and not self._process.was_killed_here
        self.connection.probe.close(Code.WORKER_DIED if is_chance else Code.LOAD_FAILED, text)
        self._upward.close()
        begun = self._process.begun
        waiting = {item for number, items in self._batches if number > begun for item in items}
        if self._many is not None:
            waiting |= self._many.unbegun(begun)
        held = dict(self._items)
        self._items.clear()
        self.connection.leases.close()
        self.gone.set_result(text)
        if self._port is not None and (held or self._strays or not self._is_closing):
            lost = tuple(item for item in (*held, *self._strays) if item not in waiting)
            was_killed = status == -signal.SIGKILL and not self._process.was_killed_here
            self._port.deliver([Begun(lost), Dead(cause, was_killed, last_lines)])
