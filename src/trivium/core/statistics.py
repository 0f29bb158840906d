"""Counters of one model version: sums and one fixed-bucket histogram, updated once per batch.

Rendering is the protocols' business, at scrape time. Sums are float seconds here, which keeps a batch's update
to a dozen additions, and become integer nanoseconds in a report; a double holds a year of them to the
nanosecond's tenth part.
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
        self._successes = 0
        self._success_time = 0.0
        self._fails = 0
        self._fail_time = 0.0
        self._queue_time = 0.0
        self._compute_times = [0.0, 0.0, 0.0]
        self._batches: dict[int, list[float]] = {}
        self._failures: dict[Code, int] = {}
        self._waits = [0] * (len(WAIT_BUCKETS) + 1)
        self.wasted = 0
        self.mean_run = 0.0
        self.mean_rows = 1.0

    def executed(self, run: Executed, rows: int, succeeded: Sequence[Item], now: float) -> None:
        """One execution of `rows` rows is over; `succeeded` are answered at `now`."""
        began = run.began
        on_input = run.input_ready - began
        on_infer = run.output_began - run.input_ready
        on_output = run.ended - run.output_began
        weight = 0.1 if self._executions else 1.0
        self._executions += 1
        self.mean_run += weight * (run.ended - began - self.mean_run)
        self.mean_rows += weight * (rows - self.mean_rows)
        batch = self._batches.get(rows)
        if batch is None:
            batch = self._batches[rows] = [0, 0.0, 0.0, 0.0]
        batch[0] += 1
        batch[1] += on_input
        batch[2] += on_infer
        batch[3] += on_output
        count = len(succeeded)
        if not count:
            return
        times = self._compute_times
        times[0] += on_input * count
        times[1] += on_infer * count
        times[2] += on_output * count
        self._successes += count
        for item in succeeded:
            since = item.enqueued_at
            self._queue_time += began - since
            self._success_time += now - since
            self._rows += item.rows
            self._waits[bisect_left(WAIT_BUCKETS, began - since)] += 1
        self._last = time.time_ns()

    def streamed(self, item: Item, now: float) -> None:
        """An item ended well by parts of its own, apart from the execution that began it."""
        self._successes += 1
        self._rows += item.rows
        self._success_time += now - item.enqueued_at
        self._last = time.time_ns()

    def failed(self, item: Item, code: Code, now: float) -> None:
        """An item ended with an error, or was refused at the door."""
        self._fails += 1
        self._fail_time += now - item.enqueued_at
        self._failures[code] = self._failures.get(code, 0) + 1

    def report(self, model: str, version: str, queued_items: int) -> VersionStatistics:
        """A frozen copy of the counters."""
        done = self._successes
        compute = [Duration(done, _ns(spent)) for spent in self._compute_times]
        return VersionStatistics(
            model=model,
            version=version,
            last=self._last // 1_000_000,
            rows=self._rows,
            executions=self._executions,
            success=Duration(done, _ns(self._success_time)),
            fail=Duration(self._fails, _ns(self._fail_time)),
            queue=Duration(done, _ns(self._queue_time)),
            compute_input=compute[0],
            compute_infer=compute[1],
            compute_output=compute[2],
            batches=tuple(
                BatchStatistics(rows, *(Duration(int(row[0]), _ns(spent)) for spent in row[1:]))
                for rows, row in sorted(self._batches.items())
            ),
            failures={code.value: count for code, count in self._failures.items()},
            wasted=self.wasted,
            queued_items=queued_items,
            queue_wait_buckets=tuple(zip((*WAIT_BUCKETS, float("inf")), self._waits, strict=True)),
        )


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
