"""Answers in the order of their requests, whatever happens meanwhile."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.queueing.sequencer import ResponseSequencer
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart

ERROR = ResponsePart(error=ServeError(Code.MODEL_FAILED, "no"))


def test_what_is_done_first_waits_for_what_came_first():
    line, told = ResponseSequencer(), []
    one, two, three = (
        line.join(number, lambda part, n=number: told.append((n, part.final))) for number in range(3)
    )
    three(ResponsePart())
    two(ResponsePart(final=False))
    assert told == []
    one(ResponsePart(final=False))
    assert told == [(0, False)]
    one(ERROR)
    assert told == [(0, False), (0, True), (1, False)]
    two(ResponsePart())
    assert told[3:] == [(1, True), (2, True)]


def test_whoever_leaves_is_told_at_once_and_holds_up_nobody():
    line, told = ResponseSequencer(), []
    one, two, three = (line.join(number, lambda part, n=number: told.append(n)) for number in range(3))
    two(ResponsePart(final=False))
    line.leave(1)
    two(ERROR)
    three(ResponsePart())
    assert told == [1]
    line.leave(0)
    line.leave(0)
    assert told == [1, 2]
    one(ERROR)
    assert told == [1, 2, 0]


def test_a_receiver_that_fails_or_asks_again_hurts_nobody():
    line, told = ResponseSequencer(), []

    def failing(part):
        told.append("fails")
        line.join(9, lambda part: told.append("late"))(ResponsePart())
        raise RuntimeError

    one, two = line.join(1, failing), line.join(2, lambda part: told.append("two"))
    two(ResponsePart())
    one(ResponsePart())
    assert told == ["fails", "two", "late"]


@settings(max_examples=examples(200))
@given(st.permutations(range(8)), st.sets(st.integers(0, 7)))
def test_any_order_of_ends(ends, leavers):
    line, told = ResponseSequencer(), []
    places = [line.join(number, lambda part, n=number: told.append(n)) for number in range(8)]
    for number in ends:
        if number in leavers:
            line.leave(number)
        places[number](ResponsePart())
    assert sorted(told) == list(range(8))
    assert [number for number in told if number not in leavers] == sorted(set(range(8)) - leavers)
