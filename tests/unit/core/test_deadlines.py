"""Deadlines: the earlier one holds, a recall begins the run's anew, and items without one have no timer."""

import pytest
from tests.harness.virtual_models import make_infer

from trivium.core.queueing.deadlines import Deadlines
from trivium.core.request import Item
from trivium.load.simulate import VirtualClock
from trivium.types.errors import Code
from trivium.types.state import ItemState


class Owner:
    """Ends items as their owner does, and keeps why."""

    def __init__(self):
        self.ended = []

    def cancel(self, item, why):
        item.state = ItemState.ENDED
        self.ended.append((item.item, why))


class Desk:
    def __init__(self, run_limit=None):
        self.clock, self.owner = VirtualClock(), Owner()
        self.deadlines = Deadlines("m", run_limit, self.clock)

    def item(self, deadline=None, number=1):
        item = Item(number, make_infer(deadline=deadline), lambda part: None, self.clock.now(), self.owner)
        self.deadlines.keep_own(item)
        return item

    def until(self, when):
        self.clock.run(when)
        return [number for number, _ in self.owner.ended]


def test_without_any_there_is_no_timer():
    desk = Desk()
    item = desk.item()
    desk.deadlines.started([item])
    desk.deadlines.recalled(item)
    assert item.timer is None
    assert desk.until(1e9) == []


def test_a_requests_own_counts_from_receipt():
    desk = Desk()
    desk.clock.run(10.0)
    desk.item(2.5)
    assert desk.until(12.4) == []
    assert desk.until(12.6) == [1]
    (_, error) = desk.owner.ended[0]
    assert error.code is Code.EXPIRED
    assert error.message == "The request to model 'm' ran out of time: its deadline of 2.5 s."


def test_the_run_deadline_counts_from_the_start():
    desk = Desk(1.0)
    items = [desk.item(number=number) for number in (1, 2)]
    desk.clock.run(5.0)
    desk.deadlines.started(items)
    assert desk.until(5.9) == []
    assert desk.until(6.1) == [1, 2]
    assert "the model's run deadline of 1 s" in desk.owner.ended[0][1].message


@pytest.mark.parametrize(
    ("own", "when", "words"), [(0.5, 0.5, "its deadline of 0.5 s"), (9, 1.0, "run deadline of 1 s")]
)
def test_the_earlier_one_holds(own, when, words):
    desk = Desk(1.0)
    item = desk.item(own)
    desk.deadlines.started([item])
    assert desk.until(when - 0.01) == []
    assert desk.until(when + 0.01) == [1]
    assert words in desk.owner.ended[0][1].message
    desk.until(100.0)
    assert len(desk.owner.ended) == 1


def test_a_recalled_item_keeps_its_own_and_begins_its_run_anew():
    desk = Desk(1.0)
    item = desk.item(5.0)
    desk.deadlines.started([item])
    desk.clock.run(0.9)
    desk.deadlines.recalled(item)
    assert item.deadline == 5.0
    desk.clock.run(3.0)
    desk.deadlines.started([item])
    assert desk.until(3.9) == []
    assert desk.until(4.1) == [1]
    alone = Desk(1.0)
    item = alone.item()
    alone.deadlines.started([item])
    alone.deadlines.recalled(item)
    assert (item.timer, item.deadline) == (None, None)
    assert alone.until(99.0) == []


def test_a_deadline_that_has_passed_ends_it_at_the_next_turn():
    desk = Desk()
    desk.item(-1.0)
    assert desk.owner.ended == []
    assert desk.until(0.0) == [1]
