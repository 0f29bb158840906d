"""Numbers drawn by seed, sequence and place: the same again, even, and none like its neighbours'."""

import statistics

from trivium.engines.hf.draws import draw


def test_the_same_again_and_others_elsewhere():
    told = [
        (seed, sequence, token) for seed in (0, 1, -1, 2**64 - 1) for sequence in (0, 1) for token in (0, 1)
    ]
    drawn = [draw(*one) for one in told]
    assert drawn == [draw(*one) for one in told]
    assert len({*drawn}) == len(told)


def test_they_are_even():
    drawn = [draw(7, sequence, token) for sequence in range(20) for token in range(500)]
    assert all(0 <= one < 1 for one in drawn)
    assert abs(statistics.fmean(drawn) - 0.5) < 0.01
    assert all(abs(sum(low <= one * 10 < low + 1 for one in drawn) - 1000) < 150 for low in range(10))
