"""Those who watch a server, on a virtual clock: what they get, what they miss, and that nobody costs nothing."""

from typing import Any

from tests.harness.virtual_models import VirtualModelHarness, make_spec

from trivium.core.models.registry import Registry
from trivium.core.models.watching import (
    HELD_SECONDS,
    LISTEN_SECONDS,
    MOST_KEPT,
    MOST_LISTENERS,
    Watching,
)
from trivium.core.observability.news import ServerNews
from trivium.core.observability.timelines import TimelineBook
from trivium.core.request import CANCELLED
from trivium.types.errors import Code
from trivium.types.observing import InstanceOpened, LostNews, WorkerSaid
from trivium.types.operations import Answer, Listing, Readiness, ResponsePart, Snapshot
from trivium.types.state import ServerState
from trivium.types.statistics import StatisticsReport

OPENED = InstanceOpened(1.0, "m", "1", "m_0")


class Guest:
    """One who listens, and is full once it `holds`."""

    def __init__(self, watching: Watching) -> None:
        self.parts: list[ResponsePart] = []
        self.ticket = watching.begin(self.parts.append)

    @property
    def heard(self) -> list[Answer | None]:
        """All that came, snapshots by their word."""
        return [part.answer for part in self.parts if not part.final]

    def kinds(self) -> list[str]:
        return [type(answer).__name__ for answer in self.heard]

    def is_over(self) -> bool:
        return self.parts[-1].final


class Scene:
    """A model that serves, on a virtual clock, and whoever watches it."""

    def __init__(self) -> None:
        self.stage = VirtualModelHarness(make_spec())
        self.clock, self.model = self.stage.clock, self.stage.model
        self.registry = Registry()
        self.registry.record("m", "1").loaded = self.model
        self.news = ServerNews()
        self.taken = 0
        self.book = TimelineBook(self.clock.now, lambda: 1e6 + self.clock.now(), self.news)
        self.watching = Watching(self.registry, self.clock, self.news, self.book, self.look)

    def look(self) -> Snapshot:
        self.taken += 1
        listing, report = Listing(()), StatisticsReport((self.model.report(),))
        now = self.clock.now()
        return Snapshot(now, now, 0.0, ServerState.SERVING, Readiness(True), listing, report, ())

    def pass_seconds(self, seconds: float) -> None:
        self.clock.run(self.clock.now() + seconds)

    def is_at_rest(self) -> bool:
        """Does nobody wait, hear, or count for a listener?"""
        before = self.taken
        self.pass_seconds(10.0)
        self.stage.submit()
        self.pass_seconds(10.0)
        kept = self.book.report()
        has_more = any(
            line.received > 1e6 + self.clock.now() - 20
            for line in (*kept.slowest, *kept.sample, *kept.failed)
        )
        return self.taken == before and self.news.heard is None and not has_more


def test_nobody_listens_and_nothing_is_done() -> None:
    assert Scene().is_at_rest()


def test_one_gets_a_snapshot_at_once_and_every_second() -> None:
    scene = Scene()
    guest = Guest(scene.watching)
    assert guest.kinds() == ["Snapshot"]
    scene.pass_seconds(5.5)
    assert guest.kinds() == ["Snapshot"] * 6
    assert scene.taken == 6


def test_all_get_the_same_part_which_is_made_once() -> None:
    scene = Scene()
    guests = [Guest(scene.watching) for _ in range(5)]
    scene.pass_seconds(1.0)
    assert scene.taken == 5 + 1
    assert len({id(guest.parts[-1]) for guest in guests}) == 1


def test_news_and_ends_of_requests_come_as_they_happen() -> None:
    scene = Scene()
    guest = Guest(scene.watching)
    scene.news.tell(OPENED)
    assert guest.heard[1] is OPENED
    scene.stage.submit()
    scene.pass_seconds(2.5)
    assert "Timeline" in guest.kinds()
    report: Any = guest.heard[-1]
    assert report.statistics.versions[0].success.count == 1


