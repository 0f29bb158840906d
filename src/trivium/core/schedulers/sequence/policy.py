"""The sequence policy: which sequence has which slot on what instance, and which requests go now. Pure.

The requests of a sequence run one after the other, or overlap, on the instance that has it, until its last one, until
it has been idle for too long or is too old, or until the instance is lost: then nothing but a new beginning can follow,
which any request is where sequences are unannounced. Source of the rules: sheets "triton", section 7.7, and
"torchserve", section 4.5.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence

import msgspec

from trivium.types.errors import Code
from trivium.types.running import InstanceId
from trivium.types.schedules import Sequence as SequenceSpec
from trivium.types.schedules import Strategy
from trivium.types.scheduling import (
    Alone,
    Bind,
    Cut,
    Entry,
    Release,
    SequenceDecision,
    SequenceId,
    SequenceSlot,
    SequenceView,
)
from trivium.types.spec import Batching


class SequenceSettings(msgspec.Struct, frozen=True, gc=False):
    """Holds what the policy needs of a spec: `slots` sequences per instance, `max_rows` of them in one execution. With
    `any_begins` every request can be the first one of its sequence.
    """

    is_direct: bool
    slots: int
    max_rows: int
    idle_seconds: float
    max_delay: float
    preferred: tuple[int, ...]
    utilization: float
    any_begins: bool = False
    life_seconds: float | None = None
    overlaps: bool = False

    @classmethod
    def of(cls, batching: Batching, sequence: SequenceSpec) -> "SequenceSettings":
        """Read a spec; under the direct strategy each slot is a row; without preferred sizes only a full batch needs
        no wait.
        """
        is_direct = sequence.strategy is Strategy.DIRECT
        rows = batching.max_rows if batching.merge else 1
        unannounced = sequence.unannounced
        return cls(
            is_direct,
            rows if is_direct else max(sequence.candidates, 1),
            rows,
            sequence.idle_seconds,
            sequence.max_delay,
            tuple(sorted(sequence.preferred_rows)) or (rows,),
            sequence.utilization,
            unannounced is not None,
            None if unannounced is None else unannounced.life_seconds,
            sequence.overlaps,
        )


class _Plan:
    """Collects what is found out while the records are looked through, one after the other."""

    def __init__(self, view: SequenceView, settings: SequenceSettings, now: float) -> None:
        self.settings = settings
        self.now = now
        self.decision = SequenceDecision([], [], [], [], [])
        self.times: list[float] = []
        self.taken: dict[InstanceId, set[int]] = {instance: set() for instance in view.instances()}
        self.ready: dict[InstanceId, list[Entry]] = {instance: [] for instance in self.taken}
        self.waiting: dict[SequenceId, list[Entry]] = {}
        self.place: dict[int, int] = {}
        for place, entry in enumerate(view.entries()):
            assert entry.sequence is not None
            self.waiting.setdefault(entry.sequence.id, []).append(entry)
            self.place[entry.item] = place
        self.beginning: list[Entry] = []

    def look(self, record: SequenceSlot) -> None:
        """Decide what becomes of a sequence now: it runs, waits in its slot, ends, or wants to begin."""
        entries = self.waiting.get(record.id, ())
        if record.instance not in self.taken:
            self._begin_anew(record, entries, Code.WORKER_DIED if record.instance else Code.CANCELLED)
        elif record.in_work:
            self.taken[record.instance].add(record.slot)
            if self.settings.overlaps and not record.is_ending:
                self._line_up(record, entries)
        elif record.is_ending:
            self._begin_anew(record, entries, None)
        elif not record.has_begun and not (entries and self._begins(entries[0])):
            self._begin_anew(record, entries, Code.CANCELLED)
        elif entries:
            self.taken[record.instance].add(record.slot)
            self._line_up(record, entries)
        elif record.is_closed:
            self.decision.release.append(Release(record.id, None))
        elif (end := self._end_of(record)) <= self.now:
            self.decision.release.append(Release(record.id, Code.EXPIRED))
        else:
            self.taken[record.instance].add(record.slot)
            self.times.append(end)

    def _line_up(self, record: SequenceSlot, entries: Sequence[Entry]) -> None:
        """Let the next request of a sequence run, or, where they overlap, all up to its last one."""
        for entry in entries if self.settings.overlaps else entries[:1]:
            self.ready[record.instance].append(entry)
            if entry.sequence is not None and entry.sequence.ends:
                return

    def _end_of(self, record: SequenceSlot) -> float:
        """Return when a sequence is over if no further request of it comes."""
        idle, life = record.quiet_since + self.settings.idle_seconds, self.settings.life_seconds
        return idle if life is None else min(idle, record.since + life)

    def _begins(self, entry: Entry) -> bool:
        return self.settings.any_begins or (entry.sequence is not None and entry.sequence.starts)

    def _begin_anew(self, record: SequenceSlot, entries: Sequence[Entry], why: Code | None) -> None:
        """It has no slot, or has it no more. Only a request that starts it can go on; those in front of it cannot."""
        first = next((i for i, entry in enumerate(entries) if self._begins(entry)), len(entries))
        self.decision.reject.extend((entry, why or Code.CANCELLED) for entry in entries[:first])
        if first == len(entries):
            self.decision.release.append(Release(record.id, why))
            return
        if record.instance:
            self.decision.unbind.append(record.id)
        self.beginning.append(entries[first])

    def bind(self) -> None:
        """Give slots to sequences in the order of their arrival, on the instance that has the fewest."""
        slots = self.settings.slots
        for entry in sorted(self.beginning, key=lambda entry: self.place[entry.item]):
            instance = min(self.taken, key=lambda instance: len(self.taken[instance]), default=None)
            if instance is None or len(self.taken[instance]) >= slots:
                return
            taken = self.taken[instance]
            slot = next(slot for slot in range(slots) if slot not in taken)
            taken.add(slot)
            assert entry.sequence is not None
            self.decision.bind.append(Bind(entry.sequence.id, instance, slot))
            self.ready[instance].append(entry)

    def cut(self, free: Iterable[InstanceId]) -> None:
        """A batch for each instance that is free and has something to do. One whose requests overlap has a credit for
        each item.
        """
        if self.settings.overlaps:
            self._hand_over(free)
            return
        for instance in dict.fromkeys(free):
            heads = sorted(self.ready.get(instance, ()), key=lambda entry: self.place[entry.item])
            batch, is_closed = _gather(heads, self.settings.max_rows)
            if not batch:
                continue
            due = min(entry.enqueued_at for entry in batch) + self.settings.max_delay
            if due > self.now and not is_closed and type(batch[0].shape_key) is not Alone:
                length = _worth(len(batch), self.settings)
                if not length:
                    self.times.append(due)
                    continue
                batch = batch[:length]
            self.decision.cuts.append(Cut(instance, batch))

    def _hand_over(self, free: Iterable[InstanceId]) -> None:
        """Give each instance what is ready for it, one by one, as long as it has a credit."""
        lines = {
            instance: deque(sorted(ready, key=lambda entry: self.place[entry.item]))
            for instance, ready in self.ready.items()
        }
        for instance in free:
            line = lines.get(instance)
            if line:
                self.decision.cuts.append(Cut(instance, [line.popleft()]))


def decide(view: SequenceView, settings: SequenceSettings, now: float) -> SequenceDecision:
    """Return what to do now. At most one request of a sequence is in work at any time, unless they overlap."""
    plan = _Plan(view, settings, now)
    for record in view.records():
        plan.look(record)
    plan.bind()
    plan.cut(view.free())
    decision = plan.decision
    return msgspec.structs.replace(decision, wake_at=min(plan.times, default=None))


def _gather(heads: Collection[Entry], limit: int) -> tuple[list[Entry], bool]:
    """Those of the first one's shape, up to `limit`; and whether the batch is closed: can no later one join it?"""
    batch: list[Entry] = []
    for entry in heads:
        if len(batch) == limit or (batch and entry.shape_key != batch[0].shape_key):
            return batch, True
        batch.append(entry)
    return batch, len(batch) == limit


def _worth(length: int, settings: SequenceSettings) -> int:
    """Count how many of so many need not wait for more; 0 where all shall wait."""
    if settings.is_direct:
        return length if length >= settings.utilization * settings.slots else 0
    return max((size for size in settings.preferred if size <= length), default=0)
