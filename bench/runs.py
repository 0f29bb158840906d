"""Every run of the bench that was kept: a line each in `request-path-runs.csv`, and what they say together."""

import csv
import statistics
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.cost import Comparison, Row, beside_tritonserver

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "benchmarks" / "request-path-runs.csv"
RUN, HOUR = "run", "hour"
BARE, COMPUTE = "F alone, us", "compute alone, ms"
"""Medians of the floors: how quiet the machine was. Unknown of the first runs."""
QUIET_MS = 6.3
"""Compute alone, in a quiet hour of the machine that these runs are of; in bad ones it takes half as long again."""


def figures(rows: Sequence[Row]) -> dict[str, Row | Comparison]:
    """Those of a run that have a limit and depend on the hour, by the file's names for them.

    They are the rows, and what is above compute beside tritonserver.
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
    """Another line behind those that are there."""
    names, before = _read(file)
    bare, compute = (
        statistics.median(us for row in rows if row.floor == floor for us in row.floor_us)
        for floor in ("F", "compute")
    )
    line = {name: f"{figure.ratio:.3f}" for name, figure in figures(rows).items()}
    line |= {RUN: str(len(before) + 1), HOUR: hour, BARE: f"{bare:.2f}", COMPUTE: f"{compute / 1e3:.2f}"}
    with file.open("a", newline="") as text:
        csv.DictWriter(text, names, lineterminator="\n").writerow(line)


def summary(rows: Sequence[Row], file: Path = FILE) -> list[str]:
    """A table: each figure's limit, the median, least and greatest of all runs, how many are within the limit, and what
    the quiet ones showed.
    """
    _, runs = _read(file)
    quiet = [run for run in runs if run[COMPUTE] and float(run[COMPUTE]) < QUIET_MS]
    lines = [
        f"| of {len(runs)} runs | limit | median | from, to | within the limit | quiet ones ({len(quiet)}) |",
        "|---|---|---|---|---|---|",
    ]
    for name, figure in figures(rows).items():
        seen = [float(run[name]) for run in runs if run[name]]
        within = sum(ratio <= figure.limit for ratio in seen)
        lines.append(
            f"| {name} | {figure.limit:.2f} | {statistics.median(seen):.3f} | {min(seen):.3f}, {max(seen):.3f} "
            f"| {within} of {len(seen)} | {', '.join(run[name] for run in quiet)} |"
        )
    return lines


def now() -> str:
    """The hour of a run that begins at this moment, and the code that it measures."""
    commit = _git("rev-parse", "--short", "HEAD") or "no commit"
    changed = " and changes" if _git("status", "--porcelain", "--", "src", "bench") else ""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {commit}{changed}"


def _git(*words: str) -> str:
    """What it says of this repository; nothing where there is no git, or no repository."""
    try:
        told = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return told.stdout.strip()


def _read(file: Path) -> tuple[Sequence[str], list[dict[str, str]]]:
    """The names of the columns, and the lines."""
    with file.open(newline="") as text:
        reader = csv.DictReader(text)
        return reader.fieldnames or (), list(reader)


def _beside(name: str) -> str:
    """`COMPARED`'s name as the file has it."""
    connections = name.removeprefix("handler mobilenet, ").removesuffix(", above compute")
    return f"beside tritonserver, above compute, {connections}"
