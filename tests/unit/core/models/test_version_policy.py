"""Which versions are to serve: tables, and the promises of a plan as properties."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.models.version_policy import Plan, plan, wanted
from trivium.types.spec import All, Latest, Specific, version_order


@pytest.mark.parametrize(
    ("available", "policy", "wants"),
    [
        ({"1", "2", "10"}, Latest(1), {"10"}),
        ({"1", "2", "10"}, Latest(2), {"2", "10"}),
        ({"1", "2"}, Latest(9), {"1", "2"}),
        ({"1", "2"}, Latest(0), set()),
        (set(), Latest(1), set()),
        ({"1", "2"}, All(), {"1", "2"}),
        ({"1", "2"}, Specific(frozenset({"2", "3"})), {"2"}),
        ({"1"}, Specific(frozenset()), set()),
        ({"", "x", "1"}, Latest(1), {"1"}),
    ],
)
def test_wanted(available, policy, wants):
    assert wanted(available, policy) == wants


def test_versions_are_ordered_by_number_then_as_text():
    assert sorted(["10", "b", "2", "", "02", "a"], key=version_order) == ["", "a", "b", "02", "2", "10"]


@pytest.mark.parametrize(
    ("serving", "available", "policy", "steps"),
    [
        ((), ("1", "2"), Latest(1), Plan(("2",), ())),
        (("1",), ("1", "2"), Latest(1), Plan(("2",), ("1",))),
        (("1",), ("1",), Latest(1), Plan(("1",), ())),
        (("1", "2"), ("2", "10"), All(), Plan(("2", "10"), ("1",))),
        (("1", "2"), (), All(), Plan((), ("1", "2"))),
        (("1", "10", "2"), ("3",), Specific(frozenset("3")), Plan(("3",), ("1", "2", "10"))),
    ],
)
def test_plans(serving, available, policy, steps):
    assert plan(serving, available, policy) == steps


NUMBERS = st.sets(st.integers(0, 30).map(str), max_size=6)
POLICIES = st.one_of(
    st.builds(Latest, st.integers(0, 4)),
    st.just(All()),
    st.builds(Specific, st.frozensets(st.integers(0, 30).map(str))),
)


@settings(max_examples=examples(200))
@given(NUMBERS, NUMBERS, POLICIES)
def test_nothing_wanted_is_dropped_and_nothing_unwanted_stays(serving, available, policy):
    steps = plan(serving, available, policy)
    wants = wanted(available, policy)
    assert set(steps.load) == wants <= available
    assert not wants & set(steps.unload)
    assert (serving | set(steps.load)) - set(steps.unload) == wants
    assert list(steps.load) == sorted(steps.load, key=int)
    assert list(steps.unload) == sorted(steps.unload, key=int)
