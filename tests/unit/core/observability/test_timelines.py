"""Timelines of requests that have ended: which are kept, for how long, with whose times."""

import pytest

from trivium.core.observability.news import News, ServerNews
from trivium.core.observability.statistics import MOST_EARLY, VersionCounters
from trivium.core.observability.timelines import (
    EARLY_SECONDS,
    MOST_FAILED,
    MOST_SAMPLED,
    MOST_SLOWEST,
    SLOW_SECONDS,
    TimelineBook,
    TimelineLog,
)
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Executed

EPOCH = 1_000_000.0
LATE = ServeError(Code.MODEL_FAILED, "It raised.")


class Stage:
    """A book at a time that is set, a version's log, and what was told."""

    def __init__(self) -> None:
        self.time = 0.0
        news = ServerNews()
        self.told: list[News] = []
        news.heard = self.told.append
        self.book = TimelineBook(lambda: self.time, lambda: EPOCH + self.time, news)
        self.book.begin()
        self.log = TimelineLog(self.book, "m", "1")
        self.counters = VersionCounters(log=self.log)

    def run(self, *items: Item, began: float, ended: float) -> None:
        """An execution in which these ended well, at the moment that it is over."""
        self.time = ended
        run = Executed([each.item for each in items], [], began, began + 0.25, ended - 0.25, ended)
        self.counters.executed(run, len(items), items, ended)


def item(number: int, came: float, instance: int = 1) -> Item:
    made = Item(number, Infer("m", Tensors(()), id=f"r{number}"), print, came, None)  # type: ignore[arg-type]
    made.instance = instance
    return made


def test_a_timeline_has_all_its_times_and_with_whom_it_ran() -> None:
    stage = Stage()
    stage.run(item(1, 1.0), item(2, 1.5), began=2.0, ended=4.0)
    slow, fast = stage.book.report().slowest
    assert (slow.id, slow.received, slow.total) == ("r1", EPOCH + 1.0, 3.0)
    assert (slow.queued, slow.reading, slow.computing, slow.writing) == (1.0, 0.25, 1.5, 0.25)
    assert (slow.together, slow.beside, slow.error) == (2, ("r2",), "")
    assert (fast.id, fast.beside) == ("r2", ("r1",))
    assert stage.book.report().since == EPOCH


def test_the_slowest_are_kept_for_some_minutes() -> None:
    stage = Stage()
    for number in range(100):
        stage.run(item(number, float(number)), began=float(number), ended=number + 1.0 + number / 200)
    slowest = stage.book.report().slowest
    assert [each.id for each in slowest] == [f"r{number}" for number in range(99, 99 - MOST_SLOWEST, -1)]
    stage.time += SLOW_SECONDS + 1.0
    assert stage.book.report().slowest == ()


def test_of_many_a_sample_is_kept_and_told() -> None:
    stage = Stage()
    for number in range(2000):  # a hundred a second
        stage.run(item(number, number / 100), began=number / 100, ended=number / 100 + 0.009)
    sample = stage.book.report().sample
    assert len(sample) == MOST_SAMPLED
    assert sample[0].received > sample[-1].received
    assert 90 <= len(stage.told) <= 101  # five a second


def test_failures_are_all_kept_and_some_are_told() -> None:
    stage = Stage()
    for number in range(60):
        stage.time = number / 100
        stage.counters.failed(item(number, stage.time, instance=0), LATE, stage.time)
    failed = stage.book.report().failed
    assert len(failed) == MOST_FAILED
    assert (failed[0].id, failed[0].code, failed[0].error) == ("r59", "model failed", "It raised.")
    assert len(stage.told) == 3


def test_one_that_failed_within_an_execution_has_the_times_of_that() -> None:
    stage = Stage()
    stage.counters.failed(item(1, 1.0), LATE, 4.0)
    assert stage.book.report().failed == ()
    stage.time = 4.0
    stage.counters.executed(Executed([1, 2], [], 2.0, 2.0, 4.0, 4.0), 2, [item(2, 1.0)], 4.0)
    (failed,) = stage.book.report().failed
    assert (failed.queued, failed.computing, failed.together) == (1.0, 2.0, 2)


@pytest.mark.parametrize(
    "code", [Code.WORKER_DIED, Code.CANCELLED, Code.EXPIRED, Code.DRAINING, Code.QUEUE_FULL]
)
def test_behind_some_failures_no_execution_comes(code: Code) -> None:
    stage = Stage()
    stage.counters.failed(item(1, 1.0), ServeError(code, "No."), 4.0)
    (failed,) = stage.book.report().failed
    assert (failed.total, failed.together, failed.code) == (3.0, 0, code.value)


def test_one_that_streamed_waits_for_the_end_of_its_execution_but_not_for_ever() -> None:
    stage = Stage()
    stage.counters.streamed(item(1, 1.0), 4.0)
    stage.counters.streamed(item(2, 1.0), 4.5)
    assert stage.book.report().slowest == ()
    stage.time = 5.0
    stage.counters.executed(Executed([], [], 2.0, 2.0, 5.0, 5.0, 1, [1]), 1, [], 5.0)
    assert [(each.id, each.queued) for each in stage.book.report().slowest] == [("r1", 1.0)]
    stage.log.settle(4.5 + EARLY_SECONDS)
    assert len(stage.book.report().slowest) == 1
    stage.log.settle(4.6 + EARLY_SECONDS)
    assert [(each.id, each.together) for each in stage.book.report().slowest] == [("r2", 0), ("r1", 1)]


def test_those_that_wait_are_bounded() -> None:
    stage = Stage()
    for number in range(MOST_EARLY + 5):
        stage.counters.failed(item(number, 1.0), LATE, 2.0)
    assert [each.id for each in stage.book.report().failed] == ["r4", "r3", "r2", "r1", "r0"]


def test_others_answers_and_ill_ones() -> None:
    stage = Stage()
    stage.counters.cached(item(1, 1.0), 0.1, 1.5)
    stage.counters.answered_ill(item(2, 1.0), 3.0)
    stage.log.settle(100.0)
    report = stage.book.report()
    assert [each.id for each in report.failed] == ["r2"]
    assert "says that it failed" in report.failed[0].error
    assert [(each.id, each.together) for each in report.sample] == [("r1", 0)]


def test_texts_are_bounded() -> None:
    stage = Stage()
    long = Item(1, Infer("m", Tensors(()), id="i" * 10_000), print, 1.0, None)  # type: ignore[arg-type]
    stage.counters.failed(long, ServeError(Code.INVALID, "e" * 100_000), 2.0)
    (failed,) = stage.book.report().failed
    assert len(failed.id) == 200
    assert len(failed.error) == 2000


def test_who_begins_to_listen_sees_what_ends_from_then_on() -> None:
    stage = Stage()
    stage.run(item(1, 1.0), began=2.0, ended=4.0)
    stage.book.begin()
    report = stage.book.report()
    assert (report.slowest, report.failed, report.sample, report.since) == ((), (), (), EPOCH + 4.0)
