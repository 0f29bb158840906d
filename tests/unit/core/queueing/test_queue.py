"""The queue alone: lanes, expiry, demotion, and what was handed out coming back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.queueing.queue import RequestQueue
from trivium.core.request import Item
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.state import ItemState

ASK = Infer(model="m", payload=Tensors(()))


class Nobody:
    """Owns items that nobody cancels."""

    def cancel(self, item, why):
        raise AssertionError("no test here cancels")


def item(number, level=1, rows=1, until=None):
    return Item(number, ASK, print, 0.0, Nobody(), rows=rows, level=level, queue_deadline=until)


def filled(*items):
    queue = RequestQueue(lambda: ())
    for one in items:
        queue.add(one)
    return queue


def order(queue):
    return [entry.item for entry in queue.entries()]


def test_lanes_are_served_by_level_then_by_arrival():
    queue = filled(item(1, 2), item(2, 1, rows=3), item(3, 2), item(4, 1))
    assert order(queue) == [2, 4, 1, 3]
    assert (queue.count, queue.rows) == (4, 6)
    assert (queue.level_count(1), queue.level_count(2)) == (2, 2)


def test_levels_that_nobody_asks_for_cost_nothing():
    late = item(3, 3, until=1.0)
    queue = filled(item(1, 10**9), item(2, 3), late)
    queue.demote(late)
    assert order(queue) == [2, 3, 1]
    assert queue.level_count(5) == 0
    assert not queue.remove(item(9, 4))


def test_the_demoted_wait_behind_their_level_and_have_no_deadline():
    late = item(1, 1, until=5.0)
    queue = filled(late, item(2, 1), item(3, 2))
    assert queue.expired(5.0) == [late]
    queue.demote(late)
    assert order(queue) == [2, 1, 3]
    assert (queue.count, queue.level_count(1)) == (3, 2)
    assert not queue.expired(9.0)
    assert queue.next_expiry(0.0) is None


def test_what_is_taken_is_gone_from_either_lane():
    late, other, last = item(1, until=1.0), item(2), item(3, rows=2)
    queue = filled(late, other, last)
    queue.demote(late)
    queue.take([other, late])
    assert order(queue) == [3]
    assert (queue.count, queue.rows) == (1, 2)


def test_only_what_waits_can_be_removed():
    late, other = item(1, until=1.0), item(2)
    queue = filled(late, other)
    queue.demote(late)
    assert queue.remove(late)
    assert not queue.remove(late)
    assert queue.remove(other)
    assert (queue.count, queue.rows) == (0, 0)


def test_what_comes_back_stands_in_front_and_waits_without_limit():
    first, second, third = item(1, until=3.0), item(2), item(3)
    queue = filled(first, second, third)
    queue.take([first, second])
    for one in (second, first):
        queue.put_back(one)
    assert order(queue) == [1, 2, 3]
    assert (queue.count, queue.rows) == (3, 3)
    assert not queue.expired(99.0)


def test_expiry_is_told_in_order_of_time_and_only_of_those_that_wait():
    slow, fast, gone, never = item(1, until=7.0), item(2, until=4.0), item(3, until=2.0), item(4)
    queue = filled(slow, fast, gone, never)
    assert queue.next_expiry(0.0) == 2.0
    queue.take([gone])
    gone.state = ItemState.STARTED
    assert not queue.expired(3.9)
    assert queue.expired(4.0) == [fast]
    assert queue.expired(7.0) == [fast, slow]
    assert queue.next_expiry(0.0) == 4.0
    assert queue.next_expiry(4.0) == 7.0
    assert queue.next_expiry(7.0) is None
    queue.remove(fast)
    fast.state = ItemState.ENDED
    assert queue.expired(9.0) == [slow]


def test_a_queue_without_deadlines_tells_none():
    queue = filled(item(1))
    assert not queue.expired(9.0)
    assert queue.next_expiry(0.0) is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "take", "remove", "demote", "put_back"]), st.integers(0, 30)),
    max_size=40,
)


@settings(max_examples=examples(100))
@given(STEPS)
def test_counts_are_those_of_what_waits(steps):
    queue = RequestQueue(lambda: ())
    waiting, demoted, out = {}, set(), []
    for number, (step, pick) in enumerate(steps, 1):
        chosen = sorted(waiting)[pick % len(waiting)] if waiting else None
        if step == "add":
            waiting[number] = item(number, 1 + pick % 2, rows=1 + pick % 3)
            queue.add(waiting[number])
        elif step == "put_back" and out:
            back = out.pop()
            waiting[back.item] = back
            demoted.discard(back.item)
            queue.put_back(back)
        elif step == "demote" and chosen and chosen not in demoted:
            demoted.add(chosen)
            queue.demote(waiting[chosen])
        elif step == "take" and chosen:
            out.append(waiting.pop(chosen))
            queue.take(out[-1:])
        elif step == "remove" and chosen:
            assert queue.remove(waiting.pop(chosen))
        assert sorted(order(queue)) == sorted(waiting)
        assert queue.count == len(waiting)
        assert queue.rows == sum(one.rows for one in waiting.values())
        lanes = [(entry.level, entry.item in demoted) for entry in queue.entries()]
        assert lanes == sorted(lanes)
        levels = [level for level, _ in lanes]
        assert [queue.level_count(level) for level in (1, 2)] == [levels.count(1), levels.count(2)]


def test_to_demote_twice_is_our_own_fault():
    late = item(1, until=1.0)
    queue = filled(late)
    queue.demote(late)
    with pytest.raises(KeyError):
        queue.demote(late)
