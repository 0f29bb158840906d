"""The times of the items of a worker that has many in work: by the mark of what has begun, and by what was heard."""

import pytest

from trivium.core.workers.process import ManyItems
from trivium.core.workers.wire import AnswerReader, ProtocolError
from trivium_worker.wire import frames


def nobody(item):
    return False


def handed_over(*numbers):
    """One item in each frame, whose number is ten times the frame's."""
    items = ManyItems()
    for number in numbers:
        items.hand_over(number, [10 * number])
    return items


def test_an_item_runs_once_it_is_known_to_have_begun():
    items = handed_over(1, 2)
    assert items.oldest(nobody) is None
    items.look(1, 5.0)
    items.look(2, 7.0)
    assert items.oldest(nobody) == 5.0
    items.end(10)
    assert items.oldest(nobody) == 7.0
    items.end(20)
    assert items.oldest(nobody) is None


@pytest.mark.parametrize(
    ("progressed", "stopped", "oldest"),
    [
        ((), (), 5.0),
        ((10,), (), 6.0),
        ((10, 20), (), 9.0),
        ((), (10,), 6.0),
        ((), (10, 20), None),
        ((99,), (), 5.0),
    ],
)
def test_the_oldest_is_the_one_without_a_sign_for_longest(progressed, stopped, oldest):
    items = handed_over(1, 2)
    items.look(1, 5.0)
    items.look(2, 6.0)
    for item in progressed:
        items.progress(item, 9.0)
    assert items.oldest(stopped.__contains__) == oldest


@pytest.mark.parametrize(
    ("begun", "rest"), [(0, {10, 20, 30}), (1, {20, 30}), (2, {30}), (3, set()), (9, set())]
)
def test_what_stands_behind_the_mark_has_not_begun(begun, rest):
    assert handed_over(1, 2, 3).unbegun(begun) == rest


def test_one_that_ended_before_it_began_is_never_seen_to_run():
    items = handed_over(1, 2)
    items.end(10)
    items.settle(10)
    items.look(2, 5.0)
    items.end(20)
    assert items.oldest(nobody) is None


def test_a_credit_comes_back_once():
    items = handed_over(1)
    items.settle(10)
    for item in (10, 20):
        with pytest.raises(ProtocolError, match="owes none"):
            items.settle(item)


def test_a_credit_brings_the_times_of_its_item():
    body = frames.CREDIT_BODY.pack(7, 3, 1.5, 2.5)
    run = AnswerReader().credit(b"head" + body + b"next", 4, 4 + len(body), False)
    assert (run.items, run.outcomes, run.batch, run.rows, run.is_one_of_many) == ([], [], (7,), 3, True)
    assert (run.began, run.input_ready, run.output_began, run.ended) == (1.5, 1.5, 2.5, 2.5)