def test_who_leaves_last_leaves_nothing() -> None:
    scene = Scene()
    guests = [Guest(scene.watching) for _ in range(2)]
    guests[0].ticket.cancel(CANCELLED)
    scene.pass_seconds(3.0)
    assert len(guests[1].heard) == 4
    guests[1].ticket.cancel(CANCELLED)
    guests[1].ticket.cancel(CANCELLED)
    assert [guest.is_over() for guest in guests] == [True, True]
    assert scene.watching.count == 0
    assert scene.is_at_rest()


def test_a_slow_one_keeps_so_much_and_is_told_what_it_missed() -> None:
    scene = Scene()
    slow, quick = Guest(scene.watching), Guest(scene.watching)
    slow.ticket.hold()
    for number in range(MOST_KEPT + 7):
        scene.news.tell(WorkerSaid(0.0, "m", "1", "m_0", str(number)))
    scene.pass_seconds(4.0)
    assert slow.kinds() == ["Snapshot"]
    assert quick.kinds().count("WorkerSaid") == MOST_KEPT + 7
    slow.ticket.resume()
    assert slow.kinds() == ["Snapshot", *["WorkerSaid"] * MOST_KEPT, "LostNews", "Snapshot"]
    assert slow.heard[-2] == LostNews(7)
    scene.news.tell(OPENED)
    assert slow.heard[-1] is OPENED


def test_one_that_is_full_again_while_it_catches_up_keeps_the_rest() -> None:
    scene = Scene()
    parts: list[ResponsePart] = []

    def sink(part: ResponsePart) -> None:
        parts.append(part)
        if len(parts) == 3:
            ticket.hold()

    ticket = scene.watching.begin(sink)
    ticket.hold()
    for number in range(5):
        scene.news.tell(WorkerSaid(0.0, "m", "1", "m_0", str(number)))
    ticket.resume()
    assert len(parts) == 3
    ticket.resume()
    said = [part.answer.text for part in parts if isinstance(part.answer, WorkerSaid)]
    assert said == ["0", "1", "2", "3", "4"]


def test_who_reads_nothing_is_cut_off_and_who_listens_long_is_sent_away() -> None:
    scene = Scene()
    dead, alive = Guest(scene.watching), Guest(scene.watching)
    dead.ticket.hold()
    scene.pass_seconds(HELD_SECONDS + 2)
    assert dead.is_over()
    assert not alive.is_over()
    scene.pass_seconds(LISTEN_SECONDS)
    assert alive.is_over()
    assert scene.is_at_rest()


def test_there_are_so_many_at_most_and_none_once_the_server_goes_down() -> None:
    scene = Scene()
    guests = [Guest(scene.watching) for _ in range(MOST_LISTENERS)]
    (refusal,) = Guest(scene.watching).parts
    assert refusal.error is not None
    assert (refusal.error.code, refusal.error.retry_after) == (Code.QUEUE_FULL, 5.0)
    scene.watching.close()
    assert all(guest.is_over() and guest.parts[-1].error is None for guest in guests)
    (refusal,) = Guest(scene.watching).parts
    assert refusal.error is not None
    assert refusal.error.code is Code.DRAINING
    assert scene.is_at_rest()


def test_models_that_come_and_go_are_heard_meanwhile() -> None:
    scene = Scene()
    record = scene.registry.record("m", "1")
    record.loaded = None
    guest = Guest(scene.watching)
    record.loaded = scene.model
    scene.pass_seconds(1.0)
    scene.stage.submit()
    scene.pass_seconds(2.0)
    assert "Timeline" in guest.kinds()
    record.loaded = None
    scene.pass_seconds(1.0)
    count = guest.kinds().count("Timeline")
    scene.stage.submit()
    scene.pass_seconds(2.0)
    assert guest.kinds().count("Timeline") == count
