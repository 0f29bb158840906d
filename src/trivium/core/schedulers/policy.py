"""The dynamic policy: which items go together, to which instance, and when to look again. Pure.

A batch is cut only for an instance with a credit. It takes items in the order they are due, while they fit and have one
shape; one that runs alone goes by itself, at once. It goes when it cannot grow, when its oldest item has waited the
delay, or, cut down to that, when it reached a preferred number of rows. Source of the rules: Triton's dynamic batcher,
as its documentation describes it and as it was observed.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from trivium.types.errors import Code
from trivium.types.scheduling import Alone, Cut, Decision, Entry, QueueView
from trivium.types.spec import Batching, Dynamic


class BatchingSettings(msgspec.Struct, frozen=True, gc=False):
    """Holds what the policy needs of a spec. `preferred` ascends and is never empty; `max_delay` is in seconds.

    An item of more than `max_rows` rows goes alone: whether to take one at all is admission's decision.
    """

    merge: bool
    max_rows: int
    max_delay: float
    preferred: tuple[int, ...]

    @classmethod
    def of(cls, batching: Batching, scheduling: Dynamic) -> "BatchingSettings":
        """Read a spec; without preferred sizes, only a full batch is worth no further wait."""
        preferred = tuple(sorted(scheduling.preferred_rows)) or (batching.max_rows,)
        return cls(batching.merge, batching.max_rows, scheduling.max_delay, preferred)


def decide(view: QueueView, settings: BatchingSettings, now: float) -> Decision:
    """Return what to do now. Each cut spends one credit of its instance; no entry is named twice."""
    expired = view.expired(now) if view.deadlines else ()
    if not settings.merge and not expired:
        cuts: list[Cut] = []
        entries = view.entries()
        for i in view.free():  # no comprehension: until Python 3.12 it costs a call
            entry = next(entries, None)
            if entry is None:
                break
            cuts.append(Cut(i, [entry]))
        return Decision(cuts, [], [], view.next_expiry(now) if view.deadlines else None)
    reject = [(entry, Code.EXPIRED) for entry in expired if not entry.is_demotable]
    demote = [entry for entry in expired if entry.is_demotable]
    entries = _due_after(view.entries(), reject, demote) if expired else view.entries()
    cuts, waits_until = _cut(entries, view.free(), settings, now)
    times = [time for time in (view.next_expiry(now), waits_until) if time is not None]
    return Decision(cuts, reject, demote, min(times, default=None))


def _due_after(
    entries: Iterable[Entry], reject: Sequence[tuple[Entry, Code]], demote: Sequence[Entry]
) -> Iterator[Entry]:
    """The order once those expired have left, or moved behind the others of their level."""
    gone = {entry.item for entry, _ in reject}
    last = {entry.item for entry in demote}
    stay = [entry for entry in entries if entry.item not in gone]
    return iter(sorted(stay, key=lambda entry: (entry.level, entry.item in last)))


def _cut(
    entries: Iterator[Entry], free: Iterable[int], settings: BatchingSettings, now: float
) -> tuple[list[Cut], float | None]:
    """A batch for every free instance while there are any; the time to look again if one is worth a wait."""
    cuts: list[Cut] = []
    ahead: deque[Entry] = deque()
    for instance in free:
        batch, is_closed = _gather(entries, ahead, settings)
        if not batch:
            break
        due = min(entry.enqueued_at for entry in batch) + settings.max_delay
        if due > now and not is_closed and type(batch[0].shape_key) is not Alone:
            preferred = _preferred_length(batch, settings.preferred)
            if not preferred:
                return cuts, due
            ahead.extendleft(reversed(batch[preferred:]))
            batch = batch[:preferred]
        cuts.append(Cut(instance, batch))
    return cuts, None


def _gather(
    entries: Iterator[Entry], ahead: deque[Entry], settings: BatchingSettings
) -> tuple[list[Entry], bool]:
    """The next items that can run together, and whether the batch is closed: it can take no later one.

    `ahead` holds what was taken from `entries` and is in no batch yet.
    """
    batch: list[Entry] = []
    rows = 0
    limit = settings.max_rows if settings.merge else 1
    while rows < limit:
        entry = ahead.popleft() if ahead else next(entries, None)
        if entry is None:
            return batch, False
        if batch and (rows + entry.rows > limit or entry.shape_key != batch[0].shape_key):
            ahead.appendleft(entry)
            return batch, True
        batch.append(entry)
        rows += entry.rows
    return batch, True


def _preferred_length(batch: Sequence[Entry], preferred: tuple[int, ...]) -> int:
    """Count how many of the first items make up the greatest preferred number of rows; 0 if none do."""
    best = rows = 0
    for length, entry in enumerate(batch, 1):
        rows += entry.rows
        if rows in preferred:
            best = length
    return best
