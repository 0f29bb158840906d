"""How many instances a group has, by tables and as properties."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.instances.scaler_policy import RETIRE_SECONDS, GroupView, Scaling, decide
from trivium.types.spec import InstanceGroup, Limits

FIXED = InstanceGroup("g", 2, 2)
ELASTIC = InstanceGroup("g", 0, 3, idle_seconds=10.0)
WIDE = InstanceGroup("g", 1, 3, idle_seconds=10.0)


STEPS = Limits().retry_steps
RETIRED = 100.0 + RETIRE_SECONDS


def view(open=0, opening=0, idle=(), waiting=0, failures=0, failed_at=0.0, stale=(), busy=()):
    return GroupView(open, opening, tuple(idle), waiting, failures, failed_at, tuple(stale), tuple(busy))


NONE = InstanceGroup("g", 0, 0)
EXACTLY = InstanceGroup("g", 1, 3, is_fixed=True)

CASES = {
    "beyond the maximum idle ones close at once": (
        FIXED,
        view(open=4, idle=[(3, 99.0), (4, 98.0)], busy=[1, 2]),
        Scaling(close=(4, 3), wake_at=RETIRED),
    ),
    "then those that are busy": (
        FIXED,
        view(open=4, idle=[(4, 98.0)], busy=[1, 2, 3]),
        Scaling(close=(4, 1), wake_at=RETIRED),
    ),
    "of none all close": (NONE, view(open=2, busy=[1, 2]), Scaling(close=(1, 2), wake_at=RETIRED)),
    "of none one stays while items wait": (
        NONE,
        view(open=2, busy=[1, 2], waiting=1),
        Scaling(close=(1,), wake_at=RETIRED),
    ),
    "of none one opens while items wait": (NONE, view(waiting=1), Scaling(open=1)),
    "of none nothing opens": (NONE, view(), Scaling()),
    "a fixed group has its minimum": (EXACTLY, view(open=1, busy=[1], waiting=9), Scaling()),
    "and no more": (EXACTLY, view(open=3, busy=[1, 2, 3]), Scaling(close=(1, 2), wake_at=RETIRED)),
    "up to the minimum at once": (FIXED, view(), Scaling(open=2)),
    "those being opened count": (FIXED, view(open=1, opening=1), Scaling()),
    "one that died is replaced": (FIXED, view(open=1), Scaling(open=1)),
    "a fixed group does not grow": (FIXED, view(open=2, waiting=9), Scaling()),
    "nothing waits, nothing opens": (ELASTIC, view(), Scaling()),
    "the first item opens the first": (ELASTIC, view(waiting=1), Scaling(open=1)),
    "one at a time": (ELASTIC, view(opening=1, waiting=9), Scaling()),
    "the next while all are busy": (ELASTIC, view(open=1, waiting=1), Scaling(open=1)),
    "not while one idles": (ELASTIC, view(open=1, idle=[(7, 99.0)], waiting=1), Scaling(wake_at=109.0)),
    "not beyond the maximum": (ELASTIC, view(open=3, waiting=9), Scaling()),
    "idle ones wait for their time": (WIDE, view(open=2, idle=[(7, 95.0)]), Scaling(wake_at=105.0)),
    "and then are closed": (WIDE, view(open=2, idle=[(7, 90.0)]), Scaling(close=(7,))),
    "the longest idle first": (WIDE, view(open=2, idle=[(7, 80.0), (8, 70.0)]), Scaling(close=(8,))),
    "the minimum stays": (WIDE, view(open=1, idle=[(7, 0.0)]), Scaling()),
    "without minimum the last goes too": (ELASTIC, view(open=1, idle=[(7, 0.0)]), Scaling(close=(7,))),
    "some now, some later": (
        ELASTIC,
        view(open=3, idle=[(7, 0.0), (8, 93.0), (9, 92.0)]),
        Scaling(close=(7,), wake_at=102.0),
    ),
    "a failed opening is tried again later": (
        FIXED,
        view(open=1, failures=1, failed_at=99.5),
        Scaling(wake_at=100.5, backs_off=True),
    ),
    "later with each failure in a row": (
        FIXED,
        view(failures=3, failed_at=99.0),
        Scaling(wake_at=103.0, backs_off=True),
    ),
    "when its time has come": (FIXED, view(failures=1, failed_at=99.0), Scaling(open=2)),
    "never later than the longest": (
        FIXED,
        view(failures=99, failed_at=100.0),
        Scaling(wake_at=100.0 + STEPS[-1], backs_off=True),
    ),
    "a stale one is replaced first": (FIXED, view(open=2, stale=[1]), Scaling(open=1)),
    "and serves until there is another": (FIXED, view(open=2, opening=1, stale=[1]), Scaling()),
    "then it is closed": (FIXED, view(open=3, stale=[1]), Scaling(close=(1,), wake_at=RETIRED)),
    "all are stale": (FIXED, view(open=2, stale=[1, 2]), Scaling(open=2)),
    "all were stale": (FIXED, view(open=4, stale=[1, 2]), Scaling(close=(1, 2), wake_at=RETIRED)),
    "one of two replacements is there": (FIXED, view(open=3, opening=1, stale=[1, 2]), Scaling()),
    "a replacement that fails is tried later": (
        FIXED,
        view(open=2, stale=[1], failures=2, failed_at=100.0),
        Scaling(wake_at=102.0, backs_off=True),
    ),
    "a stale one beyond the minimum is not replaced": (
        WIDE,
        view(open=2, stale=[1]),
        Scaling(close=(1,), wake_at=RETIRED),
    ),
    "unless there is work": (WIDE, view(open=2, stale=[1], waiting=1), Scaling(open=1)),
    "failures hold back growth as well": (
        ELASTIC,
        view(waiting=1, failures=1, failed_at=100.0),
        Scaling(wake_at=101.0, backs_off=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_decisions(name):
    group, seen, decision = CASES[name]
    assert decide(seen, group, STEPS, 100.0) == decision


@pytest.mark.parametrize(
    ("steps", "waits"),
    [(STEPS, [1, 2, 4, 8, 16, 32, 60, 60]), ((0.0, 1.0, 1.0, 2.0), [0, 1, 1, 2, 2]), ((5.0,), [5, 5])],
)
def test_the_steps_between_two_tries_are_what_the_model_says(steps, waits):
    found = []
    for failures in range(1, len(waits) + 1):
        decision = decide(view(failures=failures, failed_at=100.0), FIXED, steps, 100.0)
        assert decision.backs_off == (not decision.open)
        found.append((decision.wake_at or 100.0) - 100.0)
    assert found == waits


@settings(max_examples=examples(300))
@given(
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 4),
    st.lists(st.floats(0, 100), max_size=4),
    st.integers(0, 3),
    st.tuples(st.integers(0, 4), st.floats(0, 100)),
    st.sets(st.integers(0, 7)),
)
def test_bounds_hold_and_wake_at_is_later(minimum, more, busy, idle_since, opening, failed, stale):
    group = InstanceGroup("g", minimum, minimum + more, idle_seconds=5.0)
    idle = tuple(enumerate(idle_since))
    stale = tuple(number for number in sorted(stale) if number < busy + len(idle))
    seen = GroupView(busy + len(idle), opening, idle, busy, *failed, stale)
    decision = decide(seen, group, STEPS, 100.0)
    assert decision.wake_at is None or decision.wake_at > 100.0
    assert set(decision.close) <= {number for number, _ in idle} | set(stale)
    assert not (decision.open and decision.close)
    if decision.open:
        most = group.maximum or int(seen.waiting > 0)  # a group of none keeps one while items wait
        assert seen.open + opening - len(stale) + decision.open <= most
    if decision.close:
        assert seen.open - len(decision.close) >= group.minimum
