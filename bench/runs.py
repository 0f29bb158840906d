"""Every run of the bench that was kept: a line each in `request-path-runs.csv`, and what they say together."""

import csv
import statistics
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.cost import Row, beside_tritonserver

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "request-path-runs.csv"
RUN, HOUR = "run", "hour"
BARE, COMPUTE = "F alone, us", "compute alone, ms"
"""Medians of the floors: how quiet the machine was. Unknown of the first runs."""
QUIET_MS = 6.3
"""Compute alone, in a quiet hour of the machine that these runs are of; in bad ones it takes half as long again."""


def figures(rows: Sequence[Row]) -> dict[str, float]:
    """Of one run: the ratio of each row that has a limit, and of what is above compute beside tritonserver."""
    found = {row.name.removesuffix(", 16 connections"): row.ratio for row in rows if row.limit is not None}
    for compared in beside_tritonserver(list(rows)):
        if compared.over_floor:
            found[_beside(compared.name)] = compared.ratio
    return found


def limits(rows: Sequence[Row]) -> dict[str, float]:
    """Of the same figures."""
    found = {row.name.removesuffix(", 16 connections"): row.limit for row in rows if row.limit is not None}
    return found | {_beside(c.name): c.limit for c in beside_tritonserver(list(rows)) if c.over_floor}


def add(rows: Sequence[Row], hour: str, file: Path = FILE) -> None:
    """Another line behind those that are there."""
    with file.open(newline="") as text:
        before = list(csv.DictReader(text))
    bare, compute = (
        statistics.median(us for row in rows if row.floor == floor for us in row.floor_us)
        for floor in ("F", "compute")
    )
    line = {name: f"{ratio:.3f}" for name, ratio in figures(rows).items()}
    line |= {RUN: str(len(before) + 1), HOUR: hour, BARE: f"{bare:.2f}", COMPUTE: f"{compute / 1e3:.2f}"}
    with file.open("a", newline="") as text:
        names = list(before[0])
        csv.DictWriter(text, names, lineterminator="\n").writerow(line)


def summary(limits: dict[str, float], file: Path = FILE) -> list[str]:
    """A table: each figure's limit, the median, least and greatest of all runs, how many are within the limit, and what
    the quiet ones showed.
    """
    with file.open(newline="") as text:
        runs = list(csv.DictReader(text))
    quiet = [run for run in runs if run[COMPUTE] and float(run[COMPUTE]) < QUIET_MS]
    lines = [
        f"| of {len(runs)} runs | limit | median | from, to | within the limit | the {len(quiet)} quiet ones |",
        "|---|---|---|---|---|---|",
    ]
    for name, limit in limits.items():
        seen = [float(run[name]) for run in runs if run[name]]
        within = sum(ratio <= limit for ratio in seen)
        lines.append(
            f"| {name} | {limit:.2f} | {statistics.median(seen):.3f} | {min(seen):.3f}, {max(seen):.3f} "
            f"| {within} of {len(seen)} | {', '.join(run[name] for run in quiet)} |"
        )
    return lines


def now() -> str:
    """The hour of a run that begins at this moment, and the code that it measures."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=FILE.parent, capture_output=True, text=True
    )
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {commit.stdout.strip() or 'no commit'}"


def _beside(name: str) -> str:
    """`COMPARED`'s name as the file has it."""
    connections = name.removeprefix("handler mobilenet, ").removesuffix(", above compute")
    return f"beside tritonserver, above compute, {connections}"
