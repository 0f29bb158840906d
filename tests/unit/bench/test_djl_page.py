"""The page on DJL's protocol and models at rest, from made-up figures."""

from bench.djl import AtRest, page


def test_the_page_has_the_ratio_of_the_rounds_and_a_row_per_server() -> None:
    rest = AtRest("many", 100, 102, 4.0, 17.44, 0.0, 0.0)
    text = page({"v2": [10.0, 20.0, 30.0], "DJL": [15.0, 20.0, 60.0]}, [rest])
    assert "| DJL | 20 (15, 20, 60) |" in text
    assert "| **DJL / v2** | **1.50** (expected: at most 1.3) |" in text
    assert "| many | 100 | 102 | 4.0 | 17.4 | 0.0 | 0.0 |" in text
