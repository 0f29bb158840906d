"""Which place in the queue of one model a request gets, and whether there is one.

It reads the queue and the pool, and changes neither; the rules and the refusal are those of `admission`.
"""

from trivium.core.instances.pool import Pool
from trivium.core.observability.statistics import VersionCounters
from trivium.core.queueing.input_rules import PriorityRules, drain_time, queue_full
from trivium.core.queueing.queue import RequestQueue
from trivium.core.request import Item
from trivium.types.operations import Infer
from trivium.types.spec import ModelSpec, OnExpiry


class AdmissionController:
    """Of one model version. `limit` items may wait."""

    def __init__(
        self,
        spec: ModelSpec,
        levels: PriorityRules,
        queue: RequestQueue,
        pool: Pool,
        counters: VersionCounters,
    ) -> None:
        self._name = spec.name
        self.limit = spec.limits.queue_items
        self._levels = levels
        self._queue = queue
        self._pool = pool
        self._counters = counters

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

    def check_room(self, level: int, most: int | None) -> None:
        """What instances hold in advance waits as well, though not in the queue. Raises QUEUE_FULL."""
        waiting = self._queue.count + self._pool.ahead
        if waiting >= self.limit or (most is not None and self._queue.level_count(level) >= most):
            raise queue_full(self._name, waiting, self.retry_after())

    def retry_after(self) -> float:
        """Seconds until what waits now will have run."""
        counters, pool = self._counters, self._pool
        rows = self._queue.rows + pool.ahead * counters.mean_rows
        return drain_time(rows, counters.mean_run, counters.mean_rows, pool.size)
