"""Tells a recorder how requests end: from the executions and the items that the counters see.

Costs nothing where nobody records: then there is no such object.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from trivium.core.observability.request_facts import FactsLog
from trivium.core.observability.statistics import MOST_EARLY, NOTHING_ASKED, DurationLog, ItemLog
from trivium.core.request import Item
from trivium.types.errors import ServeError
from trivium.types.metrics import Measurements
from trivium.types.operations import Infer
from trivium.types.recording import InstanceName, ServingRecorder
from trivium.types.running import Executed, ItemId
from trivium.types.spec import ModelSpec

Measure = Callable[[str, Mapping[str, object]], None]
Opened = TypeVar("Opened")


class RecordedItems:
    """Implements `ItemLog`. An item that ends before its execution is recorded when that is over: only then it is known
    how long it had waited.
    """

    def __init__(self, recorder: ServingRecorder) -> None:
        self._recorder = recorder
        self._early: dict[ItemId, tuple[Infer, float, float]] = {}

    def ran(self, run: Executed, succeeded: Sequence[Item], now: float) -> None:
        """See `ItemLog`."""
        answered = self._recorder.answered
        for item in succeeded:
            came = item.enqueued_at
            answered(item.operation, max(run.began - came, 0.0), now - came)
        self._recorder.ran(max(now - run.ended, 0.0))

    def over(self, run: Executed) -> None:
        """See `ItemLog`."""
        if not self._early:
            return
        for number in run.batch or run.items:
            early = self._early.pop(number, None)
            if early is not None:
                request, came, ended = early
                self._recorder.answered(request, max(run.began - came, 0.0), ended - came)

    def ended(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        came, run = item.enqueued_at, item.run
        if run is not None:
            self._recorder.answered(item.operation, max(run.began - came, 0.0), now - came)
            return
        self._early[item.item] = item.operation, came, now
        if len(self._early) > MOST_EARLY:  # nobody says when it ran
            request, came, ended = self._early.pop(next(iter(self._early)))
            self._recorder.answered(request, 0.0, ended - came)

    def cached(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        self._recorder.answered(item.operation, 0.0, now - item.enqueued_at)

    def failed(self, item: Item, error: ServeError, now: float) -> None:
        """See `ItemLog`."""
        self._recorder.failed(item.operation, error.code, now - item.enqueued_at)

    def answered_ill(self, item: Item, now: float) -> None:
        """See `ItemLog`: an answer it is."""
        self.ended(item, now)


class ItemLogs:
    """Implements `ItemLog` for several."""

    def __init__(self, logs: Sequence[ItemLog]) -> None:
        self._logs = logs

    def ran(self, run: Executed, succeeded: Sequence[Item], now: float) -> None:
        """See `ItemLog`."""
        for log in self._logs:
            log.ran(run, succeeded, now)

    def over(self, run: Executed) -> None:
        """See `ItemLog`."""
        for log in self._logs:
            log.over(run)

    def ended(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        for log in self._logs:
            log.ended(item, now)

    def cached(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        for log in self._logs:
            log.cached(item, now)

    def failed(self, item: Item, error: ServeError, now: float) -> None:
        """See `ItemLog`."""
        for log in self._logs:
            log.failed(item, error, now)

    def answered_ill(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        for log in self._logs:
            log.answered_ill(item, now)


def item_log(
    spec: ModelSpec, recorder: ServingRecorder | None, measures: Measurements = NOTHING_ASKED
) -> ItemLog | None:
    """Return what hears how the items of a version end; None where nobody wants to know."""
    durations = DurationLog(spec) if spec.metrics.log_every else None
    recorded = None if recorder is None else RecordedItems(recorder)
    return heard_by(durations, recorded, FactsLog(spec) if measures.requests else None)


def heard_by(*listeners: ItemLog | None) -> ItemLog | None:
    """Return what hears how items end for all of these; None where nobody wants to know."""
    logs = [each for each in listeners if each is not None]
    return ItemLogs(logs) if len(logs) > 1 else logs[0] if logs else None


async def recorded_opening(
    opening: Awaitable[Opened], instance: InstanceName, recorder: ServingRecorder | None
) -> Opened:
    """Open an instance, and record when that begins and succeeds."""
    if recorder is None:
        return await opening
    now = asyncio.get_running_loop().time
    began = now()
    recorder.starting(instance)
    opened = await opening
    recorder.opened(instance, now() - began)
    return opened


def recorded_measure(take: Measure, recorder: ServingRecorder | None) -> Measure:
    """Return what counts a step of a custom metric, once the recorder has had its say."""
    if recorder is None:
        return take

    def measure(model: str, step: Mapping[str, object]) -> None:
        counted = recorder.measured(model, step)
        if counted is not None:
            take(model, counted)

    return measure
