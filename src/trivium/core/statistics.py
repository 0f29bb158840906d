"""Counters of one model version: integers and one fixed-bucket histogram, updated once per batch.

Rendering is the protocols' business, at scrape time. Durations are nanoseconds inside, seconds on the way in.
"""

import time
from bisect import bisect_left
from collections.abc import Sequence

from trivium.core.item import Item
from trivium.types.errors import Code
from trivium.types.operations import BatchStatistics, Duration, VersionStatistics
from trivium.types.running import Executed

WAIT_BUCKETS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    10.0,
)
"""Upper bounds in seconds of the histogram of queue waits; one more bucket takes the rest."""


class VersionCounters:
    """Everything counted for one version since it was loaded. Updated on the loop only."""

    def __init__(self) -> None:
        self._last = 0
        self._rows = 0
        self._executions = 0
        self._success = [0, 0]
        self._fail = [0, 0]
        self._queue_ns = 0
        self._compute_ns = [0, 0, 0]
        self._batches: dict[int, list[int]] = {}
        self._failures: dict[Code, int] = {}
        self._waits = [0] * (len(WAIT_BUCKETS) + 1)
        self.wasted = 0
        self.mean_run = 0.0
        self.mean_rows = 1.0

    def executed(self, run: Executed, rows: int, succeeded: Sequence[Item], now: float) -> None:
        """One execution of `rows` rows is over; `succeeded` are answered at `now`."""
        infer = run.output_began - run.input_ready
        times = (
            int((run.input_ready - run.began) * 1e9),
            int(infer * 1e9),
            int((run.ended - run.output_began) * 1e9),
        )
        self._executions += 1
        self.mean_run += 0.1 * (run.ended - run.began - self.mean_run)
        self.mean_rows += 0.1 * (rows - self.mean_rows)
        batch = self._batches.get(rows)
        if batch is None:
            batch = self._batches[rows] = [0, 0, 0, 0]
        batch[0] += 1
        count = len(succeeded)
        for index, spent in enumerate(times):
            batch[index + 1] += spent
            self._compute_ns[index] += spent * count
        if count:
            self._succeeded(succeeded, run.began, now)

    def _succeeded(self, items: Sequence[Item], began: float, now: float) -> None:
        waited = total = 0.0
        for item in items:
            wait = began - item.enqueued_at
            waited += wait
            total += now - item.enqueued_at
            self._rows += item.rows
            self._waits[bisect_left(WAIT_BUCKETS, wait)] += 1
        self._success[0] += len(items)
        self._success[1] += int(total * 1e9)
        self._queue_ns += int(waited * 1e9)
        self._last = time.time_ns() // 1_000_000

    def failed(self, item: Item, code: Code, now: float) -> None:
        """An item ended with an error, or was refused at the door."""
        self._fail[0] += 1
        self._fail[1] += int((now - item.enqueued_at) * 1e9)
        self._failures[code] = self._failures.get(code, 0) + 1

    def report(self, model: str, version: str, queued_items: int) -> VersionStatistics:
        """A frozen copy of the counters."""
        done = self._success[0]
        compute = [Duration(done, spent) for spent in self._compute_ns]
        return VersionStatistics(
            model=model,
            version=version,
            last=self._last,
            rows=self._rows,
            executions=self._executions,
            success=Duration(*self._success),
            fail=Duration(*self._fail),
            queue=Duration(done, self._queue_ns),
            compute_input=compute[0],
            compute_infer=compute[1],
            compute_output=compute[2],
            batches=tuple(
                BatchStatistics(rows, *(Duration(row[0], spent) for spent in row[1:]))
                for rows, row in sorted(self._batches.items())
            ),
            failures={code.value: count for code, count in self._failures.items()},
            wasted=self.wasted,
            queued_items=queued_items,
            queue_wait_buckets=tuple(zip((*WAIT_BUCKETS, float("inf")), self._waits, strict=True)),
        )
