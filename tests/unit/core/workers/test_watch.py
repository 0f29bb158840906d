"""When workers are looked at: all of them at the same moments."""

from hypothesis import given
from hypothesis import strategies as st

from trivium.core.workers.watch import SECONDS, until_next

TIMES = st.floats(0, 1e7, allow_nan=False)
"""Of an event loop, which counts from the machine's start."""


@given(TIMES)
def test_it_is_a_common_moment_neither_near_nor_far(now: float) -> None:
    wait = until_next(now)
    assert wait >= SECONDS / 2 - 1e-6
    assert wait <= 1.5 * SECONDS + 1e-6
    steps = (now + wait) / SECONDS
    assert abs(steps - round(steps)) < 1e-6


@given(TIMES, st.floats(0, SECONDS / 2, exclude_max=True))
def test_who_begins_later_looks_with_the_others(now: float, later: float) -> None:
    first, second = now + until_next(now), now + later + until_next(now + later)
    assert min(abs(second - first), abs(second - first - SECONDS)) < 1e-6


def test_a_timer_that_fires_a_little_early_does_not_look_twice() -> None:
    assert until_next(7 * SECONDS - 0.001) > SECONDS
