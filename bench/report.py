"""Writes what was measured: JSON for machines, a table for people, both in `docs/benchmarks`."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench import runs
from bench.cost import Comparison, Row, beside_tritonserver
from bench.neighbour import LIMIT, Neighbour
from bench.queueing import Waits

_MET = {True: "yes", False: "no", None: ""}
PLACE = Path(__file__).parents[1] / "docs" / "benchmarks"


def write(rows: Sequence[Row], waits: Sequence[Waits], neighbour: Neighbour) -> str:
    """Both files; returns the table."""
    document = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "cost": [row.as_json() for row in rows],
        "neighbour": {
            "alone_us": neighbour.alone_us,
            "beside_us": neighbour.beside_us,
            "ratio": neighbour.ratio,
        },
        "waits": [
            {"model": w.model, "load": w.load, "live_s": w.live, "virtual_s": w.virtual, "error": w.error}
            for w in waits
        ],
    }
    compared = beside_tritonserver(list(rows))
    document["beside_tritonserver"] = [
        {"what": c.name, "ratio": c.ratio, "limit": c.limit, "is_met": c.is_met} for c in compared
    ]
    parts = [_costs(rows), beside(compared), _waits(waits), [_neighbour(neighbour)]]
    (PLACE / "request-path.json").write_text(json.dumps(document, indent=1) + "\n")
    table = "\n\n".join("\n".join(part) for part in parts)
    _put("table", table)
    return table


def join(rows: Sequence[Row], hour: str) -> None:
    """Another run in the list, and what all of them say together."""
    runs.add(rows, hour)
    _put("runs", "\n".join(runs.summary(rows)))


def _put(name: str, table: str) -> None:
    """Into the page, between the two comments of that name."""
    page = PLACE / "request-path.md"
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, rest = page.read_text().split(begin)
    _, tail = rest.split(end)
    page.write_text(f"{head}{begin}\n{table}\n{end}{tail}")


def _costs(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| variant | CPU-us per request | floor | floor's CPU-us | ratio | limit | met |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        seen = row.as_json()
        lines.append(
            f"| {row.name} | {seen['cpu_us']:.1f} | {row.floor} | {seen['floor_cpu_us']:.1f} "
            f"| {row.ratio:.3f} | {row.limit or ''} | {_MET[seen['is_met']]} |"
        )
    return lines


def beside(compared: Sequence[Comparison]) -> list[str]:
    """The table of what the same handlers cost here and on the real tritonserver."""
    lines = ["| beside the real tritonserver, same run | ours / theirs | limit | met |", "|---|---|---|---|"]
    return lines + [f"| {c.name} | {c.ratio:.3f} | {c.limit} | {_MET[c.is_met]} |" for c in compared]


def _waits(waits: Sequence[Waits]) -> list[str]:
    lines = [
        "| model | load | mean wait live, ms | on the virtual clock, ms | median difference | limit |",
        "|---|---|---|---|---|---|",
    ]
    for row in waits:
        live, virtual = (1e3 * sum(times) / len(times) for times in (row.live, row.virtual))
        lines.append(
            f"| {row.model} | {row.load:.0%} | {live:.2f} | {virtual:.2f} | {row.error:.1%} | 15 % |"
        )
    return lines


def _neighbour(found: Neighbour) -> str:
    alone, beside = (statistics.median(times) for times in (found.alone_us, found.beside_us))
    return (
        f"A tiny request at 1 connection takes {alone:.0f} us (median); while another model's handler computes in pure "
        f"Python {beside:.0f} us: {found.ratio:.2f} times as long (limit {LIMIT}, "
        f"{'met' if found.ratio <= LIMIT else 'not met'})."
    )
