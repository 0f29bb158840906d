"""Counters of one model version: sums and fixed-bucket histograms, updated once per batch.

Rendering is the protocols' business, at scrape time. Sums are float seconds here, which keeps a batch's update
to a dozen additions, and become integer nanoseconds in a report; a double holds a year of them to the
nanosecond's tenth part.
"""

import logging
import socket
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

from trivium.codecs.metric_lines import metric_line
from trivium.core.observability.generation import GenerationCounters
from trivium.core.observability.quantiles import RecentValues
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generated
from trivium.types.metrics import Buckets, Measurements
from trivium.types.running import Executed, ItemId, Stepped
from trivium.types.spec import ModelSpec
from trivium.types.statistics import BatchStatistics, Duration, VersionStatistics

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

TIME_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Likewise of whole requests that ended well."""

_INFINITY = float("inf")
WAIT_EDGES = (-_INFINITY, *WAIT_BUCKETS, _INFINITY)
TIME_EDGES = (-_INFINITY, *TIME_BUCKETS, _INFINITY)
"""What bucket `i` lies between: above the number `i`, up to the next."""

FIRST_PART_BUCKETS = (0.1, 0.5, 2.0, 5.0)
"""Likewise of the time to a first part, where the model names none of its own."""

DURATIONS = ("success", "queue", "compute_input", "compute_infer", "compute_output")
"""Those of which quantiles are kept, where that was asked for."""

NOTHING_ASKED = Measurements()

LOGGED = ("Preprocess", "Inference", "Postprocess", "Prediction")
"""Names of the durations in a model's log: on input, in the model, on output, and all of a request."""

LOGGED_QUANTILES = (0.5, 0.9)
MODEL_LOG = logging.getLogger("trivium.model_metric")

MOST_EARLY = 1000
"""Items of which it is known that they ended while the execution that they were in went on."""


WITHOUT_RUN = frozenset({Code.WORKER_DIED, Code.CANCELLED, Code.EXPIRED, Code.DRAINING, Code.QUEUE_FULL})
"""Codes of failures behind which no execution comes that would tell more."""


class ItemLog(Protocol):
    """Hears how the items of one version end."""

    def ran(self, run: Executed, succeeded: Sequence[Item], now: float) -> None:
        """An execution is over in which these items ended well."""

    def over(self, run: Executed) -> None:
        """An execution is over; some of its items may have ended before."""

    def ended(self, item: Item, now: float) -> None:
        """An item ended well by parts of its own."""

    def cached(self, item: Item, now: float) -> None:
        """An item was answered with what had been kept."""

    def failed(self, item: Item, error: ServeError, now: float) -> None:
        """An item ended with an error."""

    def answered_ill(self, item: Item, now: float) -> None:
        """An item ended with a handler's own answer, which says that it failed."""


