"""Keeps how requests went that have ended while somebody listened: the slowest, the failed, a sample of the rest.

While nobody listens there is no such log among the counters, and nothing of this is asked. The counters see when items
end and when executions do; an item that ends before its execution waits here until that is over.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from trivium.core.observability.news import NO_NEWS, ServerNews
from trivium.core.observability.statistics import MOST_EARLY, WITHOUT_RUN
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.observing import Timeline, Timelines
from trivium.types.running import Executed, ItemId

MOST_SLOWEST, MOST_FAILED, MOST_SAMPLED = 20, 50, 50
SLOW_SECONDS = 300.0
"""For which a slow request stays among the slowest."""

SAMPLE_SECONDS = 0.2
"""Between two of the sample, and between two failures that are told to who listens, at least."""

EARLY_SECONDS = 2.0
"""For which an item waits for the end of its execution."""

MOST_BESIDE = 16
"""Ids of other requests of its execution that a timeline has."""

LONGEST_ERROR, LONGEST_ID = 2000, 200
"""Characters."""

_ILL = ServeError(Code.MODEL_FAILED, "The handler's own answer says that it failed.")


class TimelineBook:
    """Keeps timelines, within bounds. One per server; used on the loop only. `epoch` tells the time of the Unix epoch,
    `now` that of the core's clock. Some of them are `news`, a bounded number in a second.
    """

    def __init__(
        self, now: Callable[[], float], epoch: Callable[[], float], news: ServerNews = NO_NEWS
    ) -> None:
        self._now = now
        self._epoch = epoch
        self._slowest: list[tuple[float, int, float, Timeline]] = []  # a heap: the least slow one first
        self._failed: deque[Timeline] = deque(maxlen=MOST_FAILED)
        self._sample: deque[Timeline] = deque(maxlen=MOST_SAMPLED)
        self._count = 0
        self._sampled_at = self._told_at = float("-inf")
        self._since: float | None = None
        self._news = news

    def begin(self) -> None:
        """Somebody listens from now on: what was kept of before is dropped."""
        self._slowest, self._since = [], self._epoch()
        self._failed.clear()
        self._sample.clear()

    def report(self) -> Timelines:
        """Copy what is kept."""
        self._forget_old(self._now())
        slowest = sorted(self._slowest, reverse=True)
        return Timelines(
            tuple(entry[3] for entry in slowest),
            tuple(reversed(self._failed)),
            tuple(reversed(self._sample)),
            self._since,
        )

    def wants(self, total: float, now: float) -> bool:
        """Is one kept that ended well after so long?"""
        slowest = self._slowest
        is_slow = len(slowest) < MOST_SLOWEST or total > slowest[0][0]
        return is_slow or now - self._sampled_at >= SAMPLE_SECONDS

    def take(self, line: Timeline, now: float) -> None:
        """Keep one that is wanted, or has failed."""
        self._count += 1
        self._forget_old(now)
        entry = (line.total, self._count, now, line)
        if len(self._slowest) < MOST_SLOWEST:
            heapq.heappush(self._slowest, entry)
        elif line.total > self._slowest[0][0]:
            heapq.heapreplace(self._slowest, entry)
        if line.error:
            self._failed.append(line)
            if now - self._told_at >= SAMPLE_SECONDS:
                self._told_at = now
                self._news.tell(line)
        elif now - self._sampled_at >= SAMPLE_SECONDS:
            self._sampled_at = now
            self._sample.append(line)
            self._news.tell(line)

    def received(self, since: float) -> float:
        """Return a time of the core's clock as one of the Unix epoch."""
        return self._epoch() - (self._now() - since)

    def _forget_old(self, now: float) -> None:
        if any(now - entry[2] > SLOW_SECONDS for entry in self._slowest):
            self._slowest = [entry for entry in self._slowest if now - entry[2] <= SLOW_SECONDS]
            heapq.heapify(self._slowest)


class TimelineLog:
    """Implements `ItemLog`, for one version."""

    def __init__(self, book: TimelineBook, model: str, version: str) -> None:
        self._book = book
        self._names = model, version
        self._early: dict[ItemId, tuple[Timeline, float, float]] = {}  # with when they came and ended

    def ran(self, run: Executed, succeeded: Sequence[Item], now: float) -> None:
        """See `ItemLog`."""
        wants = self._book.wants
        for item in succeeded:
            came = item.enqueued_at
            if wants(now - came, now):
                line = _executed(self._line(item, None, now, succeeded), run, came)
                self._book.take(line, now)

    def over(self, run: Executed) -> None:
        """See `ItemLog`."""
        if self._early:
            for number in run.batch or run.items:
                early = self._early.pop(number, None)
                if early is not None:
                    line, came, ended = early
                    self._book.take(_executed(line, run, came), ended)

    def ended(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        if not self._book.wants(now - item.enqueued_at, now):
            return
        self._tell(item, item.run, None, now)

    def cached(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        if self._book.wants(now - item.enqueued_at, now):
            self._book.take(self._line(item, None, now), now)

    def failed(self, item: Item, error: ServeError, now: float) -> None:
        """See `ItemLog`."""
        if not item.instance or error.code in WITHOUT_RUN:
            self._book.take(self._line(item, error, now), now)
        else:
            self._tell(item, item.run, error, now)

    def answered_ill(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        self._tell(item, item.run, _ILL, now)

    def settle(self, now: float) -> None:
        """Wait no longer for the ends of executions that do not come."""
        late = [number for number, early in self._early.items() if now - early[2] > EARLY_SECONDS]
        for number in late:
            line, _, ended = self._early.pop(number)
            self._book.take(line, ended)

    def _tell(self, item: Item, run: Executed | None, error: ServeError | None, now: float) -> None:
        """Keep one whose execution is over, or let it wait for that."""
        line, came = self._line(item, error, now), item.enqueued_at
        if run is not None:
            self._book.take(_executed(line, run, came), now)
            return
        self._early[item.item] = line, came, now
        if len(self._early) > MOST_EARLY:
            line, _, ended = self._early.pop(next(iter(self._early)))
            self._book.take(line, ended)

    def _line(
        self, item: Item, error: ServeError | None, ended: float, succeeded: Sequence[Item] = ()
    ) -> Timeline:
        others = (other.operation.id for other in succeeded[: MOST_BESIDE + 1] if other is not item)
        came, (model, version) = item.enqueued_at, self._names
        return Timeline(
            item.operation.id[:LONGEST_ID],
            model,
            version,
            self._book.received(came),
            ended - came,
            beside=tuple(other[:LONGEST_ID] for other in others)[:MOST_BESIDE],
            code="" if error is None else error.code.value,
            error="" if error is None else error.message[:LONGEST_ERROR],
        )


def _executed(line: Timeline, run: Executed, came: float) -> Timeline:
    """Return a timeline with the times of the execution that its request was in."""
    return msgspec.structs.replace(
        line,
        queued=max(run.began - came, 0.0),
        reading=max(run.input_ready - run.began, 0.0),
        computing=max(run.output_began - run.input_ready, 0.0),
        writing=max(run.ended - run.output_began, 0.0),
        together=len(run.batch or run.items),
    )
