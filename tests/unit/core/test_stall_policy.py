"""Why a loop was held up: by tables of what was counted."""

import pytest

from trivium.core.stall_policy import (
    SAYING_SECONDS,
    LoopCounters,
    LoopDelay,
    StallCause,
    is_said,
    is_stall,
    likely_cause,
)


@pytest.mark.parametrize(
    ("late", "computed", "waited", "pages", "is_loading", "cause", "stalls"),
    [
        (0.6, 0.6, 0.0, 0, True, StallCause.LOADING, True),
        (0.6, 0.0, 0.6, 900, True, StallCause.LOADING, False),
        (0.6, 0.1, 0.0, 900, False, StallCause.SWAPPING, False),
        (0.6, 0.1, 0.5, 900, False, StallCause.SWAPPING, False),
        (0.6, 0.1, 0.5, 3, False, StallCause.OTHERS, False),
        (0.6, 0.5, 0.1, 3, False, StallCause.COMPUTING, True),
        (0.3, 9.0, 0.0, 0, False, StallCause.COMPUTING, True),  # in several threads
        (0.6, 0.1, 0.1, 0, False, StallCause.UNKNOWN, False),
    ],
)
def test_the_likely_cause(
    late: float, computed: float, waited: float, pages: int, is_loading: bool, cause: StallCause, stalls: bool
) -> None:
    delay = LoopDelay(late, LoopCounters(computed, waited, pages), is_loading)
    assert likely_cause(delay) is cause
    assert is_stall(delay) is stalls


def test_counters_are_told_from_a_moment_on() -> None:
    assert LoopCounters(3.0, 2.0, 9).since(LoopCounters(1.0, 0.5, 4)) == LoopCounters(2.0, 1.5, 5)


def test_a_line_is_due_once_a_minute_and_none_for_loads() -> None:
    assert is_said(StallCause.OTHERS, SAYING_SECONDS, 0.0)
    assert not is_said(StallCause.OTHERS, SAYING_SECONDS - 1, 0.0)
    assert not is_said(StallCause.LOADING, 1000.0, 0.0)
