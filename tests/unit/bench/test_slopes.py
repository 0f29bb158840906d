"""A series that grows is found behind noise, and noise alone is not taken for growth."""

import random

import pytest
from bench.soak.slopes import Bound, judge, slope, windowed

TIMES = [5.0 * look for look in range(720)]
BOUNDS = {"memory": Bound("MiB", 8)}


def series(growth: float, noise: float, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [100 + growth * time / TIMES[-1] + chance.uniform(-noise, noise) for time in TIMES]


@pytest.mark.parametrize("noise", [0, 5, 20])
@pytest.mark.parametrize(
    ("growth", "is_flat"), [(0, True), (4, True), (-50, True), (16, False), (200, False)]
)
def test_growth_is_told_from_noise(growth: float, noise: float, is_flat: bool) -> None:
    (verdict,) = judge(TIMES, {"memory": series(growth, noise)}, BOUNDS)
    assert verdict.is_flat == is_flat, verdict


def test_a_few_wild_values_do_not_make_a_slope() -> None:
    values = series(0, 1)
    values[-60::10] = [10_000] * 6
    (verdict,) = judge(TIMES, {"memory": values}, BOUNDS)
    assert verdict.is_flat


def test_a_share_of_the_median_widens_the_bound() -> None:
    bound = {"memory": Bound("MiB", 8, 0.5)}
    (verdict,) = judge(TIMES, {"memory": series(30, 0)}, bound)
    assert verdict.is_flat
    assert verdict.allowed > 50


def test_windows_hold_medians() -> None:
    assert windowed([0, 1, 2, 3, 4, 5], [1, 9, 2, 3, 3, 30], 2) == [(1, 2), (4, 3)]


def test_the_slope_is_that_of_a_line() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == 2
    with pytest.raises(ValueError, match="two points"):
        slope([(0, 1)])
