"""One loaded version of one model: the path of an item from the door to its answer.

It joins admission, queue, scheduler, pool and counters, and is the only one that ends items. It knows neither
versions beside its own nor how it came to be loaded.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from trivium.core.admission import InputRules, LevelRules, drain_time, queue_full
from trivium.core.item import Item
from trivium.core.queue import RequestQueue
from trivium.core.schedulers.dynamic import DynamicScheduler
from trivium.core.schedulers.policy import Settings
from trivium.core.statistics import VersionCounters
from trivium.core.workers.mailbox import Mailbox
from trivium.core.workers.pool import Pool
from trivium.core.workers.scaler import Group, Launch, Scaler
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock, Sink
from trivium.types.operations import Infer, ResponsePart, VersionStatistics
from trivium.types.payload import Payload, Scalar, Tensors
from trivium.types.running import Executed, InstanceId, ItemId, Part
from trivium.types.spec import Isolation, ModelSpec, OnExpiry
from trivium.types.state import ItemState

log = logging.getLogger(__name__)

NOTHING: Mapping[str, Scalar] = {}
GIVEN_UP = ServeError(
    Code.DRAINING, "The server went down before this request was done. Send it elsewhere, or again."
)
SINK_FAILED = "the receiver of an answer of model '%s' failed"
ENDED = ItemState.ENDED  # members of an Enum are slow to look up in its class


class LoadedModel:
    """Serves items until it is closed. Used on the loop only."""

    def __init__(
        self, spec: ModelSpec, isolation: Isolation, launch: Launch, mailbox: Mailbox, clock: Clock
    ) -> None:
        self.spec = spec
        self._name = spec.name
        self._version = spec.version
        self._clock = clock
        self._now = clock.now
        self._inputs = InputRules(spec)
        self._levels = LevelRules(spec.scheduling)
        self._counters = VersionCounters()
        self._pool = Pool(self, mailbox, spec.batching.merge, clock.now)
        self._queue = RequestQueue(spec.scheduling.levels, self._pool.free)
        settings = Settings.of(spec.batching, spec.scheduling)
        start = self._pool.start if spec.limits.run_deadline is None else self._start_with_deadline
        self._scheduler = DynamicScheduler(self._queue, settings, clock, start, self._expire)
        groups = [Group(group, isolation) for group in spec.groups]
        self._scaler = Scaler(self._pool, groups, launch, clock, lambda: self._queue.count)
        self._scaler.stranded = self._strand
        if self._scaler.is_elastic:
            self._scheduler.decided = self._scaler.review
        self._queue_limit = spec.limits.queue_items
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
        held = (item for slot in self._pool.slots().values() for item in slot.held.values())
        for item in [*self._queue.entries(), *held]:
            item.cancel(GIVEN_UP)
        self._scheduler.close()
        await self._scaler.close()

    # -- in ------------------------------------------------------------------------------------------------

    def submit(self, number: ItemId, infer: Infer, sink: Sink) -> Item:
        """Queue an item, or refuse it through its sink."""
        item = Item(number, infer, sink, self._now(), self)
        lease = infer.payload.lease
        if lease is not None:
            lease.hold()
        self._active += 1
        try:
            item.rows = self._inputs.admit(infer)
            if self._inputs.needs_key:
                item.shape_key = self._inputs.shape_key(infer)
            if not self._levels.are_plain:
                self._rank(item, infer)
            if self._active > self._queue_limit:
                self._check_room(item.level, None)
        except ServeError as error:
            self._end(item, error)
            self._leave(item)
            return item
        if infer.deadline is not None:
            self._keep_deadline(item, infer.deadline)
        self._queue.add(item)
        self._scheduler.changed()
        return item

    def _rank(self, item: Item, infer: Infer) -> None:
        item.level = level = self._levels.level(infer.priority)
        policy = self._levels.policies[level - 1]
        if policy.max_items is not None:
            self._check_room(level, policy.max_items)
        timeout = self._levels.timeout(level, infer.queue_timeout)
        if timeout is not None:
            item.queue_deadline = item.enqueued_at + timeout
            item.is_demotable = policy.on_expiry is OnExpiry.DEMOTE

    def _check_room(self, level: int, most: int | None) -> None:
        """What instances hold in advance waits as well, though not in the queue."""
        waiting = self._queue.count + self._pool.ahead
        if waiting >= self._queue_limit or (most is not None and self._queue.level_count(level) >= most):
            raise queue_full(self.spec.name, waiting, self.retry_after())

    def retry_after(self) -> float:
        """Seconds until what waits now will have run."""
        counters = self._counters
        return drain_time(self._queue.rows, counters.mean_run, counters.mean_rows, self._pool.size)

    # -- through -------------------------------------------------------------------------------------------

    def _start_with_deadline(self, instance: InstanceId, items: list[Item]) -> None:
        limit = self.spec.limits.run_deadline
        assert limit is not None
        when = self._now() + limit
        for item in items:
            self._end_by(item, when, f"the model's run deadline of {limit:g} s")
        self._pool.start(instance, items)

    def _keep_deadline(self, item: Item, seconds: float) -> None:
        self._end_by(item, item.enqueued_at + seconds, f"its deadline of {seconds:g} s")

    def _end_by(self, item: Item, when: float, what: str) -> None:
        """Answer an item EXPIRED at that time, if it has not ended; an earlier limit stays in force."""
        if item.deadline is not None and item.deadline <= when:
            return
        if item.timer is not None:
            item.timer.cancel()
        error = ServeError(Code.EXPIRED, f"The request to model '{self.spec.name}' ran out of time: {what}.")
        item.deadline = when
        item.timer = self._clock.call_at(when, partial(item.cancel, error))

    # -- out -----------------------------------------------------------------------------------------------

    def executed(self, run: Executed, items: Sequence[Item]) -> None:
        """Answer the items of an execution, each with its own outcome."""
        now = self._now()
        rows = 0
        done: list[Item] = []
        for item, outcome in zip(items, run.outcomes, strict=True):
            rows += item.rows
            if item.state is ENDED:
                self._counters.wasted += 1
            elif isinstance(outcome, ServeError):
                self._end(item, outcome)
            else:
                done.append(item)
                self._answer(item, outcome, NOTHING)
            lease = item.operation.payload.lease
            if lease is not None:
                lease.release()
        self._counters.executed(run, rows, done, now)
        self._settle(len(items))

    def part(self, item: Item, part: Part) -> None:
        """Pass on a part that an instance pushed for one item."""
        if item.state is ENDED:
            self._counters.wasted += part.error is None
        elif part.error is not None:
            self._end(item, part.error)
        elif part.final:
            self._answer(item, part.payload, part.parameters)
        else:
            parameters = part.parameters
            self._give(
                item, ResponsePart(part.payload, None, None, False, parameters, self._name, self._version)
            )
        if part.final:
            self._leave(item)

    def died(self, post_mortem: str, lost: Sequence[Item], recalled: Sequence[Item]) -> None:
        """Queue again what a dead instance had not begun, in front and in order; end the rest. In this order,
        since whoever is told may cancel at once what was recalled.
        """
        error = ServeError(Code.WORKER_DIED, f"An instance of model '{self.spec.name}' died. {post_mortem}")
        for item in reversed(recalled):
            self._recall(item)
        for item in lost:
            if item.state is not ENDED:
                self._end(item, error)
            self._leave(item)
        self._scaler.review()

    def _recall(self, item: Item) -> None:
        item.state = ItemState.QUEUED
        item.instance = 0
        if item.timer is not None:  # a run's deadline begins anew, the request's own does not
            item.timer.cancel()
            item.timer = item.deadline = None
            if item.operation.deadline is not None:
                self._keep_deadline(item, item.operation.deadline)
        self._queue.put_back(item)

    def freed(self) -> None:
        """Credits came back, or an instance was opened."""
        self._pool.observe(self._counters.mean_run)
        if self._queue.count:
            self._scheduler.changed()
        elif self._scaler.is_elastic:
            self._scaler.review()

    def report(self) -> VersionStatistics:
        """The counters, frozen."""
        return self._counters.report(self.spec.name, self.spec.version, self._queue.count)

    def cancel(self, item: Item, why: ServeError) -> None:
        """End it with `why`, wherever it is."""
        if item.state is ItemState.QUEUED:
            if self._queue.remove(item):  # else it is being refused at this very moment
                self._end(item, why)
                self._leave(item)
                self._scheduler.changed()
        else:
            self._end(item, why)
            self._pool.cancel(item)

    def _expire(self, item: Item, error: ServeError) -> None:
        self._end(item, error)
        self._leave(item)

    def _strand(self, why: ServeError) -> None:
        """No instance is open and none could be opened: nobody is left waiting for one."""
        for item in list(self._queue.entries()):
            item.cancel(why)

    def _end(self, item: Item, error: ServeError) -> None:
        item.state = ENDED
        if item.timer is not None:
            item.timer.cancel()
        self._counters.failed(item, error.code, self._now())
        self._give(item, ResponsePart(error=error, model=self.spec.name, version=self.spec.version))

    def _answer(self, item: Item, payload: Payload | None, parameters: Mapping[str, Scalar]) -> None:
        item.state = ENDED
        if item.timer is not None:
            item.timer.cancel()
        wanted = item.operation.outputs
        if wanted and isinstance(payload, Tensors):
            names = {output.name for output in wanted}
            payload = Tensors(tuple(tensor for tensor in payload.items if tensor.name in names))
        try:
            item.sink(ResponsePart(payload, None, None, True, parameters, self._name, self._version))
        except Exception:
            log.exception(SINK_FAILED, self._name)

    def _give(self, item: Item, part: ResponsePart) -> None:
        try:
            item.sink(part)
        except Exception:
            log.exception(SINK_FAILED, self._name)

    def _leave(self, item: Item) -> None:
        """The item is neither queued nor in an instance any more."""
        lease = item.operation.payload.lease
        if lease is not None:
            lease.release()
        self._settle(1)

    def _settle(self, items: int) -> None:
        """So many have left."""
        self._active -= items
        if self._active or not self._idle_waiters:
            return
        for waiter in self._idle_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._idle_waiters.clear()