class DurationLog:
    """Writes quantiles of one version's durations to the log after every `spec.metrics.log_every` requests."""

    def __init__(self, spec: ModelSpec, epoch: Callable[[], float] = time.time) -> None:
        self._every = spec.metrics.log_every
        self._dimensions = {"Model": spec.name, "Version": spec.version, "Host": socket.gethostname()}
        self._epoch = epoch
        self._begin()

    def _begin(self) -> None:
        self._count = 0
        self._values = [RecentValues() for _ in LOGGED]

    def ran(self, run: Executed, succeeded: Sequence[Item], now: float) -> None:
        """An execution is over in which these items ended well."""
        steps = (
            run.input_ready - run.began,
            run.output_began - run.input_ready,
            run.ended - run.output_began,
        )
        for item in succeeded:
            for values, spent in zip(self._values, (*steps, now - item.enqueued_at), strict=True):
                values.add(spent, 1, 0.0)
            self._count += 1
            if self._count >= self._every:
                self._write()

    def over(self, run: Executed) -> None:
        """See `ItemLog`: what those items took is known already."""

    def cached(self, item: Item, now: float) -> None:
        """See `ItemLog`: nothing ran."""

    def failed(self, item: Item, error: ServeError, now: float) -> None:
        """See `ItemLog`: only what ended well is timed."""

    def answered_ill(self, item: Item, now: float) -> None:
        """See `ItemLog`: the same."""

    def ended(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        self._values[-1].add(now - item.enqueued_at, 1, 0.0)
        self._count += 1
        if self._count >= self._every:
            self._write()

    def _write(self) -> None:
        for name, values in zip(LOGGED, self._values, strict=True):
            for quantile, seconds in values.quantiles(LOGGED_QUANTILES, 0.0):
                if seconds == seconds:  # nothing of the kind: not a number
                    shown = f"{name}_p{quantile * 100:.0f}"
                    line = metric_line(shown, "Microseconds", seconds * 1e6, self._dimensions, self._epoch())
                    MODEL_LOG.info("%s", line)
        self._begin()


class VersionCounters:
    """Everything counted for one version since it was loaded. Updated on the loop only. `now` is the core's clock:
    quantiles are those of the last minute.
    """

    def __init__(
        self,
        measures: Measurements = NOTHING_ASKED,
        now: Callable[[], float] = time.monotonic,
        first_part_bounds: Sequence[float] = (),
        log: ItemLog | None = None,
    ) -> None:
        self.log = log
        """Hears how items end; whoever listens for a while may put another in its place."""
        self._quantiles = measures.quantiles
        self._now = now
        self._recent = [RecentValues() for _ in DURATIONS] if measures.quantiles else None
        self._first_bounds = tuple(first_part_bounds) or FIRST_PART_BUCKETS
        self._firsts = [0] * (len(self._first_bounds) + 1)
        self._first_time = 0.0
        self._times = [0] * (len(TIME_BUCKETS) + 1)
        self._early: dict[ItemId, tuple[float, float]] = {}  # when they came and ended
        self._hits = self._misses = 0
        self._hit_time = self._miss_time = 0.0
        self._last = 0
        self._rows = 0
        self._others = 0  # that ended well, and in no run
        self._success_time = 0.0
        self._fails = 0
        self._fail_time = 0.0
        self._queue_time = 0.0
        self._early_times = [0.0, 0.0, 0.0]  # of items that ended by parts of their own
        self._runs: dict[tuple[int, int], list[float]] = {}
        """By rows and items that ended well: how many, and their seconds on input, in the model and on output."""
        self._weight = 1.0  # of the next run in the means
        self._one_weight = 1.0  # likewise of an item that was one of many
        self._mean_one = 0.0
        self._failures: dict[Code, int] = {}
        self._waits = [0] * (len(WAIT_BUCKETS) + 1)
        self._wait_at = self._time_at = 0
        self._generation: GenerationCounters | None = None
        self.wasted = 0
        self.mean_run = 0.0
        self.mean_rows = 1.0

    @property
    def mean_execution(self) -> float:
        """Mean seconds for which recent executions were in work: runs, or items that each were one of many. Unlike
        `mean_run` it does not say when an instance can take more.
        """
        return self.mean_run or self._mean_one

    def executed(self, run: Executed, rows: int, succeeded: Sequence[Item], now: float) -> None:
        """One execution of `rows` rows is over; `succeeded` are answered at `now`."""
        if self.log is not None:
            self.log.over(run)
        began, ended = run.began, run.ended
        input_ready, output_began = run.input_ready, run.output_began
        if run.items or not run.rows:  # else all its items end by parts of their own, and nobody knows when
            self.mean_run += self._weight * (ended - began - self.mean_run)
            if rows != self.mean_rows:
                self.mean_rows += self._weight * (rows - self.mean_rows)
            self._weight = 0.1
        elif run.is_one_of_many:
            self._weigh_one(ended - began)
            if run.in_steps:
                self._charge_early(run)
                return
        kind = rows, len(succeeded)
        alike = self._runs.get(kind)
        if alike is None:
            alike = self._runs[kind] = [0, 0.0, 0.0, 0.0]
        alike[0] += 1
        alike[1] += input_ready - began
        alike[2] += output_began - input_ready
        alike[3] += ended - output_began
        self._charge_early(run)
        if not succeeded:
            return
        for item in succeeded:
            since = item.enqueued_at
            waited, spent = began - since, now - since
            self._queue_time += waited
            self._success_time += spent
            self._rows += item.rows
            at = self._wait_at  # mostly the bucket of the one before
            if not WAIT_EDGES[at] < waited <= WAIT_EDGES[at + 1]:
                self._wait_at = at = bisect_left(WAIT_BUCKETS, waited)
            self._waits[at] += 1
            at = self._time_at
            if not TIME_EDGES[at] < spent <= TIME_EDGES[at + 1]:
                self._time_at = at = bisect_left(TIME_BUCKETS, spent)
            self._times[at] += 1
        self._last = time.time_ns()
        if self._recent is not None or self.log is not None:
            self._remember(run, succeeded, now)

    def streamed(self, item: Item, now: float) -> None:
        """An item ended well by parts of its own. Its execution may be over, or not yet."""
        if item.run is not None:
            self._charge(item.run, item.enqueued_at, now)
        else:
            self._early[item.item] = item.enqueued_at, now
            if len(self._early) > MOST_EARLY:  # nobody says when they ran
                del self._early[next(iter(self._early))]
        if self.log is not None:
            self.log.ended(item, now)
        self._others += 1
        self._rows += item.rows
        self._success_time += now - item.enqueued_at
        self._times[bisect_left(TIME_BUCKETS, now - item.enqueued_at)] += 1
        self._last = time.time_ns()

    def _weigh_one(self, seconds: float) -> None:
        self._mean_one += self._one_weight * (seconds - self._mean_one)
        self._one_weight = 0.1

    def _charge_early(self, run: Executed) -> None:
        """Charge those of its items that ended before it."""
        for number in run.batch:
            early = self._early.pop(number, None)
            if early is not None:
                self._charge(run, *early)

    def stepped(self, model: str, step: Stepped) -> None:
        """An instance has computed a step, which is an execution of as many rows."""
        self.begin_generation(model).stepped(step)
        if step.rows or step.prompt_tokens:
            times = self._runs.setdefault((max(step.rows, 1), 0), [0, 0.0, 0.0, 0.0])
            times[0] += 1
            times[2] += step.ended - step.began

    def generated(self, model: str, item: Item, last: Generated) -> None:
        """An item was answered with what was generated; `last` is the last part of it."""
        self.begin_generation(model).ended(last, item.enqueued_at)

    def begin_generation(self, model: str) -> GenerationCounters:
        """Count tokens from now on: of a model that generates also before its first one."""
        if self._generation is None:
            self._generation = GenerationCounters(model)
        return self._generation

    def _charge(self, run: Executed, since: float, ended: float) -> None:
        """An item is charged its execution as far as that had gone when it ended."""
        self._queue_time += max(run.began - since, 0.0)
        self._waits[bisect_left(WAIT_BUCKETS, run.began - since)] += 1
        steps = (run.began, run.input_ready, run.output_began, run.ended)
        for i, (begin, end) in enumerate(pairwise(steps)):
            self._early_times[i] += max(min(end, ended) - begin, 0.0)

    def cached(self, item: Item, spent: float, now: float) -> None:
        """An item was answered with what had been kept, which took `spent` seconds; nothing was executed."""
        self._hits += 1
        self._hit_time += spent
        self._waits[0] += 1
        self._others += 1
        self._success_time += now - item.enqueued_at
        self._times[bisect_left(TIME_BUCKETS, now - item.enqueued_at)] += 1
        self._last = time.time_ns()
        if self.log is not None:
            self.log.cached(item, now)

    def missed(self, spent: float) -> None:
        """Nothing was kept for an item."""
        self._misses += 1
        self._miss_time += spent

    def kept(self, spent: float) -> None:
        """The answer to one that was missed was kept."""
        self._miss_time += spent

    def began_to_answer(self, item: Item, now: float) -> None:
        """The first part of an item's answer has left."""
        waited = now - item.enqueued_at
        self._first_time += waited
        self._firsts[bisect_left(self._first_bounds, waited)] += 1

    def failed(self, item: Item, error: ServeError, now: float) -> None:
        """An item ended with an error, or was refused at the door."""
        self._count_failure(item, error.code, now)
        if self.log is not None:
            self.log.failed(item, error, now)

    def answered_ill(self, item: Item, now: float) -> None:
        """An item ended with a handler's own answer, which says that it failed."""
        self._count_failure(item, Code.MODEL_FAILED, now)
        if self.log is not None:
            self.log.answered_ill(item, now)

    def _count_failure(self, item: Item, code: Code, now: float) -> None:
        self._fails += 1
        self._fail_time += now - item.enqueued_at
        self._failures[code] = self._failures.get(code, 0) + 1

    def report(self, model: str, version: str, queued_items: int, running: int = 0) -> VersionStatistics:
        """A frozen copy of the counters, with the items that wait and those that instances have."""
        compute_times = list(self._early_times)
        batches: dict[int, list[float]] = {}
        done, executions = self._others, 0
        for (rows, ended_well), (runs, *times) in self._runs.items():
            executions += int(runs)
            done += int(runs) * ended_well
            sums = batches.setdefault(rows, [0, 0.0, 0.0, 0.0])
            sums[0] += runs
            for i, spent in enumerate(times):
                sums[i + 1] += spent
                compute_times[i] += spent * ended_well
        compute = [Duration(done - self._hits, _ns(spent)) for spent in compute_times]
        return VersionStatistics(
            model=model,
            version=version,
            last=self._last // 1_000_000,
            rows=self._rows,
            executions=executions,
            success=Duration(done, _ns(self._success_time)),
            fail=Duration(self._fails, _ns(self._fail_time)),
            queue=Duration(done, _ns(self._queue_time)),
            compute_input=compute[0],
            compute_infer=compute[1],
            compute_output=compute[2],
            batches=tuple(
                BatchStatistics(rows, *(Duration(int(row[0]), _ns(spent)) for spent in row[1:]))
                for rows, row in sorted(batches.items())
            ),
            failures={code.value: count for code, count in self._failures.items()},
            wasted=self.wasted,
            queued_items=queued_items,
            queue_wait_buckets=_buckets(WAIT_BUCKETS, self._waits),
            success_buckets=_buckets(TIME_BUCKETS, self._times),
            quantiles=self._recent_quantiles(),
            first_part=Duration(sum(self._firsts), _ns(self._first_time)),
            first_part_buckets=_buckets(self._first_bounds, self._firsts),
            cache_hit=Duration(self._hits, _ns(self._hit_time)),
            cache_miss=Duration(self._misses, _ns(self._miss_time)),
            generation=None if self._generation is None else self._generation.report(running),
        )

    def _recent_quantiles(self) -> dict[str, tuple[tuple[float, float], ...]]:
        now = self._now()
        return {
            name: values.quantiles(self._quantiles, now)
            for name, values in zip(DURATIONS, self._recent or (), strict=False)
        }

    def _remember(self, run: Executed, succeeded: Sequence[Item], now: float) -> None:
        if self.log is not None:
            self.log.ran(run, succeeded, now)
        if self._recent is None:
            return
        whole, queue, on_input, on_infer, on_output = self._recent
        for item in succeeded:
            whole.add(now - item.enqueued_at, 1, now)
            queue.add(run.began - item.enqueued_at, 1, now)
        on_input.add(run.input_ready - run.began, len(succeeded), now)
        on_infer.add(run.output_began - run.input_ready, len(succeeded), now)
        on_output.add(run.ended - run.output_began, len(succeeded), now)


def _buckets(bounds: Sequence[float], counts: Sequence[int]) -> Buckets:
    return tuple(zip((*bounds, float("inf")), counts, strict=True))


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
