"""Opens and closes the instances of one model version as the scaling policy decides.

It holds the tasks that open instances; opening itself is `launch`'s work, off the loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from trivium.core.clock import Alarm
from trivium.core.instances.pool import InstanceSlot, Pool
from trivium.core.instances.scaler_policy import GroupView, decide
from trivium.core.request import GIVEN_UP
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless, named, noted
from trivium.types.interfaces import Clock, Instance, Port
from trivium.types.observing import InstanceDeath
from trivium.types.running import InstanceId, ItemId, Placement
from trivium.types.spec import MOST_INSTANCES, Device, InstanceGroup, Isolation, Limits

log = logging.getLogger(__name__)

CHANCES = 3
"""Openings in a row that may end by a signal from outside before those who wait are told: that need not be the
model's fault, and the next one may well open.
"""

ANY_NUMBER = 2**31
"""Failures in a row that may be, where it is time that counts."""

MOST_LOST = 2
"""Instances of a group that are replaced after they were given up with a run that did not end: each leaves a thread."""

Launch = Callable[[Placement, Port], Awaitable[Instance]]


class Group:
    """One instance group with what is known of its openings."""

    def __init__(self, group: InstanceGroup, isolation: Isolation) -> None:
        self.group = group
        self.isolation = group.isolation or isolation
        self.members: dict[InstanceId, int] = {}
        self.opening: set[int] = set()
        self.failures = 0
        self.failed_at = self.failing_since = 0.0
        self.died_in_vain = False
        self.gone: list[Placement] = []
        """Of instances that died or did not open, since the policy was last asked."""
        self.lost = 0
        self.deaths = 0

    def placement(self) -> Placement:
        """Return where the next instance goes: the lowest free index, taken as being opened."""
        taken = self.opening | set(self.members.values())
        index = next(i for i in range(len(taken) + 1) if i not in taken)
        self.opening.add(index)
        group = self.group
        places = max(len(group.device_ids) // group.span, 1)
        first = index % places * group.span
        mine = group.device_ids[first : first + group.span] or (0,)
        return Placement(
            f"{group.name}_{index}",
            self.isolation,
            group.device,
            mine[0],
            index,
            group.claim,
            mine if group.span > 1 else (),
            group.ranks,
            group.are_passive,
        )


class ScaledModel(Protocol):
    """The model whose instances are opened and closed."""

    def waiting(self) -> int:
        """Count the items that wait."""
        ...

    def fail_waiting(self, why: ServeError) -> None:
        """An instance did not open, and there is no other to wait for."""
        ...

    def instance_failed(self) -> None:
        """An instance did not open."""
        ...

    def replacing(self, gone: Placement, seconds: float) -> None:
        """Another instance is to be opened after so long, in place of one that is gone."""
        ...


class Scaler:
    """Opens and closes the instances of one model version. When it is given up its limits say, by `restarts` and
    `deaths`.
    """

    def __init__(
        self,
        pool: Pool,
        groups: Sequence[Group],
        launch: Launch,
        clock: Clock,
        model: ScaledModel,
        limits: Limits,
    ) -> None:
        self._pool = pool
        self._groups = groups
        self._launch = launch
        self._clock = clock
        self._model = model
        self._tasks: set[asyncio.Task[None]] = set()
        self._window, self._most_deaths = limits.retry_seconds, limits.deaths
        self._steps = limits.retry_steps
        self._restarts = limits.restarts if self._window is None else ANY_NUMBER
        self.deaths: deque[InstanceDeath] = deque(maxlen=5)
        """What became of the last instances that died."""
        self._alarm = Alarm(clock, self.review)
        self._is_closed = False
        self.is_elastic = any(_is_elastic(group.group) for group in groups)
        """May the number of instances change by itself? Asked of every request."""
        self._size_waiters: list[asyncio.Future[None]] = []
        self._ended: ServeError | None = None
        self._last_failure: ServeError | None = None
        self._trouble = ""  # with the last instance that was opened or tried

    @property
    def is_cold(self) -> bool:
        """May no instance be open at all?"""
        return not any(group.group.ceiling for group in self._groups)

    def groups(self) -> tuple[InstanceGroup, ...]:
        """Return the groups with the bounds that hold now."""
        return tuple(group.group for group in self._groups)

    @property
    def has_workers(self) -> bool:
        """Are instances of a group worker processes?"""
        return any(group.isolation is Isolation.PROCESS for group in self._groups)

    def failures(self) -> tuple[int, ...]:
        """Count, for each group, the openings in a row that failed."""
        return tuple(group.failures for group in self._groups)

    def opening(self) -> int:
        """Count the instances that are being opened."""
        return sum(len(group.opening) for group in self._groups)

    def scale(self, minimum: int | None, maximum: int | None, device: Device | None) -> None:
        """Give new bounds to every group, or to those on one kind of device; None leaves one as it is. What is beyond
        them closes once its items have ended. Raises INVALID for bounds that cannot be, NOT_FOUND where no group is on
        the device.
        """
        chosen = [group for group in self._groups if device is None or group.group.device is device]
        if not chosen:
            there = ", ".join(sorted({group.group.device.value for group in self._groups}))
            raise ServeError(
                Code.NOT_FOUND, f"No instances are on the device '{device}'; there are some on: {there}."
            )
        bounded = [_bounded(group.group, minimum, maximum) for group in chosen]
        for group, bounds in zip(chosen, bounded, strict=True):
            group.group = bounds
            group.failures = group.deaths = 0
        self.is_elastic = any(_is_elastic(group.group) for group in self._groups)
        self._last_failure = None
        self.review()

    async def scaled(self, model: str) -> None:
        """Wait until every group has a number of instances within its bounds. Raises what keeps one from opening, and
        why nobody serves the model of this name any more.
        """
        while lacking := [group for group in self._groups if not _is_within(group)]:
            if self._ended is not None:
                raise anew(self._ended)
            if self._last_failure is not None:
                raise anew(self._last_failure)
            if any(map(self._is_over, lacking)):
                raise self.failure(model)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._size_waiters.append(waiter)
            await waiter

    @property
    def is_failed(self) -> bool:
        """Is none open, and has every group failed so often in a row that none will be?"""
        return not self._pool.size and all(self._is_over(group) for group in self._groups)

    @property
    def can_grow(self) -> bool:
        """May a further instance be opened, or is one being opened? See `calls.Pooled`, as for the next two."""
        return any(
            group.opening or (len(group.members) < group.group.ceiling and not self._is_over(group))
            for group in self._groups
        )

    def holders(self) -> Iterable[Collection[ItemId]]:
        """See `calls.Pooled`."""
        return [group for slot in self._pool.slots().values() for group in slot.blockers()]

    def beside(self, call: ItemId) -> Collection[ItemId]:
        """See `calls.Pooled`."""
        return self._pool.beside(call)

    def failure(self, model: str) -> ServeError:
        """That the model serves no more, once it has been given up."""
        last = self.deaths[-1].post_mortem if self.deaths else "No instance could be opened."
        cause = f"{self._restarts} failures in a row"
        if self._window is not None:
            cause = f"{self._window:g} s of failures in a row"
        if any(group.lost > MOST_LOST for group in self._groups):
            cause = f"{MOST_LOST + 1} runs that did not end"
        elif any(map(self._has_died_too_often, self._groups)):
            cause = f"{(self._most_deaths or 0) + 1} deaths of its instances"
        return ServeError(
            Code.NOT_READY,
            f"Model '{model}' was given up after {cause}. {last} Mend it and load it again.",
            info=ErrorInfo.of(reasons.GIVEN_UP, model=model),
        )

    def obstacle(self) -> str:
        """Say why nothing can be served at this moment though it may be again: no instance is open, and the last one
        did not open, or died before it did anything. Empty where that is not so.
        """
        return "" if self._pool.size or not self._trouble else f"No instance is open. {self._trouble}"

    def died(self, slot: InstanceSlot, death: InstanceDeath) -> None:
        """An instance is gone. One that never did anything counts like one that did not open, but for the first
        in a row: that may have been anybody's work.
        """
        self.deaths.append(death)
        group = slot.home
        if isinstance(group, Group):
            group.gone.append(slot.placement)
            group.lost += slot.is_lost
            group.deaths += 1
            if (slot.is_lost and group.lost > MOST_LOST) or self._has_died_too_often(group):
                group.failures = self._restarts + 1
                group.failed_at = self._clock.now()
            elif slot.ended:
                group.failures = 0
            elif group.died_in_vain:
                self._note_failure(group)
                self._trouble = death.post_mortem
            group.died_in_vain = not slot.ended

    def _note_failure(self, group: Group) -> None:
        """Count a failure in a row; where the row has lasted for too long it is the last one."""
        now = self._clock.now()
        if not group.failures:
            group.failing_since = now
        group.failures += 1
        group.failed_at = now
        if self._window is not None and now - group.failing_since >= self._window:
            group.failures = self._restarts + 1

    def _has_died_too_often(self, group: Group) -> bool:
        return self._most_deaths is not None and group.deaths > self._most_deaths

    def _is_over(self, group: Group) -> bool:
        return group.failures > self._restarts and not group.opening

    async def start(self) -> None:
        """Open every group's minimum. Raises the first failure, with whatever did open closed again."""
        tasks = [
            self._open(group, group.placement()) for group in self._groups for _ in range(group.group.minimum)
        ]
        try:
            results = await asyncio.gather(*tasks, return_exceptions=True)
        except asyncio.CancelledError:
            await self.close()
            raise
        for result in results:
            if isinstance(result, BaseException):
                await self.close()
                raise anew(result)
        self.review()

    def review(self) -> None:
        """Ask the policy about every group and do as it says. Call when work waits, or an instance died."""
        if self._is_closed:
            return
        times = [time for group in self._groups if (time := self._review(group)) is not None]
        self._alarm.set(min(times, default=None))
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        waiters, self._size_waiters = self._size_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def end_waits(self, why: ServeError) -> None:
        """Say why nobody serves the model any more to those who wait until it is scaled."""
        self._ended = self._ended or why
        self._wake_waiters()

    async def close(self, why: ServeError = GIVEN_UP) -> None:
        """Close every instance and give up those being opened. Only when no item is held any more."""
        self._is_closed = True
        self.end_waits(why)
        self._alarm.set(None)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for number in list(self._pool.slots()):
            self._pool.retire(number)

    def _review(self, group: Group) -> float | None:
        slots = self._pool.slots()
        group.members = {number: index for number, index in group.members.items() if number in slots}
        members, opening = len(group.members), len(group.opening)
        idle = tuple((number, slots[number].idle_since) for number in group.members if not slots[number].held)
        stale = tuple(number for number in group.members if slots[number].is_stale)
        busy = tuple(number for number in group.members if slots[number].held)
        if group.failures and any(
            slots[n].ended and slots[n].opened_at >= group.failed_at for n in group.members
        ):
            group.failures = 0
        gone, group.gone = group.gone, []
        if self._is_over(group):
            return None
        view = GroupView(
            members, opening, idle, self._model.waiting(), group.failures, group.failed_at, stale, busy
        )
        now = self._clock.now()
        decision = decide(view, group.group, self._steps, now)
        waits = decision.wake_at - now if decision.backs_off and decision.wake_at is not None else 0.0
        for placement in gone if decision.backs_off else gone[: decision.open]:
            self._model.replacing(placement, waits)
        for number in decision.close:
            self._pool.retire(number)
            del group.members[number]
        for _ in range(decision.open):
            task = asyncio.ensure_future(self._open_or_note(group, group.placement()))
            self._tasks.add(task)
            task.add_done_callback(self._opened)
        return decision.wake_at

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.review()

    async def _open_or_note(self, group: Group, placement: Placement) -> None:
        try:
            await self._open(group, placement)
        except Exception as cause:
            error = frameless(cause) if isinstance(cause, ServeError) else _own_fault(placement, noted(cause))
            self._note_failure(group)
            self._last_failure, self._trouble = error, error.message
            log.error("instance %s did not open: %s", placement.name, error.message)
            self._model.instance_failed()
            is_last = not self._pool.size and not any(other.opening for other in self._groups)
            is_chance = error.code is Code.WORKER_DIED and group.failures < CHANCES
            if is_last and not is_chance:
                self._model.fail_waiting(error)

    async def _open(self, group: Group, placement: Placement) -> None:
        number, slot, port = self._pool.reserve(placement)
        try:
            instance = await self._launch(slot.placement, port)
        except Exception:
            group.gone.append(slot.placement)
            raise
        finally:
            group.opening.discard(placement.index)
        if self._is_closed:
            instance.close()
            return
        group.members[number] = placement.index
        slot.home = group
        self._trouble = ""
        self._pool.admit(number, slot, instance)


def _bounded(group: InstanceGroup, minimum: int | None, maximum: int | None) -> InstanceGroup:
    """Return the group with new bounds, None leaving one as it is, as far as the other lets it. Raises INVALID for
    bounds that cannot be.
    """
    least = min(group.minimum, group.maximum if maximum is None else maximum) if minimum is None else minimum
    most = max(group.maximum, least) if maximum is None else maximum
    if 0 <= least <= most <= MOST_INSTANCES:
        return replace(group, minimum=least, maximum=most)
    raise ServeError(
        Code.INVALID,
        f"The bounds of {least} to {most} instances cannot be. Give a minimum of 0 or more, and a maximum that is not "
        f"below it, {MOST_INSTANCES} at most.",
    )


def _is_elastic(group: InstanceGroup) -> bool:
    return group.ceiling > group.floor or not group.ceiling


def _is_within(group: Group) -> bool:
    return group.group.floor <= len(group.members) <= group.group.ceiling


def _own_fault(placement: Placement, cause: Exception) -> ServeError:
    """Put into words what `launch` should have."""
    log.error("opening instance %s failed", placement.name, exc_info=cause)
    return ServeError(Code.INTERNAL, f"Opening {placement.name} failed: {named(cause)}")
