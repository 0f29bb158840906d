"""One loaded version of one model: the path of an item from the door to its answer.

It joins admission, queue, scheduler, pool and counters, and is the only one that ends items. It knows neither
versions beside its own nor how it came to be loaded.
"""

import asyncio
from collections.abc import Collection
from collections.abc import Sequence as ItemList

from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.pool import InstanceSlot
from trivium.core.instances.run_watch import watched_runs
from trivium.core.instances.scaler import Group, Launch, Scaler
from trivium.core.models.broadcasts import FIRST_CALL, Broadcasts
from trivium.core.models.model_context import PLAIN, ModelContext
from trivium.core.models.model_pool import make_pool
from trivium.core.models.model_status import ModelStatus
from trivium.core.observability.recording import heard_by
from trivium.core.observability.statistics import ItemLog
from trivium.core.queueing.admission import AdmissionController
from trivium.core.queueing.answer_rules import answer_rules
from trivium.core.queueing.call_graph import PendingCall
from trivium.core.queueing.payload_adapter import payload_adapter
from trivium.core.queueing.queue import RequestQueue
from trivium.core.queueing.responses import answering
from trivium.core.queueing.sequencer import ResponseSequencer
from trivium.core.request import GIVEN_UP, Item
from trivium.core.schedulers.dynamic import DynamicScheduler
from trivium.core.schedulers.policy import BatchingSettings
from trivium.core.schedulers.sequence.scheduler import SequenceScheduler
from trivium.core.streams.held import HeldStreams
from trivium.core.workers.process_launcher import instance_name
from trivium.types import reasons
from trivium.types.buffers import Lease
from trivium.types.debug_state import ModelDebugState, SequenceDebugState
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.generation import Generate, Generated
from trivium.types.interfaces import Check, Clock, Sink
from trivium.types.operations import Broadcast, CallRef, Infer, ModelDescription, ResponsePart
from trivium.types.payload import Payload, Raw, Tensors, cover
from trivium.types.running import Dead, Executed, InstanceId, ItemId, Part, Placement, Stepped
from trivium.types.schedules import Graph, Sequence
from trivium.types.spec import Device, InstanceGroup, Isolation, ModelSpec, StandingCall
from trivium.types.state import ItemState
from trivium.types.statistics import VersionStatistics

ENDED = ItemState.ENDED  # members of an Enum are slow to look up in its class
COLD_SECONDS = 1.0
"""After which a request to a model that was scaled to no instance may be sent again."""


