"""Ends runs that take longer than their model's run deadline, and gives up instances whose run does not end then.

It alone keeps the time of runs. Its timer is armed while something runs and is never later than the next run can be
overdue, one that has not begun yet included; so a run that begins costs no timer while runs end as they should.
"""

from collections.abc import Callable, Iterable
from enum import Enum

import msgspec

from trivium.core.clock import Alarm
from trivium.core.instances.pool import InstanceSlot, Pool
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock

GRACE = 5.0
"""Seconds that an interrupted run has to end before its instance is given up."""


class RunView(msgspec.Struct, frozen=True, gc=False):
    """One run as it is: since when it is in hand, and when it was interrupted; None where it was not."""

    since: float
    interrupted_at: float | None = None


class RunVerdict(Enum):
    """Names what shall be done about a run."""

    WAIT = "wait"
    INTERRUPT = "interrupt"
    ABANDON = "abandon"


def judge_run(view: RunView, limit: float, now: float) -> tuple[RunVerdict, float]:
    """Return what to do now about a run that may take `limit` seconds, and when to look at it again. Pure."""
    if view.interrupted_at is None:
        due = view.since + limit
        return (RunVerdict.INTERRUPT, now + GRACE) if due <= now else (RunVerdict.WAIT, due)
    due = view.interrupted_at + GRACE
    return (RunVerdict.ABANDON, now) if due <= now else (RunVerdict.WAIT, due)


class RunWatch:
    """Watches the runs of one model version. `expire` ends an item with an error; `limit` is in seconds."""

    def __init__(self, model: str, limit: float, pool: Pool, clock: Clock) -> None:
        self._model = model
        self._limit = limit
        self._pool = pool
        self._clock = clock
        self._alarm = Alarm(clock, self._look)
        self._interrupted: dict[InstanceSlot, RunView] = {}

    def around(self, start: Callable[..., None]) -> Callable[..., None]:
        """Return `start` of a pool, with the timer armed whenever something begins."""
        alarm, now, limit = self._alarm, self._clock.now, self._limit

        def watched(*batch: object) -> None:
            if alarm.when is None:
                alarm.set(now() + limit)
            start(*batch)

        return watched

    def close(self) -> None:
        """Watch no more."""
        self._alarm.set(None)

    def _look(self) -> None:
        now, times = self._clock.now(), []
        before, self._interrupted = self._interrupted, {}
        slots = self._pool.in_work()
        for slot, since in _running(slots):
            view = before.get(slot)
            if view is None or view.since != since:
                view = RunView(since)
            verdict, when = judge_run(view, self._limit, now)
            if verdict is RunVerdict.ABANDON:
                self._abandon(slot)
                continue
            if verdict is RunVerdict.INTERRUPT:
                view = RunView(since, now)
                self._interrupt(slot)
            times.append(when)
            if view.interrupted_at is not None:
                self._interrupted[slot] = view
        if slots:  # a run that begins from now on is due after its own time, however long a grace lasts
            self._alarm.set(min([*times, now + self._limit]))

    def _interrupt(self, slot: InstanceSlot) -> None:
        assert slot.instance is not None
        what = "request" if slot.in_flight else "batch"
        text = f"it was not done with a {what} after {self._limit:g} s, the run deadline"
        error = ServeError(
            Code.EXPIRED,
            f"The request to model '{self._model}' ran out of time: the model's run deadline of {self._limit:g} s.",
        )
        for number in slot.instance.interrupt(text):
            item = slot.held.get(number)
            if item is not None:
                item.cancel(error)

    def _abandon(self, slot: InstanceSlot) -> None:
        assert slot.instance is not None
        slot.is_lost = True
        slot.instance.abandon(
            f"Instance {slot.placement.name} was given up: a run had not ended {GRACE:g} s after the run deadline of "
            f"{self._limit:g} s, and its thread cannot be made to end."
        )


def watched_runs(
    model: str, limit: float | None, pool: Pool, clock: Clock
) -> tuple[RunWatch | None, Callable[..., None]]:
    """Return the watch over a model's runs, None where they may take any time, and what starts them."""
    if limit is None:
        return None, pool.start
    watch = RunWatch(model, limit, pool, clock)
    return watch, watch.around(pool.start)


def _running(slots: Iterable[InstanceSlot]) -> Iterable[tuple[InstanceSlot, float]]:
    for slot in slots:
        since = None if slot.instance is None else slot.instance.running_since
        if since is not None:
            yield slot, since
