"""Mixed traffic with loads and version changes: nothing is answered wrongly, and in the long run nothing grows."""

import pytest
from bench.soak import story

KINDS = 19


def test_a_short_run_answers_everything() -> None:
    told = story.run(16, looks=8)
    assert not told.wrong
    assert len(told.counts) == KINDS, told.counts
    assert all(len(values) == 8 and min(values) > 0 for values in told.samples.series.values())


@pytest.mark.soak
def test_an_hour_is_flat() -> None:
    told = story.run(story.HOUR)
    assert not told.wrong
    assert [verdict for verdict in told.verdicts if not verdict.is_flat] == []
