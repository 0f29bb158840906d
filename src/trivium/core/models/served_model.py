"""One loaded version of one model: the path of an item from the door to its answer.

It joins admission, queue, scheduler, pool and counters, and is the only one that ends items. It knows neither
versions beside its own nor how it came to be loaded.
"""

import asyncio
from collections.abc import Sequence

from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.pool import InstanceSlot
from trivium.core.instances.rate_limited_pool import pool_for
from trivium.core.instances.scaler import Group, Launch, Scaler
from trivium.core.queueing.admission import AdmissionController
from trivium.core.queueing.call_graph import PendingCall
from trivium.core.queueing.deadlines import Deadlines
from trivium.core.queueing.payload_adapter import ModelContext, PayloadAdapter
from trivium.core.queueing.queue import RequestQueue
from trivium.core.queueing.responses import answering
from trivium.core.queueing.sequencer import ResponseSequencer
from trivium.core.request import GIVEN_UP, Item
from trivium.core.schedulers.choice import scheduler_for
from trivium.core.schedulers.sequence.scheduler import SequenceScheduler
from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Check, Clock, Sink
from trivium.types.operations import CallRef, Infer
from trivium.types.payload import Raw, Tensors
from trivium.types.running import Executed, InstanceId, ItemId, Part
from trivium.types.spec import Isolation, ModelSpec
from trivium.types.state import ItemState
from trivium.types.statistics import VersionStatistics

PLAIN = ModelContext()
ENDED = ItemState.ENDED  # members of an Enum are slow to look up in its class


