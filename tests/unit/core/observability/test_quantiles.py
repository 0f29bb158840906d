"""Quantiles of the last minute: right to one per cent, forgetting in slices, bounded."""

from math import ceil, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.core.observability.quantiles import SLICES, SPAN, RecentValues, parse_quantiles
from trivium.types.errors import Code, ServeError

WANTED = (0.0, 0.5, 0.9, 0.99, 1.0)


@given(st.lists(st.floats(1e-7, 1e4), min_size=1, max_size=60))
def test_each_is_within_a_hundredth_of_the_right_one(values):
    recent = RecentValues()
    for value in values:
        recent.add(value, 1, 0.0)
    ordered = sorted(values)
    for quantile, found in recent.quantiles(WANTED, 0.0):
        exact = ordered[max(1, ceil(quantile * len(ordered))) - 1]
        assert found == pytest.approx(exact, rel=0.011)


def test_several_at_once_are_as_many_one_by_one():
    together, apart = RecentValues(), RecentValues()
    together.add(0.5, 3, 0.0)
    for _ in range(3):
        apart.add(0.5, 1, 0.0)
    assert together.quantiles(WANTED, 0.0) == apart.quantiles(WANTED, 0.0)


def test_what_is_old_is_forgotten():
    recent = RecentValues()
    recent.add(100.0, 1, 0.0)
    recent.add(1.0, 1, SPAN / 2)
    assert dict(recent.quantiles((1.0,), SPAN - 1.0))[1.0] == pytest.approx(100.0, rel=0.01)
    assert dict(recent.quantiles((1.0,), SPAN))[1.0] == pytest.approx(1.0, rel=0.01)
    assert isnan(dict(recent.quantiles((1.0,), 2 * SPAN))[1.0])


def test_nothing_has_no_quantiles():
    assert all(isnan(value) for _, value in RecentValues().quantiles(WANTED, 5.0))


def test_memory_is_bounded_however_long_it_runs():
    recent = RecentValues()
    for step in range(2000):
        recent.add(1.0 + step % 7, 1, step * 1.0)
    assert len(recent.bucket_counts()) <= SLICES + 1
    assert max(recent.bucket_counts()) <= 7


def test_no_time_at_all_is_a_value():
    recent = RecentValues()
    recent.add(0.0, 1, 0.0)
    assert dict(recent.quantiles((0.5,), 0.0))[0.5] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(
    ("text", "quantiles"),
    [("", ()), ("0.5", (0.5,)), ("0.5,0.99", (0.5, 0.99)), ("0.5:0.05,0.9:0.01", (0.5, 0.9))],
)
def test_quantiles_are_read(text, quantiles):
    assert parse_quantiles(text) == quantiles


@pytest.mark.parametrize("text", ["x", "1.5", "-0.1", "nan", "0.5:x", "0.5;0.9"])
def test_what_is_no_quantile_is_refused(text):
    with pytest.raises(ServeError, match="is no quantile") as caught:
        parse_quantiles(text)
    assert caught.value.code is Code.INVALID
