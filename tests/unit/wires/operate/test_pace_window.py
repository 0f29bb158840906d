"""Rates and quantiles over a window, from counts that only grow: by tables and by hand."""

import pytest

from trivium.types.metrics import Buckets
from trivium.wires.operate.window import MOST_SECONDS, Counts, Pace, PaceWindow, merged, quantile

INFINITY = float("inf")


def taken(window: PaceWindow, requests: int, now: float, buckets: Buckets = ()) -> Pace:
    return window.take({"m": Counts(requests, buckets)}, now)["m"]


def test_one_snapshot_tells_no_rate() -> None:
    assert taken(PaceWindow(), 1000, 5.0) == Pace()


def test_a_rate_is_that_of_the_last_ten_seconds() -> None:
    window = PaceWindow()
    for second in range(31):  # ten a second, and from the twentieth on none
        pace = taken(window, min(second, 20) * 10, float(second))
        if second in (5, 20):
            assert pace.rate == pytest.approx(10.0)
    assert pace.rate == 0.0
    assert pace.history == (10.0,) * 20 + (0.0,) * 10


def test_a_rate_fades_as_the_window_passes() -> None:
    window = PaceWindow()
    rates = [taken(window, 100 if second else 0, float(second)).rate for second in range(13)]
    assert rates[1] == 100.0
    assert rates[5] == 20.0
    assert rates[10] == 10.0
    assert rates[11] == rates[12] == 0.0


def test_who_asks_more_often_than_once_a_second_changes_nothing() -> None:
    window = PaceWindow()
    taken(window, 0, 0.0)
    for tenth in range(1, 9):
        pace = taken(window, tenth, tenth / 10)
        assert (pace.rate, pace.history) == (pytest.approx(10.0), ())
    assert taken(window, 10, 1.0).history == (10.0,)
    assert taken(window, 11, 1.1).history == (10.0,)


def test_a_gap_is_filled_with_its_mean_and_the_history_is_bounded() -> None:
    window = PaceWindow()
    taken(window, 0, 0.0)
    assert taken(window, 8, 4.0).history == (2.0,) * 4
    assert taken(window, 1008, 1004.0).history == (1.0,) * MOST_SECONDS


def test_counts_that_begin_anew_are_no_negative_rate() -> None:
    window = PaceWindow()
    taken(window, 500, 0.0)
    assert taken(window, 3, 1.0).rate == 0.0
    assert taken(window, 5, 2.0).rate == pytest.approx(2.0)


def test_models_that_are_gone_are_forgotten() -> None:
    window = PaceWindow()
    window.take({"m": Counts(5), "n": Counts(1)}, 0.0)
    assert window.take({"n": Counts(3)}, 1.0).keys() == {"n"}
    assert taken(window, 9, 2.0) == Pace()


def test_quantiles_are_of_the_window_alone() -> None:
    window = PaceWindow()
    taken(window, 1000, 0.0, ((0.001, 1000), (1.0, 0), (INFINITY, 0)))
    pace = taken(window, 1100, 1.0, ((0.001, 1000), (1.0, 100), (INFINITY, 0)))
    assert pace.p50 == pytest.approx(0.5, abs=0.01)
    assert pace.p99 == pytest.approx(0.99, abs=0.01)


@pytest.mark.parametrize(
    ("counts", "share", "value"),
    [
        ((0, 0, 0), 0.5, None),
        ((10, 0, 0), 0.5, 0.5),
        ((10, 0, 0), 1.0, 1.0),
        ((5, 5, 0), 0.5, 1.0),
        ((5, 5, 0), 0.75, 1.5),
        ((0, 0, 4), 0.5, 2.0),  # beyond all bounds: at least so long
        ((1, 0, 1), 0.99, 2.0),
    ],
)
def test_quantiles_of_buckets(counts: tuple[int, ...], share: float, value: float | None) -> None:
    assert quantile(tuple(zip((1.0, 2.0, INFINITY), counts, strict=True)), share) == value


def test_histograms_of_versions_are_added() -> None:
    assert merged([(), ((1.0, 2), (INFINITY, 1)), (), ((1.0, 3), (INFINITY, 0))]) == ((1.0, 5), (INFINITY, 1))
    assert merged([]) == ()
