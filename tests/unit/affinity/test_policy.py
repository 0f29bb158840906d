"""When instances share the loop's processor: every row of the decision."""

import pytest

from trivium.affinity.policy import (
    FIRST_PAUSE,
    LEAST_RATE,
    LONGEST_PAUSE,
    AffinityDecision,
    Idleness,
    View,
    decide,
)

NOW = 1000.0
ROOM = Idleness(shared=0.3, other=0.95)
CROWDED = Idleness(shared=0.01, other=0.95)
ALL_BUSY = Idleness(shared=0.01, other=0.4)


@pytest.mark.parametrize(
    ("view", "decision"),
    [
        pytest.param(View(LEAST_RATE, False, None), AffinityDecision(True, 0.0, 0.0), id="worth it"),
        pytest.param(
            View(LEAST_RATE - 1, False, None), AffinityDecision(False, 0.0, 0.0), id="too few hand-overs"
        ),
        pytest.param(
            View(5000.0, True, None), AffinityDecision(False, 0.0, 0.0), id="an instance is being opened"
        ),
        pytest.param(
            View(5000.0, False, ROOM), AffinityDecision(True, 0.0, 0.0), id="the processor has room"
        ),
        pytest.param(
            View(5000.0, False, ALL_BUSY), AffinityDecision(True, 0.0, 0.0), id="no other has more room"
        ),
        pytest.param(
            View(5000.0, False, CROWDED),
            AffinityDecision(False, NOW + FIRST_PAUSE, FIRST_PAUSE),
            id="full beside one that is idle",
        ),
        pytest.param(
            View(5000.0, False, CROWDED, NOW, 40.0),
            AffinityDecision(False, NOW + 80.0, 80.0),
            id="once more at once",
        ),
        pytest.param(
            View(5000.0, False, CROWDED, NOW, 290.0),
            AffinityDecision(False, NOW + LONGEST_PAUSE, LONGEST_PAUSE),
            id="again and again",
        ),
        pytest.param(
            View(5000.0, False, None, NOW + 1, 40.0),
            AffinityDecision(False, NOW + 1, 40.0),
            id="in the pause",
        ),
        pytest.param(
            View(5000.0, False, None, NOW, 40.0), AffinityDecision(True, NOW, 40.0), id="after the pause"
        ),
        pytest.param(
            View(5000.0, False, ROOM, NOW, 40.0),
            AffinityDecision(True, NOW, 0.0),
            id="a good second ends the doubling",
        ),
    ],
)
def test_decision(view, decision):
    assert decide(view, NOW) == decision
