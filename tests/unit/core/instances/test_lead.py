"""How far ahead an instance may be filled, by a table."""

import pytest

from trivium.core.instances.pool import MOST_AHEAD, by_turns, lead


@pytest.mark.parametrize(
    ("mean_run", "instances", "merges", "in_order", "batches"),
    [
        (0.0, 1, False, False, 0),  # nothing is known yet: a slow model would hoard what others could run
        (0.00005, 1, False, False, 10),
        (0.00005, 1, True, False, 0),
        (0.00005, 2, False, False, 1),
        (0.0004, 1, False, False, 1),
        (0.0004, 3, False, False, 1),
        (0.0006, 1, False, False, 0),
        (0.0006, 2, False, False, 0),
        (1e-9, 1, False, False, MOST_AHEAD),
        (30.0, 1, False, False, 0),
        (0.0001, 0, False, False, 1),
        (0.0, 1, False, True, 0),
        (30.0, 1, False, True, 1),  # its next work is in hand when it is done
        (30.0, 2, False, True, 0),  # the other one may be done before
        (30.0, 1, True, True, 0),
        (0.00005, 1, False, True, 10),
    ],
)
def test_lead(mean_run, instances, merges, in_order, batches):
    assert lead(mean_run, instances, merges, in_order) == batches


@pytest.mark.parametrize(
    ("credits", "ahead", "expected"),
    [
        ({}, 1, []),
        ({1: 1, 2: 1}, 0, [1, 2]),
        ({1: 0, 2: 1}, 0, [2]),
        ({1: 0, 2: 1}, 1, [2, 1, 2]),
        ({1: -1, 2: 2}, 1, [2, 2, 2]),
        ({3: 2, 1: 1}, 0, [3, 1, 3]),
    ],
)
def test_the_least_busy_goes_first(credits, ahead, expected):
    assert by_turns(credits, ahead) == expected
