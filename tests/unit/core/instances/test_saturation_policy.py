"""How full a model is, as one figure: at rest, at work, with a queue, in batches, without an instance."""

import pytest

from trivium.core.instances.saturation_policy import FullnessView, saturation, together


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (FullnessView(2, 0, 0), 0.0),
        (FullnessView(2, 1, 0), 0.5),
        (FullnessView(2, 2, 0), 1.0),
        (FullnessView(2, 2, 1), 1.5),
        (FullnessView(2, 2, 2), 2.0),
        (FullnessView(1, 1, 8, 16.0), 1.5),
        (FullnessView(1, 1, 16, 16.0), 2.0),
        (FullnessView(1, 0, 8, 16.0), 0.5),
        (FullnessView(256, 64, 0), 0.25),
        (FullnessView(256, 256, 128), 1.5),
        (FullnessView(0, 0, 0), 1.0),
        (FullnessView(0, 0, 3), 4.0),
        (FullnessView(0, 0, 3, 6.0), 1.5),
        (FullnessView(0, 0, 0, is_wanted=False), 0.0),
        (FullnessView(0, 0, 1, is_wanted=False), 2.0),
    ],
)
def test_saturation(view: FullnessView, expected: float):
    assert saturation(view) == expected


def test_it_never_falls_while_more_waits_or_is_used():
    for places in range(4):
        for used in range(places):
            for waiting in range(5):
                here = saturation(FullnessView(places, used, waiting, 4.0))
                assert saturation(FullnessView(places, used + 1, waiting, 4.0)) > here
                assert saturation(FullnessView(places, used, waiting + 1, 4.0)) > here


@pytest.mark.parametrize(
    ("largest", "rows", "requests", "expected"),
    [(16, 0, 0, 16.0), (16, 100, 100, 16.0), (16, 400, 100, 4.0), (4, 800, 100, 1.0), (1, 10, 10, 1.0)],
)
def test_how_many_requests_run_together(largest: int, rows: int, requests: int, expected: float):
    assert together(largest, rows, requests) == expected
