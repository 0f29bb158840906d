"""Carries out what the sequence policy decides, and keeps the books of sequences: who is let in, who has which slot.

Admission and books are one matter: what a request may be depends on those that arrived before it. It knows no wire.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import cast

import msgspec

from trivium.core.clock import Alarm
from trivium.core.instances.pool import Pool
from trivium.core.instances.scaler import Launch
from trivium.core.queueing.queue import RequestQueue
from trivium.core.request import Item
from trivium.core.schedulers.dynamic import Reject, Start
from trivium.core.schedulers.sequence import policy as sequence_policy
from trivium.core.schedulers.sequence.controls import Controls
from trivium.core.schedulers.sequence.policy import decide
from trivium.core.schedulers.sequence.slots import around
from trivium.core.schedulers.sequence.states import States
from trivium.core.schedulers.sequence.unannounced import place_of
from trivium.types import reasons
from trivium.types.debug_state import SequenceDebugState
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock
from trivium.types.operations import DESCRIBE, SequenceRef
from trivium.types.payload import Tensors
from trivium.types.running import InstanceId, ItemId
from trivium.types.schedules import Sequence, Unannounced
from trivium.types.scheduling import SequenceDecision, SequenceId, SequenceSlot
from trivium.types.spec import ModelSpec

MOST_REMEMBERED = 10_000
"""Sequences that ended otherwise than well and of which that is known, so that a late request can be told."""


FIRST_OWN = 1 << 30
"""Ids from here on are those of requests that are sequences of their own; they fit into any type of id."""


class SequenceTable:
    """The sequences of one model version, as the policy sees them."""

    def __init__(self, queue: RequestQueue, pool: Pool, remembers: bool = True) -> None:
        """Make an empty one. With `remembers` it can tell of sequences that did not end well."""
        self._remembers = remembers
        self.entries = queue.entries
        self.free = queue.free
        self._pool = pool
        self.open: dict[SequenceId, SequenceSlot] = {}
        self._running: dict[ItemId, SequenceSlot] = {}
        self._gone: OrderedDict[SequenceId, Code] = OrderedDict()

    def instances(self) -> Collection[InstanceId]:
        """Those that are open."""
        return self._pool.slots().keys()

    def records(self) -> Iterable[SequenceSlot]:
        """All that are not over."""
        return self.open.values()

    def slot(self, sequence: SequenceId) -> int:
        """The row that a sequence has."""
        return self.open[sequence].slot

    def running(self) -> tuple[ItemId, ...]:
        """List the items that an instance has for a sequence."""
        return tuple(self._running)

    def ending_of(self, sequence: SequenceId) -> Code | None:
        """Return how a sequence ended that did not end well, if that was not long ago."""
        return self._gone.get(sequence)

    def arrived(self, ref: SequenceRef, now: float, is_last: bool) -> None:
        """A request of it was let in."""
        record = self.open.get(ref.id)
        if record is None:
            record = self.open[ref.id] = SequenceSlot(ref.id, now, since=now)
            self._gone.pop(ref.id, None)
        record.quiet_since = now
        record.is_closed = is_last

    def started(self, item: Item) -> None:
        """A request of it was handed to its instance."""
        ref = item.sequence
        assert ref is not None
        record = self.open[ref.id]
        record.in_work += 1
        record.is_ending = record.is_ending or ref.ends
        record.has_begun = True
        self._running[item.item] = record

    def returned(self, item: Item, now: float) -> None:
        """Its instance has given a request back, which is to go on there."""
        record = self._running.pop(item.item, None)
        if record is not None:
            record.in_work -= 1
            record.is_ending = False
            record.quiet_since = now

    def settle(self, now: float) -> None:
        """Find those whose request is in no instance any more."""
        slots = self._pool.slots()
        for number, record in list(self._running.items()):
            slot = slots.get(record.instance)
            if slot is None or number not in slot.held:
                del self._running[number]
                record.in_work -= 1
                record.quiet_since = now

    def end(self, sequence: SequenceId) -> None:
        """Note that a sequence is over once nothing of it is in work: what waits begins it anew."""
        record = self.open.get(sequence)
        if record is not None:
            record.is_ending = True

    def apply(self, decision: SequenceDecision, now: float) -> None:
        """Carry out what the policy decided about slots."""
        for sequence in decision.unbind:
            record = self.open[sequence]
            record.instance = record.slot = record.in_work = 0
            record.is_ending = record.has_begun = False
            record.since = now
        for release in decision.release:
            del self.open[release.sequence]
            if release.why is not None and self._remembers:
                self._gone[release.sequence] = release.why
                if len(self._gone) > MOST_REMEMBERED:
                    self._gone.popitem(last=False)
        for bind in decision.bind:
            record = self.open[bind.sequence]
            record.instance, record.slot = bind.instance, bind.slot


class SequenceScheduler:
    """One per model version. `start` runs a batch on an instance; `reject` answers an item of a broken sequence;
    `decided` is told of every decision carried out.
    """

    def __init__(
        self, spec: ModelSpec, queue: RequestQueue, pool: Pool, clock: Clock, start: Start, reject: Reject
    ) -> None:
        assert isinstance(spec.scheduling, Sequence)
        self._name = spec.name
        self._idle_seconds = spec.scheduling.idle_seconds
        self._settings = sequence_policy.SequenceSettings.of(spec.batching, spec.scheduling)
        self._controls = Controls(spec.name, spec.scheduling.controls, spec.batching.batch_axis)
        self._queue = queue
        self._clock = clock
        self._start = start
        self._reject = reject
        self._pool = pool
        self._unannounced = spec.scheduling.unannounced
        self.books = SequenceTable(queue, pool, self._unannounced is None)
        self._states = States(spec, spec.scheduling.states) if spec.scheduling.states else None
        self._is_iterative = spec.scheduling.is_iterative
        self._own_ids = itertools.count(FIRST_OWN)
        self._decided: Callable[[], None] | None = None
        self._alarm = Alarm(clock, self.pump)
        self._is_due = self._is_closed = False

    def around(self, launch: Launch) -> Launch:
        """Instances that keep states, if the model has any, and that get a batch with a row for every slot, if that is
        how it tells sequences apart.
        """
        if self._states is not None:
            launch = self._states.around(launch)
        if self._settings.is_direct and self._settings.slots > 1:
            return around(launch, self.books.slot, self._controls)
        return launch

    def admit(self, item: Item) -> None:
        """Let a request in and give it its control inputs. Raises ServeError where it belongs to no sequence, or to
        none that goes on. Nothing may refuse it afterwards.
        """
        ref = item.sequence
        if self._unannounced is not None:
            ref = place_of(item.operation, self._unannounced)
            if item.operation.method != DESCRIBE:
                self._check_room(ref, self._unannounced)
        is_own = ref is None and self._is_iterative
        if is_own:
            ref = SequenceRef(next(self._own_ids), starts=True)
        if ref is None:
            text = (
                f"Model '{self._name}' works on sequences, and the request names none. Give it the id of one."
            )
            raise ServeError(Code.INVALID, text, info=ErrorInfo.of(reasons.NO_SEQUENCE, model=self._name))
        if item.rows != 1:
            text = f"Model '{self._name}' takes one row of a sequence at a time; the request has {item.rows}. Send one."
            raise ServeError(Code.INVALID, text, info=ErrorInfo.of(reasons.SEQUENCE_ROWS, model=self._name))
        if not ref.starts and self._unannounced is None:
            self._check_open(ref)
        payload = item.operation.payload
        if self._controls.are_some:
            assert isinstance(payload, Tensors)  # models with control inputs declare their inputs
            payload = Tensors(payload.items + self._controls.of(ref), payload.lease)
        self.books.arrived(ref, self._clock.now(), is_own or ref.ends)
        item.operation = msgspec.structs.replace(item.operation, payload=payload, sequence=ref)

    def again(self, item: Item) -> None:
        """A request that was run is to go on, where it was: now it starts nothing. One that is a sequence of its own
        goes behind all others, one of a client's sequence before what follows in that.
        """
        ref, payload = item.sequence, item.operation.payload
        assert ref is not None
        assert isinstance(payload, Tensors)
        follows = SequenceRef(ref.id, False, ref.ends)
        items = self._controls.off(payload.items) + self._controls.of(follows)
        item.operation = msgspec.structs.replace(
            item.operation, payload=Tensors(items, payload.lease), sequence=follows
        )
        self.books.returned(item, self._clock.now())
        if isinstance(ref.id, int) and ref.id >= FIRST_OWN:
            self._queue.add(item)
        else:
            self._queue.put_back(item)
        self.changed()

    def report_to(self, decided: Callable[[], None] | None) -> None:
        """Call `decided` behind every decision carried out from now on; None calls nobody."""
        self._decided = decided

    def changed(self) -> None:
        """Act as `DynamicScheduler.changed` does."""
        if not self._is_due:
            self._is_due = True
            self._clock.call_soon(self.pump)

    def pump(self) -> None:
        """Decide and act once."""
        self._is_due = False
        if self._is_closed:
            return
        now = self._clock.now()
        books = self.books
        books.settle(now)
        decision = decide(books, self._settings, now)
        books.apply(decision, now)
        if self._states is not None:
            for sequence in (*decision.unbind, *(release.sequence for release in decision.release)):
                self._states.forget(sequence)
        admitted = self._pool.admitted([cut.instance for cut in decision.cuts])
        for cut in decision.cuts:
            if cut.instance not in admitted:
                continue  # it waits on, in its place
            items = self._alike(cast(list[Item], cut.entries))
            self._queue.take(items)
            for item in items:
                books.started(item)
            self._start(cut.instance, items)
        if self._settings.overlaps and decision.cuts and self._queue.count:
            self.changed()  # what follows in those sequences may go as well
        if decision.wake_at != self._alarm.when:
            self._alarm.set(decision.wake_at)
        refused = [(cast(Item, entry), code) for entry, code in decision.reject]
        for item, _ in refused:
            self._queue.remove(item)
        for item, code in refused:
            assert item.sequence is not None
            self._reject(item, self._why(item.sequence.id, code))
        if self._decided is not None:
            self._decided()

    def _alike(self, items: list[Item]) -> list[Item]:
        """Those that can run with the first one, by their states; the others go with the next batch."""
        states = self._states
        if states is None or not states.varies:
            return items
        keys = [states.shape_key(item.sequence) for item in items if item.sequence is not None]
        alike = [item for item, key in zip(items, keys, strict=True) if key == keys[0]]
        if len(alike) < len(items):
            self.changed()
        return alike

    def debug_state(self) -> SequenceDebugState:
        """Copy what is known of the sequences at this moment, for a developer who debugs."""
        return SequenceDebugState(tuple(self.books.open), self.books.running(), self._alarm.when is not None)

    def close(self) -> None:
        """Forget the timer and decide nothing more; the queue is empty or about to be."""
        self._is_closed = True
        self._alarm.set(None)

    def end(self, sequences: Iterable[SequenceId]) -> None:
        """Note that these are over, by what their model says; which of them there are is not known."""
        for sequence in sequences:
            self.books.end(sequence)
        self.changed()

    def _check_room(self, ref: SequenceRef, rules: Unannounced) -> None:
        """Raises QUEUE_FULL where there are too many sequences for a new one, or too much of this one waits."""
        books, record = self.books, self.books.open.get(ref.id)
        shown = f"sequence {str(ref.id)[:80]!r} of model '{self._name}'"
        if record is not None:
            waiting = sum(
                item.sequence is not None and item.sequence.id == ref.id for item in books.entries()
            )
            if waiting + (record.in_work > 0) <= rules.most_waiting:
                return
            text = (
                f"Of {shown} {waiting} requests wait, as many as may. Send the next one once one of them has been "
                "answered, or let more wait."
            )
        elif len(books.open) < rules.most:
            return
        else:
            now = self._clock.now()
            books.settle(now)
            if len(books.open) - len(decide(books, self._settings, now).release) < rules.most:
                return
            text = (
                f"There is no room for {shown}: {rules.most} are open, as many as may be. End one, wait until one has "
                f"had no request for {self._idle_seconds:g} s, or allow more."
            )
        raise ServeError(Code.QUEUE_FULL, text, info=ErrorInfo.of(reasons.QUEUE_FULL, model=self._name))

    def _check_open(self, ref: SequenceRef) -> None:
        record = self.books.open.get(ref.id)
        if record is not None and not record.is_closed:
            return
        why = self.books.ending_of(ref.id) if record is None else None
        if why is not None:
            raise self._why(ref.id, why)
        raise self._unstarted(ref.id, "has not begun", 0)

    def _unstarted(self, sequence: SequenceId, why: str, idle: float) -> ServeError:
        text = f"Model '{self._name}': the sequence {sequence} {why}. Begin it with a request that starts it."
        facts = ErrorInfo.of(reasons.UNSTARTED, model=self._name, sequence=sequence, idle=idle)
        return ServeError(Code.INVALID, text, info=facts)

    def _why(self, sequence: SequenceId, code: Code) -> ServeError:
        about = f"sequence {sequence} of model '{self._name}'"
        if code is Code.EXPIRED:  # to a client the sequence is unknown by now, as it is in the original
            why = f"had no request for {self._idle_seconds:g} s, and was ended"
            return self._unstarted(sequence, why, self._idle_seconds)
        if code is Code.WORKER_DIED:
            text = f"The {about} is broken: the instance that had its state is gone."
        else:
            text = f"The {about} has not begun: its first request was cancelled or refused."
        return ServeError(code, f"{text} Begin it anew with a request that starts it.")