class ServedModel:
    """Serves items until it is closed. Used on the loop only."""

    def __init__(
        self,
        spec: ModelSpec,
        isolation: Isolation,
        launch: Launch,
        mailbox: Mailbox,
        clock: Clock,
        means: ModelContext = PLAIN,
    ) -> None:
        self._arena = means.arena
        self._cache = means.cache
        self._calls = means.calls
        self._tracing = means.tracing
        self.spec = spec
        self._name = spec.name
        self._now = clock.now
        self._door = PayloadAdapter(spec, means.takes)
        self._counters, self._answers = answering(spec, self._door, clock.now, means.measures)
        self._pool, self._member = pool_for(spec, self, mailbox, clock.now, means)
        self.hold, self.resume = self._pool.hold, self._pool.resume  # an item's receiver is full, or has room
        self._queue = RequestQueue(self._pool.free)
        self._entrance = AdmissionController(spec, self._door.levels, self._queue, self._pool, self._counters)
        self._line = ResponseSequencer() if spec.in_order else None
        groups = [Group(group, isolation) for group in spec.groups]
        is_watched = all(group.isolation is Isolation.PROCESS for group in groups)
        run_limit = None if is_watched else spec.limits.run_deadline  # a worker's own watch keeps that
        self._deadlines = Deadlines(spec.name, run_limit, clock)
        start = self._pool.start if run_limit is None else self._start_with_deadline
        self._scheduler = scheduler = scheduler_for(spec, self._queue, self._pool, clock, start, self._expire)
        self._sequences = scheduler if isinstance(scheduler, SequenceScheduler) else None
        if self._member is not None:
            self._member.waits, self._member.look_again = lambda: self._queue.count, scheduler.changed
        self._is_plain = self._door.levels.are_plain and self._sequences is None
        if self._sequences is not None:
            launch = self._sequences.around(launch)
        self._open = self._pool.slots()
        self._scaler = Scaler(self._pool, groups, launch, clock, lambda: self._queue.count)
        self._scaler.fail_waiting, self._scaler.failed = self._fail_waiting, self._calls.review
        self._scaler.restarts = spec.limits.restarts
        self._pool.in_order = self._is_plain and run_limit is None and not self._scaler.is_elastic
        self.deaths = self._scaler.deaths
        if self._scaler.is_elastic:
            self._scheduler.decided = self._scaler.review
        self._active = 0
        self._idle_waiters: list[asyncio.Future[None]] = []

    async def open(self) -> None:
        """Open the instances. Raises the first one's LOAD_FAILED, with nothing left open."""
        await self._scaler.start()

    async def idle(self) -> None:
        """Wait until no item is in the queue or in an instance."""
        if self._active:
            waiter = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter

    async def close(self) -> None:
        """Close the instances; only when idle, or to give up what is left."""
        for item in [*self._queue.entries(), *self._pool.held()]:
            item.cancel(GIVEN_UP)
        self._scheduler.close()
        await self._scaler.close()
        for held in (self._cache, self._member, self._arena):
            if held is not None:
                held.close()

    # -- in ------------------------------------------------------------------------------------------------

    def submit(self, number: ItemId, infer: Infer, sink: Sink) -> Item:
        """Queue an item, or refuse it through its sink."""
        item = Item(number, infer, sink, self._now(), self)
        if self._line is not None:
            item.sink = self._line.join(number, sink)
        if infer.payload.lease is not None:
            infer.payload.lease.hold()
        self._active += 1
        if infer.parent is not None:
            self._pool.calls += 1
        try:
            if not self._open and self._scaler.is_failed:
                raise self.failure()
            self._door.admit(item)
            if self._tracing.is_on:
                self._tracing.admitted(item, self.spec)
            if self._cache is not None and self._cache.answers(item, self._counters):
                self._leave(item)
                return item
            if not self._is_plain:
                self._rank(item, infer)
            if self._active > self._entrance.limit:
                self._entrance.check_room(item.level, None)
            if infer.parent is not None:
                self._calls.check(self._name, self._scaler, infer.parent)
                self._calls.begun(PendingCall(number, self._name, self._scaler, infer.parent, item.cancel))
        except ServeError as error:
            self._refuse(item, error)
            return item
        if infer.deadline is not None:
            self._deadlines.keep_own(item)
        self._queue.add(item)
        self._scheduler.changed()
        return item

    def _refuse(self, item: Item, error: ServeError) -> None:
        if self._line is not None:
            self._line.leave(item.item)
        self._expire(item, error)

    def _rank(self, item: Item, infer: Infer) -> None:
        if self._sequences is None:
            self._entrance.rank(item, infer)
            return
        if self._active > self._entrance.limit:
            self._entrance.check_room(item.level, None)
        if infer.parent is not None:
            self._calls.check(self._name, self._scaler, infer.parent)
        self._sequences.admit(item)

    def lend(self, size: int, lead: int = 0) -> Lease | None:
        """Memory that its workers share, for a request's body; None where it has none, or no room in it."""
        return None if self._arena is None else self._arena.lend(size, lead)

    def checks(self) -> list[Check]:
        """Of the open instances whose user code has a say in whether it is ready."""
        return [check for slot in self._open.values() if slot.instance and (check := slot.instance.check)]

    @property
    def is_failed(self) -> bool:
        """Have its instances failed so often that no more are opened?"""
        return self._scaler.is_failed

    def failure(self) -> ServeError:
        """Why it serves no more, once it has been given up."""
        return self._scaler.failure(self._name)

    def _start_with_deadline(self, instance: InstanceId, items: list[Item]) -> None:
        self._deadlines.started(items)
        self._pool.start(instance, items)

    # -- out -----------------------------------------------------------------------------------------------

    def executed(self, run: Executed, items: Sequence[Item]) -> None:
        """Answer the items of an execution, each with its own outcome."""
        if self._tracing.is_on:
            self._tracing.executed(run)
        now, rows = self._now(), 0
        answer = self._answers.answer
        done: list[Item] = []
        assert len(items) == len(run.outcomes), (
            "an execution ended with another number of outcomes than of items"
        )
        for item, outcome in zip(items, run.outcomes):  # noqa: B905 - a keyword's argument is dear
            operation = item.operation
            rows += item.rows
            if item.state is ENDED:
                self._counters.wasted += 1
            elif type(outcome) is not Tensors and isinstance(outcome, ServeError):
                self._answers.end(item, outcome)
            elif self._answers.answer_raw(item, outcome) if type(outcome) is Raw else answer(item, outcome):
                done.append(item)
            if operation.payload.lease is not None:
                operation.payload.lease.release()
            if operation.parent is not None:
                self._end_call(item.item, operation.parent)
        self._counters.executed(run, run.rows or rows, done, now)
        self._active -= len(items)
        if self._idle_waiters:
            self._settle()

    def part(self, item: Item, part: Part) -> None:
        """Pass on a part that an instance pushed for one item."""
        if not self._answers.part(item, part):
            self._pool.cancel(item)
        if part.final:
            self._leave(item)

    def again(self, item: Item) -> None:
        """It was run, and its model wants to go on with it."""
        assert self._sequences is not None
        item.state, item.instance = ItemState.QUEUED, 0
        self._deadlines.recalled(item)
        self._sequences.again(item)

    def stale(self) -> None:
        """An instance wants to be replaced."""
        self._scaler.review()

    def died(
        self, slot: InstanceSlot, post_mortem: str, lost: Sequence[Item], recalled: Sequence[Item]
    ) -> None:
        """Queue again what a dead instance had not begun, in front and in order; end the rest. In this order,
        since whoever is told may cancel at once what was recalled.
        """
        self._scaler.died(slot, post_mortem)
        error = ServeError(Code.WORKER_DIED, f"An instance of model '{self.spec.name}' died. {post_mortem}")
        for item in reversed(recalled):
            item.state, item.instance = ItemState.QUEUED, 0
            self._deadlines.recalled(item)
            self._queue.put_back(item)
        for item in lost:
            if item.state is not ENDED:
                self._answers.end(item, error)
            self._leave(item)
        self._scaler.review()
        if self._scaler.is_failed:
            self._fail_waiting(self.failure())
        self._calls.review()

    def freed(self) -> None:
        """Credits came back, or an instance was opened."""
        self._pool.observe(self._counters.mean_run)
        if self._queue.count or self._sequences is not None:
            self._scheduler.changed()
        elif self._scaler.is_elastic:
            self._scaler.review()

    def report(self) -> VersionStatistics:
        """The counters, frozen."""
        return self._counters.report(self.spec.name, self.spec.version, self._queue.count + self._pool.ahead)

    def cancel(self, item: Item, why: ServeError) -> None:
        """End it with `why`, wherever it is. It waits for no other's answer."""
        if self._line is not None:
            self._line.leave(item.item)
        if item.state is ItemState.QUEUED:
            if self._queue.remove(item):  # else it is being refused at this very moment
                self._answers.end(item, why)
                self._leave(item)
                self._scheduler.changed()
        else:
            self._answers.end(item, why)
            self._pool.cancel(item)

    def _expire(self, item: Item, error: ServeError) -> None:
        self._answers.end(item, error)
        self._leave(item)

    def _fail_waiting(self, why: ServeError) -> None:
        """No instance is open and none could be opened: nobody is left waiting for one."""
        for item in list(self._queue.entries()):
            item.cancel(why)

    def _leave(self, item: Item) -> None:
        """The item is neither queued nor in an instance any more."""
        if item.operation.parent is not None:
            self._end_call(item.item, item.operation.parent)
        if item.operation.payload.lease is not None:
            item.operation.payload.lease.release()
        self._active -= 1
        self._settle()

    def _end_call(self, number: ItemId, parent: CallRef) -> None:
        self._calls.ended(number, parent)
        self._pool.calls -= 1

    def _settle(self) -> None:
        """Tell those who wait for it that no item is left, if so."""
        while not self._active and self._idle_waiters:
            waiter = self._idle_waiters.pop()
            if not waiter.done():
                waiter.set_result(None)
