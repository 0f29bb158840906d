"""Budgets of useless frames, and strikes of pings."""

import pytest

from trivium.frontends.h2.frames import ENHANCE_YOUR_CALM, ConnectionFault
from trivium.frontends.h2.guard import TOO_MANY_PINGS, Guard, PingStrikes


def spend_until_it_ends(guard: Guard, cost: int, now: float) -> int:
    for count in range(100_000):
        try:
            guard.spend(cost, now)
        except ConnectionFault:
            return count
    raise AssertionError("it never ended")


def test_the_end_says_why() -> None:
    with pytest.raises(ConnectionFault, match="Too many resets") as caught:
        Guard(0, 0.0).spend(1, 0.0)
    assert caught.value.code == ENHANCE_YOUR_CALM
    strikes = PingStrikes(10.0, False, 1)
    strikes.count(0.0, True)
    strikes.count(0.1, True)
    with pytest.raises(ConnectionFault, match=TOO_MANY_PINGS) as caught:
        strikes.count(0.2, True)
    assert caught.value.code == ENHANCE_YOUR_CALM


def test_a_budget_ends() -> None:
    assert spend_until_it_ends(Guard(100, 0.0), 1, 0.0) == 100
    assert spend_until_it_ends(Guard(100, 0.0), 4, 0.0) == 25


def test_time_and_calls_fill_it_again_but_not_beyond() -> None:
    guard = Guard(100, 0.0)
    assert spend_until_it_ends(guard, 1, 0.0) == 100
    assert spend_until_it_ends(guard, 1, 0.05) == pytest.approx(50, abs=2)
    guard.earn(31)
    assert spend_until_it_ends(guard, 1, 0.05) == pytest.approx(30, abs=2)
    guard.earn(10**6)
    assert spend_until_it_ends(guard, 1, 0.05) == 100
    assert spend_until_it_ends(guard, 1, 10**6) == pytest.approx(100, abs=2)


def count_until_it_ends(strikes: PingStrikes, times: list[float], has_calls: bool) -> int:
    for count, now in enumerate(times):
        try:
            strikes.count(now, has_calls)
        except ConnectionFault:
            return count
    return len(times)


SLOW, QUICK = [10.0 * turn for turn in range(20)], [0.1 * turn for turn in range(20)]


@pytest.mark.parametrize(
    ("seconds", "without_calls", "most", "times", "has_calls", "let"),
    [
        (10.0, False, 2, SLOW, True, 20),
        (10.0, False, 2, QUICK, True, 3),  # the first, and two too early
        (10.0, False, 0, QUICK, True, 20),
        (10.0, False, 2, SLOW, False, 3),  # without a call hours must lie between
        (10.0, True, 2, SLOW, False, 20),
        (0.0, True, 2, QUICK, False, 20),
        (10.0, True, 5, QUICK, False, 6),
    ],
)
def test_strikes(
    seconds: float, without_calls: bool, most: int, times: list[float], has_calls: bool, let: int
) -> None:
    assert count_until_it_ends(PingStrikes(seconds, without_calls, most), times, has_calls) == let


def test_what_we_send_forgives() -> None:
    strikes = PingStrikes(10.0, False, 2)
    for _ in range(50):
        assert count_until_it_ends(strikes, [0.0, 0.1, 0.2], True) == 3
        strikes.forgive()
