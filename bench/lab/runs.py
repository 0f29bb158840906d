"""The list of all runs of the bench, a line each in `runs.csv`."""

import csv
import statistics
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.cost import Comparison, Row, beside_tritonserver

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("runs.csv")
RUN, HOUR = "run", "hour"
BARE, COMPUTE = "F alone, us", "compute alone, ms"
"""Medians of the floors: how quiet the machine was. Unknown of the first runs."""


def figures(rows: Sequence[Row]) -> dict[str, Row | Comparison]:
    """Choose what the list holds of a run, by the column's name: the rows with a limit, and what a large model costs
    above compute beside tritonserver.
    """
    found: dict[str, Row | Comparison] = {}
    for row in rows:
        if row.limit is not None:
            found[row.name.removesuffix(", 16 connections")] = row
    for compared in beside_tritonserver(list(rows)):
        if compared.over_floor:
            found[_beside(compared.name)] = compared
    return found


def add(rows: Sequence[Row], hour: str, file: Path = FILE) -> None:
    """Append a run to the list."""
    names, before = _read(file)
    bare, compute = (
        statistics.median(us for row in rows if row.floor == floor for us in row.floor_us)
        for floor in ("F", "compute")
    )
    line = {name: f"{figure.ratio:.3f}" for name, figure in figures(rows).items()}
    line |= {RUN: str(len(before) + 1), HOUR: hour, BARE: f"{bare:.2f}", COMPUTE: f"{compute / 1e3:.2f}"}
    with file.open("a", newline="") as text:
        csv.DictWriter(text, names, lineterminator="\n").writerow(line)


def now() -> str:
    """Name the hour of a run that begins now, and the commit that it measures."""
    commit = _git("rev-parse", "--short", "HEAD") or "no commit"
    changed = " and changes" if _git("status", "--porcelain", "--", "src", "bench") else ""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {commit}{changed}"


def _git(*words: str) -> str:
    """Ask git about this repository; the answer is empty where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def _read(file: Path) -> tuple[Sequence[str], list[dict[str, str]]]:
    """Read the names of the columns and the lines."""
    with file.open(newline="") as text:
        reader = csv.DictReader(text)
        return reader.fieldnames or (), list(reader)


def _beside(name: str) -> str:
    """Turn a name of `COMPARED` into the name of its column."""
    connections = name.removeprefix("handler mobilenet, ").removesuffix(", above compute")
    return f"beside tritonserver, above compute, {connections}"