class ServedModel:
    """Serves the items of one model version until it is closed. Used on the loop only."""

    def __init__(
        self,
        spec: ModelSpec,
        isolation: Isolation,
        launch: Launch,
        mailbox: Mailbox,
        clock: Clock,
        context: ModelContext = PLAIN,
    ) -> None:
        self.spec = spec
        self.takes = context.takes
        self._context = context
        self._tracing = context.tracing
        self._clock = clock
        # The pipeline, in the order in which an item passes it.
        self._adapter = payload_adapter(spec, context.takes, answer_rules(spec, context.binds_answers))
        self._counters, self._responses = answering(
            spec, self._adapter, clock.now, context.measures, context.recorder
        )
        self._own_log = self._counters.log
        has_rules = isinstance(spec.scheduling, Sequence) or spec.limits.item_deadline is not None
        self._is_plain = self._adapter.levels.are_plain and not has_rules
        self._pool, self._member = make_pool(self, mailbox, clock, context)
        self._queue = RequestQueue(self._pool.free)
        self._admission = AdmissionController(
            spec, self._adapter.levels, self._queue, self._pool, self._counters
        )
        self._sequencer = ResponseSequencer() if spec.in_order else None
        self._run_watch, self._start = watched_runs(spec.name, spec.limits.run_deadline, self._pool, clock)
        self._sequences: SequenceScheduler | None = None
        self._scheduler: SequenceScheduler | DynamicScheduler
        if isinstance(spec.scheduling, Sequence):
            self._scheduler = self._sequences = SequenceScheduler(
                spec, self._queue, self._pool, clock, self._start, self._expire
            )
            launch = self._sequences.around(launch)
        else:
            settings = BatchingSettings.of(spec.batching, spec.dynamic)
            self._scheduler = DynamicScheduler(self._queue, settings, clock, self._start, self._expire)
        self._streams = HeldStreams(self, self._pool, context.store, clock)
        self._broadcasts = Broadcasts(spec, self._run_on, self._pool.slots)
        if spec.functions:
            launch = self._broadcasts.around(launch)
        groups = [Group(group, isolation) for group in spec.groups]
        self._scaler = Scaler(self._pool, groups, launch, clock, self, spec.limits)
        self.status = ModelStatus(spec, self._pool, self._scaler, clock)
        self.end_waits = self._scaler.end_waits  # of those who wait until it is scaled
        self._active = 0
        self._reading: dict[ItemId, Item] = {}  # whose bodies are read in a thread
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._follow_scaling()

    def _follow_scaling(self) -> None:
        """Let decisions and the lead of instances know whether the number of instances may change."""
        is_elastic = self._scaler.is_elastic
        self._is_cold = self._scaler.is_cold
        self._scheduler.report_to(self._scaler.review if is_elastic else None)
        self._pool.keep_order(self._is_plain and not is_elastic)

    async def open(self) -> None:
        """Open the instances. Raises the first one's LOAD_FAILED, with nothing left open."""
        await self._scaler.start()

    async def idle(self) -> None:
        """Wait until no item is in the queue or in an instance."""
        if self._active:
            waiter = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter

    async def close(self, why: ServeError = GIVEN_UP) -> None:
        """Close the instances; only when idle, or to give up what is left."""
        waiting = (
            *self._reading.values(),
            *self._queue.entries(),
            *self._pool.held(),
            *self._streams.items(),
        )
        for item in waiting:
            item.cancel(why)
        self._scheduler.close()
        self._streams.close()
        await self._scaler.close(why)
        for held in (self._run_watch, self._context.cache, self._member, self._context.arena):
            if held is not None:
                held.close()
        if self._context.prepared is not None:
            self._context.prepared.undo(self._context.arena)

    # -- in ------------------------------------------------------------------------------------------------

    def submit(self, number: ItemId, infer: Infer, sink: Sink) -> Item:
        """Queue an item, or refuse it through its sink."""
        item = Item(number, infer, sink, self._clock.now(), self)
        if self._sequencer is not None:
            item.sink = self._sequencer.join(number, sink)
        if infer.payload.lease is not None:
            infer.payload.lease.hold()
        self._active += 1
        if infer.parent is not None:
            self._pool.call_begun()
        try:
            if self._is_cold or not self._pool.size or infer.adapter:
                self._check_can_serve(infer.adapter)
            if self._adapter.is_slow(infer.payload):
                self._read_elsewhere(item)
            else:
                self._admit(item)
        except ServeError as error:
            self._refuse(item, frameless(error))
        return item

    def _admit(self, item: Item) -> None:
        """Judge an item, and put it into the queue. Raises ServeError for one that is refused."""
        self._adapter.admit(item)
        infer = item.operation
        if type(infer.payload) is Generate:
            self._broadcasts.check(infer.payload.adapter)
        if infer.payload.lease is not None:
            cover(infer.payload)
        if self._tracing.is_on:
            self._tracing.admitted(item, self.spec)
        if self._context.cache is not None and self._context.cache.answers(item, self._counters):
            self.leave(item)
            return
        if not self._is_plain:
            self._rank(item, infer)
        if self._active > self._admission.limit:
            self._admission.check_room(item.level, None, self._scaler.can_grow)
        if infer.parent is not None:
            self._context.calls.check(self.spec.name, self._scaler, infer.parent)
            self._context.calls.begun(
                PendingCall(item.item, self.spec.name, self._scaler, infer.parent, item.cancel)
            )
        if infer.deadline is not None and item.timer is None:
            item.keep_deadline(infer.deadline, self._clock)
        self._queue.add(item)
        self._scheduler.changed()
        if self._streams.kept:
            self._streams.look_soon()

    def _read_elsewhere(self, item: Item) -> None:
        """Have a long body read where nobody else waits for it; then it is judged as any other."""
        infer = item.operation
        if infer.deadline is not None:
            item.keep_deadline(infer.deadline, self._clock)
        self._reading[item.item] = item

        def done(found: Infer | ServeError) -> None:
            del self._reading[item.item]
            if item.state is ItemState.ENDED:  # its client has left meanwhile
                self.leave(item)
                return
            try:
                if isinstance(found, ServeError):
                    raise anew(found)
                item.operation = found
                self._admit(item)
            except ServeError as error:
                self._refuse(item, frameless(error))

        self._context.offload(lambda: self._adapter.read(infer), done)

    @property
    def standing(self) -> tuple[StandingCall, ...]:
        """Return the calls that each later instance makes before it serves."""
        return self._broadcasts.standing

    async def broadcast(self, operation: Broadcast) -> Payload:
        """Call a function of user code on all instances. Raises as `Broadcasts.broadcast`."""
        return await self._broadcasts.broadcast(operation)

    async def _run_on(self, number: InstanceId, item: ItemId, infer: Infer) -> Payload:
        """Run one item on one instance, behind what that has in hand. Raises what it ends with."""
        done: asyncio.Future[ResponsePart] = asyncio.get_running_loop().create_future()

        def sink(part: ResponsePart) -> None:
            if part.final and not done.done():
                done.set_result(part)

        self._active += 1
        self._start(number, [Item(item, infer, sink, self._clock.now(), self)])
        self._streams.look_soon()
        part = await done
        if part.error is not None:
            raise anew(part.error)
        return part.payload or Raw(())

    def _refuse(self, item: Item, error: ServeError) -> None:
        if self._sequencer is not None:
            self._sequencer.leave(item.item)
        self._expire(item, error)

    def _rank(self, item: Item, infer: Infer) -> None:
        longest = self.spec.limits.item_deadline
        if longest is not None and (infer.deadline is None or longest < infer.deadline):
            item.keep_deadline(longest, self._clock, reasons.ITEM_DEADLINE)
        if self._sequences is None:
            self._admission.rank(item, infer)
            return
        if self._active > self._admission.limit:
            self._admission.check_room(item.level, None, self._scaler.can_grow)
        if infer.parent is not None:
            self._context.calls.check(self.spec.name, self._scaler, infer.parent)
        self._sequences.admit(item)

    def scale(self, minimum: int | None, maximum: int | None, device: Device | None) -> None:
        """Give the instance groups new bounds from now on, None leaving one as it is. Raises as `Scaler.scale`;
        UNSUPPORTED for a graph, which has no instances of its own.
        """
        if isinstance(self.spec.scheduling, Graph):
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{self.spec.name}' is a graph and has no instances of its own. Scale the models of its steps.",
            )
        self._scaler.scale(minimum, maximum, device)
        self._follow_scaling()
        self._scheduler.changed()

    async def scaled(self) -> None:
        """Wait until the bounds hold. Raises what keeps an instance from opening."""
        await self._scaler.scaled(self.spec.name)

    @property
    def is_cold(self) -> bool:
        """Was it scaled to no instance at all?"""
        return self._is_cold

    @property
    def groups(self) -> tuple[InstanceGroup, ...]:
        """Return the instance groups with the bounds that hold now."""
        return self._scaler.groups()

    def described(self, description: ModelDescription) -> ModelDescription:
        """Add what is known of its instances and its queue."""
        return self.status.described(description, self._queue.count, self._broadcasts.standing)

    def debug_state(self) -> ModelDebugState:
        """Copy what the model holds at this moment, for a developer who debugs."""
        sequences, arena = self._sequences, self._context.arena
        return ModelDebugState(
            active=self._active,
            queued=self._queue.count,
            ahead=self._pool.ahead,
            lead=self._pool.lead,
            calls=self._pool.calls,
            instances={n: slot.debug_state() for n, slot in self._pool.slots().items()},
            sequences=SequenceDebugState() if sequences is None else sequences.debug_state(),
            failures=self._scaler.failures(),
            can_grow=self._scaler.can_grow,
            arena_lent=0 if arena is None else arena.lent,
            unread=len(self._streams.kept),
        )

    def _check_can_serve(self, adapter: str) -> None:
        """Raises NOT_READY where no instance is open, nor will be by itself, MODEL_FAILED for an unknown adapter."""
        if self._is_cold:
            raise ServeError(
                Code.NOT_READY,
                f"Model '{self.spec.name}' version {self.spec.version} was scaled to no instance. Scale it up, and "
                "send the request again.",
                COLD_SECONDS,
                info=ErrorInfo.of(reasons.SCALED_TO_NONE, model=self.spec.name, version=self.spec.version),
            )
        if self._scaler.is_failed:
            raise self.failure()
        self._broadcasts.check(adapter)

    def lend(self, size: int, lead: int = 0) -> Lease | None:
        """Memory that its workers share, for a request's body; None where it has none, or no room in it."""
        return None if self._context.arena is None else self._context.arena.lend(size, lead)

    def checks(self) -> list[Check]:
        """Return those open instances whose user code has a say in whether it is ready."""
        return [
            check for slot in self._pool.slots().values() if slot.instance and (check := slot.instance.check)
        ]

    @property
    def deaths(self) -> Collection[str]:
        """Say what became of the last instances that died."""
        return [death.post_mortem for death in self._scaler.deaths]

    def listen(self, listener: ItemLog | None) -> None:
        """Let one more hear how items end, in place of the one before; None: nobody more."""
        self._counters.log = heard_by(self._own_log, listener)

    @property
    def is_failed(self) -> bool:
        """Have its instances failed so often that no more are opened?"""
        return self._scaler.is_failed

    def obstacle(self) -> str:
        """Say why it can serve nothing at this moment; empty where it can."""
        if self._scaler.is_failed:
            return self.failure().message
        return "It was scaled to no instance." if self._is_cold else self._scaler.obstacle()

    def failure(self) -> ServeError:
        """Why it serves no more, once it has been given up."""
        return self._scaler.failure(self.spec.name)

    # -- out -----------------------------------------------------------------------------------------------

    def executed(self, run: Executed, items: ItemList[Item]) -> None:
        """Answer the items of an execution, each with its own outcome."""
        if self._tracing.is_on:
            self._tracing.executed(run)
        if self._streams.kept:
            run, items = self._streams.without_kept(run, items)
        now, rows = self._clock.now(), 0
        answer, rules = self._responses.answer, self._adapter.answers
        done: list[Item] = []
        assert len(items) == len(run.outcomes), "an execution ended with fewer or more outcomes than items"
        for item, outcome in zip(items, run.outcomes):  # noqa: B905 - a keyword's argument is dear
            operation = item.operation
            rows += item.rows
            if item.state is ENDED:
                self._counters.wasted += 1
            elif type(outcome) is not Tensors and isinstance(outcome, ServeError):
                self._responses.end(item, outcome)
            elif rules and type(outcome) is Tensors and (fault := rules.fault(outcome, item.rows)):
                self._responses.end(item, fault)
            elif self._responses.answer_raw(item, outcome) if type(outcome) is Raw else answer(item, outcome):
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
        if self._tracing.is_on and part.final and type(part.payload) is Generated:
            self._tracing.generated(item.item, part.payload.usage)
        if (item.is_held or self._streams.kept) and self._streams.takes(item):
            self._streams.keep(item, part)
            return
        self.pass_on(item, part)
        if part.final:
            self.leave(item)

    def pass_on(self, item: Item, part: Part) -> None:
        """See `StreamingModel`."""
        if not self._responses.part(item, part):
            self._pool.cancel(item)

    def is_waited_for(self, item: Item) -> bool:
        """See `StreamingModel`. The requests through a graph share nothing; a sequence waits for one instance, and one
        within the rate limiter's bounds for what others have, so that it may wait though an instance is free.
        """
        is_free = self._pool.startable > 0 and self._sequences is None and self._member is None
        if (self._queue.count and not is_free) or (self._member is not None and self._member.is_awaited()):
            return True
        return not isinstance(self.spec.scheduling, Graph) and self._pool.shares(item)

    def stepped(self, step: Stepped) -> None:
        """An instance has computed a step for its items."""
        self._counters.stepped(self.spec.name, step)

    def again(self, item: Item) -> None:
        """It was run, and its model wants to go on with it."""
        assert self._sequences is not None
        item.state, item.instance = ItemState.QUEUED, 0
        self._sequences.again(item)

    def end_sequences(self, sequences: ItemList[str]) -> None:
        """See `PooledModel`."""
        assert self._sequences is not None
        self._sequences.end(sequences)

    def stale(self) -> None:
        """An instance wants to be replaced."""
        self._scaler.review()

    def died(self, slot: InstanceSlot, fate: Dead, lost: ItemList[Item], recalled: ItemList[Item]) -> None:
        """Queue again what a dead instance had not begun, in front and in order; end the rest. In this order,
        since whoever is told may cancel at once what was recalled.
        """
        death = self.status.death(slot.placement.name, fate)
        self._scaler.died(slot, death)
        self._context.news.tell(death)
        error = ServeError(
            Code.WORKER_DIED,
            f"An instance of model '{self.spec.name}' died. {death.post_mortem}",
            info=_death(self.spec.name, slot),
        )
        lost = [*lost, *(item for item in recalled if item.item >= FIRST_CALL)]  # for this one alone
        for item in reversed([item for item in recalled if item.item < FIRST_CALL]):
            item.state, item.instance = ItemState.QUEUED, 0
            self._queue.put_back(item)
        for item in lost:
            if self._streams.kept and self._streams.lost(item, error):
                continue
            if item.state is not ENDED:
                self._responses.end(item, error)
            self.leave(item)
        self._scaler.review()
        if self._scaler.is_failed:
            self.fail_waiting(self.failure())
        self._context.calls.review()

    def freed(self) -> None:
        """Credits came back, or an instance was opened."""
        self._pool.observe(self._counters.mean_run)
        if self._streams.kept:
            self._streams.look_soon()
        if self._queue.count or self._sequences is not None:
            self._scheduler.changed()
        elif self._scaler.is_elastic:
            self._scaler.review()

    def report(self) -> VersionStatistics:
        """The counters, frozen."""
        waiting, running = self._queue.count + self._pool.ahead, self._pool.running
        return self._counters.report(self.spec.name, self.spec.version, waiting, running)

    def cancel(self, item: Item, why: ServeError) -> None:
        """End it with `why`, wherever it is. It waits for no other's answer."""
        if self._sequencer is not None:
            self._sequencer.leave(item.item)
        if item.state is ItemState.QUEUED:
            if item.item in self._reading:  # who reads its body lets go of it in the end
                self._responses.end(item, why)
            elif self._queue.remove(item):  # else it is being refused at this very moment
                self._responses.end(item, why)
                self.leave(item)
                self._scheduler.changed()
        else:
            self._responses.end(item, why)
            if self._streams.kept and self._streams.drop(item):
                self.leave(item)
            else:
                self._pool.cancel(item)

    def _expire(self, item: Item, error: ServeError) -> None:
        self._responses.end(item, error)
        self.leave(item)

    def oldest_run(self) -> float:
        """Return for how many seconds its oldest run has been in hand; 0 where nothing runs."""
        return max(self._pool.run_ages(), default=0.0)

    def waiting(self) -> int:
        """Count the items that wait in the queue."""
        return self._queue.count

    def look_again(self) -> None:
        """See `PooledModel`."""
        self._scheduler.changed()

    def awaited(self) -> None:
        """See `PooledModel`."""
        self._streams.look_soon()

    def resume(self, item: Item) -> None:
        """The item's receiver has room again."""
        if self._streams.kept:
            self._streams.resume(item)

    def instance_failed(self) -> None:
        """An instance did not open: end the calls that can never be served now."""
        self._context.calls.review()

    def replacing(self, gone: Placement, seconds: float) -> None:
        """See `ScaledModel`."""
        if (recorder := self._context.recorder) is not None:
            recorder.replacing(instance_name(self.spec, gone), seconds)

    def fail_waiting(self, why: ServeError) -> None:
        """No instance is open and none could be opened: nobody is left waiting for one."""
        if self._scaler.is_failed:
            self._context.given_up(self.spec, self.failure())
        elif self._context.is_patient():
            return
        for item in list(self._queue.entries()):
            item.cancel(why)

    def leave(self, item: Item) -> None:
        """The item is neither queued nor in an instance any more."""
        if item.operation.parent is not None:
            self._end_call(item.item, item.operation.parent)
        if item.operation.payload.lease is not None:
            item.operation.payload.lease.release()
        self._active -= 1
        self._settle()

    def _end_call(self, number: ItemId, parent: CallRef) -> None:
        self._context.calls.ended(number, parent)
        self._pool.call_ended()

    def _settle(self) -> None:
        """Tell those who wait for it that no item is left, if so."""
        while not self._active and self._idle_waiters:
            waiter = self._idle_waiters.pop()
            if not waiter.done():
                waiter.set_result(None)


def _death(model: str, slot: InstanceSlot) -> ErrorInfo | None:
    """Return how an instance was lost, in a form for programs; None where there is nothing to say."""
    if slot.in_flight:
        return ErrorInfo.of(reasons.DIED_WITH_MANY, model=model, killed=slot.was_killed)
    return ErrorInfo.of(reasons.KILLED, model=model, killed=True) if slot.was_killed else None
