"""How far ahead an instance may be filled, by a table."""

import pytest

from trivium.core.workers.lead_policy import MOST, lead


@pytest.mark.parametrize(
    ("mean_run", "instances", "merges", "batches"),
    [
        (0.0, 1, False, 0),  # nothing is known yet: a slow model would hoard what others could run
        (0.00005, 1, False, 10),
        (0.00005, 1, True, 0),
        (0.00005, 2, False, 1),
        (0.0004, 1, False, 1),
        (0.0004, 3, False, 1),
        (0.0006, 1, False, 0),
        (0.0006, 2, False, 0),
        (1e-9, 1, False, MOST),
        (30.0, 1, False, 0),
        (0.0001, 0, False, 1),
    ],
)
def test_lead(mean_run, instances, merges, batches):
    assert lead(mean_run, instances, merges) == batches
