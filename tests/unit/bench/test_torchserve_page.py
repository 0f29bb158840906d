"""The page on a TorchServe handler here and on TorchServe, from made-up figures."""

from bench.torchserve import Row, page


def test_a_row_has_each_round_and_the_median_of_their_ratios() -> None:
    row = Row("an echo", "CPU-µs per request", 0.25)
    row.rounds["Trivium"] += [100.0, 50.0, 90.0]
    row.rounds["TorchServe"] += [1000.0, 1000.0, 300.0]
    start = Row("the start", "seconds")
    start.rounds["Trivium"].append(1.24)
    start.rounds["TorchServe"].append(5.0)
    text = page([row, start], 3, 2.0, "an hour")
    assert (
        "| an echo | CPU-µs per request | 90 (100, 50, 90) | 1000 (1000, 1000, 300) | **0.10** | 0.25 |"
        in text
    )
    assert "| the start | seconds | 1.2 (1.2) | 5.0 (5.0) | **0.25** |  |" in text
