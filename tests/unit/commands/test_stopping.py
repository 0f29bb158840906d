"""When a process that is asked to stop has to have ended, by each of its signals."""

import pytest

from trivium.commands.stopping import EXTRA, SECOND_THOUGHTS, end_after


@pytest.mark.parametrize(
    ("now", "began", "hurries", "due"),
    [
        (100.0, None, True, 130.0 + EXTRA),
        (100.0, None, False, 130.0 + EXTRA),
        (100.0 + SECOND_THOUGHTS, 100.0, True, None),
        (100.5 + SECOND_THOUGHTS, 100.0, True, 100.5 + SECOND_THOUGHTS),
        (100.5 + SECOND_THOUGHTS, 100.0, False, None),
    ],
    ids=["the first", "the first for the original", "the same twice", "haste", "no haste for the original"],
)
def test_a_signal_to_stop(now: float, began: float | None, hurries: bool, due: float | None) -> None:
    assert end_after(now, began, 30.0, hurries=hurries) == due
