"""The page of figures is made of a run's JSON, and of nothing else."""

import json
from typing import Any

import pytest
from bench import report


@pytest.fixture
def document() -> dict[str, Any]:
    """The newest run that the repository holds."""
    found: dict[str, Any] = json.loads(report.ROUNDS_FILE.read_text())
    return found


def test_the_page_in_the_repository_is_that_of_the_newest_run(document: dict[str, Any]) -> None:
    assert report.PAGE.read_text() == report.page(document), "run `python -m bench.report`"


def test_the_page_shows_no_limit_of_ours(document: dict[str, Any]) -> None:
    page = report.page(document)
    for row in document["cost"]:
        row["limit"], row["is_met"] = 123.456, False
    assert report.page(document) == page


def test_a_ratio_is_the_median_of_the_rounds_with_and_without_the_floor() -> None:
    ours = {"rounds": {"cpu_us": [20.0, 30.0, 60.0], "floor_cpu_us": [10.0, 10.0, 10.0]}}
    theirs = {"rounds": {"cpu_us": [40.0, 90.0, 60.0], "floor_cpu_us": [10.0, 10.0, 10.0]}}
    assert report.ratio(ours, theirs) == 0.5
    assert report.ratio(ours, theirs, over_floor=True) == pytest.approx(1 / 3)


def test_a_row_that_was_not_measured_is_left_out(document: dict[str, Any]) -> None:
    document["cost"] = [row for row in document["cost"] if not row["variant"].startswith("echo, batched")]
    assert "the same, in dynamic batches | 17" not in report.page(document)
    assert "echoed inside the server | 19.8 |" in report.page(document)
