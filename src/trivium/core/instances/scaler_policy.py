"""Decides how many instances a group has: at least its minimum, more while work waits, fewer when they idle. Pure."""

from collections.abc import Sequence

import msgspec

from trivium.types.running import InstanceId
from trivium.types.spec import InstanceGroup

RETIRE_SECONDS = 0.001
"""After stale instances have been closed the group is looked at again."""


class GroupView(msgspec.Struct, frozen=True, gc=False):
    """A group as it is: instances open and being opened, those idle with the time since when, items waiting
    that no instance of the model can take, the openings that failed in a row, those open that want to be
    replaced, and those that have items.
    """

    open: int
    opening: int
    idle: tuple[tuple[InstanceId, float], ...]
    waiting: int
    failures: int = 0
    failed_at: float = 0.0
    stale: tuple[InstanceId, ...] = ()
    busy: tuple[InstanceId, ...] = ()


class Scaling(msgspec.Struct, frozen=True, gc=False):
    """Says what to do now; `wake_at` is later than the time it was decided at. One that `backs_off` opens then what is
    missing now.
    """

    open: int = 0
    close: tuple[InstanceId, ...] = ()
    wake_at: float | None = None
    backs_off: bool = False


def decide(view: GroupView, group: InstanceGroup, steps: Sequence[float], now: float) -> Scaling:
    """Open up to the minimum at once, beyond it one at a time; close what idled beyond the minimum, and at once what is
    beyond the maximum. What is stale counts as missing, and is closed when there are enough others. A group of none
    keeps one instance for as long as items wait. `steps` are the seconds before it is tried again, as of
    `Limits.retry_steps`.
    """
    floor, ceiling = group.floor, group.ceiling
    if not ceiling and view.waiting:
        floor = ceiling = 1
    total = view.open + view.opening - len(view.stale)
    missing = floor - total
    if missing <= 0 and view.waiting and not view.idle and not view.opening and total < ceiling:
        missing = 1
    if missing > 0:
        if view.failures:
            retry_at = view.failed_at + steps[min(view.failures, len(steps)) - 1]
            if retry_at > now:
                return Scaling(wake_at=retry_at, backs_off=True)
        return Scaling(open=missing)
    if view.stale and total - view.opening >= floor:
        return Scaling(close=view.stale, wake_at=now + RETIRE_SECONDS)
    excess = view.open - len(view.stale) - ceiling
    if excess > 0:
        idle = [number for number, _ in sorted(view.idle, key=lambda row: row[1])]
        closing = [number for number in (*idle, *view.busy) if number not in view.stale]
        return Scaling(close=tuple(closing[:excess]), wake_at=now + RETIRE_SECONDS)
    spare = view.open - floor
    longest = sorted(view.idle, key=lambda row: row[1])[: max(spare, 0)]
    over = [row for row in longest if row[1] + group.idle_seconds <= now]
    later = [row[1] + group.idle_seconds for row in longest[len(over) :]]
    return Scaling(close=tuple(instance for instance, _ in over), wake_at=min(later, default=None))
