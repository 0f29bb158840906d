"""Decides whether a request of one model is let in, at which priority level, and how long it may wait.

It reads the queue, the counters and what instances hold in advance, and changes none of them.
"""

import math
from typing import Protocol

from trivium.core.observability.statistics import VersionCounters
from trivium.core.queueing.queue import RequestQueue
from trivium.core.request import Item
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.spec import Dynamic, ModelSpec, OnExpiry, QueuePolicy


class InstanceCounts(Protocol):
    """The instances of a model, as admission counts them."""

    @property
    def places(self) -> int:
        """Executions that the open instances may have in work at once."""
        ...

    @property
    def ahead(self) -> int:
        """Batches that instances hold in advance."""
        ...

    @property
    def is_busy(self) -> bool:
        """Can none of them begin anything now?"""
        ...

    @property
    def startable(self) -> int:
        """Batches, or items where each is one, that they can begin now."""
        ...

    def run_ages(self) -> list[float]:
        """Seconds that each run in hand has taken by now."""
        ...


class PriorityRules:
    """One model's rules for priority and time in the queue, prepared once."""

    def __init__(self, scheduling: Dynamic) -> None:
        self._levels = scheduling.levels
        self._default = scheduling.default_level
        self.policies: tuple[QueuePolicy, ...] = tuple(
            scheduling.level_policies.get(level, scheduling.default_policy)
            for level in range(1, scheduling.levels + 1)
        )
        self.are_plain = self.policies == (QueuePolicy(),)
        """One level, no time-outs, no bound of its own: there is nothing to decide."""

    def level(self, priority: int) -> int:
        """The level of a wish: 0 and what is beyond the last level mean the default one."""
        return priority if 0 < priority <= self._levels else self._default

    def timeout(self, level: int, wish: float | None) -> float | None:
        """Seconds that an item may wait: the level's, which a request may only shorten, if it may at all."""
        policy = self.policies[level - 1]
        if policy.timeout is None or wish is None or not policy.may_shorten or wish <= 0:
            return policy.timeout
        return min(policy.timeout, wish)


class AdmissionController:
    """Admits the requests of one model version. `limit` items may wait in any case."""

    def __init__(
        self,
        spec: ModelSpec,
        levels: PriorityRules,
        queue: RequestQueue,
        instances: InstanceCounts,
        counters: VersionCounters,
    ) -> None:
        self._name = spec.name
        self._places, self._fills_early = spec.limits.queue_items, spec.limits.fills_early
        self._needs_free = spec.limits.needs_free
        self.limit = 0 if self._needs_free else self._places - self._fills_early
        self._levels = levels
        self._queue = queue
        self._instances = instances
        self._counters = counters
        self._run_limit = spec.limits.run_deadline or math.inf

    def rank(self, item: Item, infer: Infer) -> None:
        """Give it its level, and the time that it may wait. Raises QUEUE_FULL where its level is."""
        item.level = level = self._levels.level(infer.priority)
        policy = self._levels.policies[level - 1]
        if policy.max_items is not None:
            self.check_room(level, policy.max_items)
        timeout = self._levels.timeout(level, infer.queue_timeout)
        if timeout is not None:
            item.queue_deadline = item.enqueued_at + timeout
            item.is_demotable = policy.on_expiry is OnExpiry.DEMOTE

    def check_room(self, level: int, most: int | None, is_growing: bool = False) -> None:
        """Refuse where there is no room; what instances hold in advance waits as well, though not in the queue. Raises
        QUEUE_FULL. `is_growing`: another instance may be opened.
        """
        waiting = self._queue.count + self._instances.ahead
        if self._needs_free and waiting >= self._instances.startable:
            raise none_free(self._name, self.retry_after())
        limit = self._places
        if self._fills_early and not is_growing and self._instances.is_busy:
            limit -= 1
        if waiting >= limit or (most is not None and self._queue.level_count(level) >= most):
            raise queue_full(self._name, waiting, self.retry_after())

    def retry_after(self) -> float:
        """Seconds until what waits now will have run; where all instances are busy, not before one of them is free."""
        counters, instances, places = self._counters, self._instances, self._instances.places
        rows = self._queue.rows + instances.ahead * counters.mean_rows
        drain = drain_time(rows, counters.mean_execution, counters.mean_rows, places)
        ages = instances.run_ages()
        is_busy = ages and len(ages) >= places
        return max(drain, remaining(min(ages), self._run_limit)) if is_busy else drain


def queue_full(model: str, waiting: int, retry_after: float) -> ServeError:
    """The refusal of an item for which a bounded queue has no place."""
    return ServeError(
        Code.QUEUE_FULL,
        f"The queue of model '{model}' is full: {waiting} requests are waiting. "
        f"Try again in {max(1, math.ceil(retry_after))} s, or give the model more instances or a longer "
        "queue.",
        retry_after,
        info=ErrorInfo.of(reasons.QUEUE_FULL, model=model),
    )


def none_free(model: str, retry_after: float) -> ServeError:
    """The refusal of an item that may not wait for an instance."""
    return ServeError(
        Code.QUEUE_FULL,
        f"No instance of model '{model}' is free, and requests to it do not wait for one. Try again in "
        f"{max(1, math.ceil(retry_after))} s, or give the model more instances.",
        retry_after,
        info=ErrorInfo.of(reasons.QUEUE_FULL, model=model),
    )


def remaining(age: float, limit: float) -> float:
    """Seconds that a run will still take, as far as can be known: as long again as it has, but no longer than until its
    limit.
    """
    return max(min(age, limit - age), 0.0)


def drain_time(rows: float, run_seconds: float, rows_per_run: float, places: int) -> float:
    """Seconds until so many waiting rows have run, from the mean duration and size of recent executions; so many
    executions may be in work at once as there are places.
    """
    return rows / max(rows_per_run, 1.0) * run_seconds / max(places, 1)
