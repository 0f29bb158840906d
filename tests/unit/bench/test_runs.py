"""Every run joins the list of runs."""

import csv
from pathlib import Path

import pytest
from bench.cost import Row, triton_variants, variants
from bench.lab import runs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A list with one old run, whose first figure and whose floors are unknown."""
    path = tmp_path / "runs.csv"
    names = [runs.RUN, runs.HOUR, *runs.figures(rows()), runs.BARE, runs.COMPUTE]
    line = ["1", "long ago, one commit", "", *["0.9"] * (len(names) - 5), "", ""]
    with path.open("w", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows([names, line])
    return path


def rows(compute_us: float = 6000.0) -> list[Row]:
    """Seven rounds in which everything costs twice its floor, and three times on tritonserver."""
    found = [variant.row for variant in variants() + triton_variants()]
    for row in found:
        floor = 8.0 if row.floor == "F" else compute_us
        row.floor_us = [floor] * 7
        row.cpu_us = [floor * (3 if row.name.startswith("tritonserver") else 2)] * 7
    return found


def test_a_run_is_a_line_behind_those_before(file: Path) -> None:
    before = file.read_text()
    runs.add(rows(), "now", file)
    assert file.read_text().startswith(before)
    with file.open(newline="") as text:
        added = list(csv.DictReader(text))[1:]
    assert len(added) == 1
    assert (added[0][runs.RUN], added[0][runs.HOUR]) == ("2", "now")
    assert (added[0][runs.BARE], added[0][runs.COMPUTE]) == ("8.00", "6.00")
    assert added[0]["handler echo, batched"] == "2.000"
    assert added[0]["beside tritonserver, above compute, 1 connection"] == "0.500"


def test_the_first_run_of_all(file: Path) -> None:
    file.write_text(file.read_text().splitlines()[0] + "\n")
    runs.add(rows(), "now", file)
    assert file.read_text().splitlines()[1].startswith("1,now,")


def test_a_machine_without_git_still_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert runs.now().endswith(" UTC, no commit")


def test_the_list_in_the_repository_has_the_figures_of_today() -> None:
    with runs.FILE.open(newline="") as text:
        assert next(csv.reader(text)) == [
            runs.RUN,
            runs.HOUR,
            *runs.figures(rows()),
            runs.BARE,
            runs.COMPUTE,
        ]
