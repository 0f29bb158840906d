"""Writes what was measured: every round as JSON into `bench/lab`, and the page of figures for readers.

`python -m bench.report` makes the page anew from the JSON.
"""

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cost import Comparison, Row, beside_tritonserver
from bench.neighbour import Neighbour
from bench.queueing import Waits

ROOT = Path(__file__).parents[1]
ROUNDS_FILE = ROOT / "bench" / "lab" / "request-path.json"
PAGE = ROOT / "docs" / "benchmarks" / "request-path.md"
RIVAL = "tritonserver: "

_SHOWN = (
    ("echo, unbatched", "a tensor of 64 bytes, echoed inside the server"),
    ("echo, batched", "the same, in dynamic batches"),
    ("handler echo, unbatched", "the same, echoed by a Python handler in a worker"),
    ("handler echo, batched", "the same, in dynamic batches"),
    ("gRPC handler echo, unbatched", "the same handler over gRPC"),
    ("DJL handler echo", "64 bytes to a DJL handler, `POST /predictions`"),
    ("TorchServe handler echo", "64 bytes to a TorchServe handler, `POST /predictions`"),
    ("mobilenet, 1 connection", "a picture of 600 KB to MobileNet, 1 connection"),
    ("mobilenet, 8 connections", "the same, 8 connections"),
    ("handler mobilenet, 1 connection", "the same through a Python handler, 1 connection"),
    ("handler mobilenet, 8 connections", "the same, 8 connections"),
)
"""How a row's name begins, and what the page calls it."""

_PAGE = """# What a request costs

- **Measured:** the user and system time of the server's whole process tree, divided by its answers, in microseconds.
- **Load:** a closed loop over loopback (`wrk`; gRPC by `perf_analyzer`), 16 connections where nothing else is said.
- **Rival:** NVIDIA's tritonserver (its Python backend) with the same handlers and the same requests, in the same run.
- **Floor:** a bare uvloop server that answers the same bytes; for MobileNet the same ONNX session in an idle process.
- **Figures:** medians of {rounds} rounds with servers started anew, on {machine}, {hour}; `make bench` makes them.

| request | Trivium | tritonserver | ratio | floor | ratio above the floor |
|---|---|---|---|---|---|
{table}

## What it means

{meaning}
"""


def write(rows: Sequence[Row], waits: Sequence[Waits], neighbour: Neighbour, hour: str) -> str:
    """Write both files and return the page."""
    document = {
        "hour": hour,
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
        "beside_tritonserver": [
            {"what": c.name, "ratio": c.ratio, "limit": c.limit, "is_met": c.is_met}
            for c in beside_tritonserver(list(rows))
        ],
    }
    ROUNDS_FILE.write_text(json.dumps(document, indent=1) + "\n")
    text = page(document)
    PAGE.write_text(text)
    return text


def page(document: Mapping[str, Any]) -> str:
    """Make the page for readers of a run's JSON."""
    rows = {row["variant"]: row for row in document["cost"]}
    shown = [(row, title) for start, title in _SHOWN if (row := _row(rows, start)) is not None]
    lines = [_line(row, _rival(rows, row), title) for row, title in shown]
    rounds = len(document["cost"][0]["rounds"]["cpu_us"])
    return _PAGE.format(
        rounds=rounds,
        machine=document["machine"],
        hour=document["hour"],
        table="\n".join(lines),
        meaning=_meaning(document, rows),
    )


def beside(compared: Sequence[Comparison]) -> list[str]:
    """Make a table of pairs: the same request here and on the real tritonserver, or in two dialects."""
    lines = ["| compared in the same run | ratio | limit |", "|---|---|---|"]
    return lines + [f"| {c.name} | {c.ratio:.3f} | {c.limit} |" for c in compared]


def _row(rows: Mapping[str, Any], start: str) -> Any:
    return next((row for name, row in rows.items() if name.startswith(start)), None)


def _rival(rows: Mapping[str, Any], row: Any) -> Any:
    """Find the same request on tritonserver, where it was measured."""
    return next(
        (
            theirs
            for name, theirs in rows.items()
            if name.startswith(RIVAL) and row["variant"].startswith(name.removeprefix(RIVAL))
        ),
        None,
    )


def _line(row: Any, rival: Any, title: str) -> str:
    ours, floor = _us(row["cpu_us"]), _us(row["floor_cpu_us"])
    if rival is None:
        return f"| {title} | {ours} | | | {floor} | |"
    whole, above = ratio(row, rival), ratio(row, rival, over_floor=True)
    return f"| {title} | {ours} | {_us(rival['cpu_us'])} | {whole:.2f} | {floor} | {above:.2f} |"


def ratio(row: Any, rival: Any, over_floor: bool = False) -> float:
    """Return the median of the rounds' ratios, ours to theirs; `over_floor` leaves each round's floor out."""
    ours, theirs = (
        [
            cost - (floor if over_floor else 0)
            for cost, floor in zip(each["rounds"]["cpu_us"], each["rounds"]["floor_cpu_us"], strict=True)
        ]
        for each in (row, rival)
    )
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def _us(microseconds: float) -> str:
    return f"{microseconds:.1f}" if microseconds < 1000 else f"{microseconds:,.0f}"


def _meaning(document: Mapping[str, Any], rows: Mapping[str, Any]) -> str:
    """Say in five sentences what the table means."""

    def beside_rival(start: str, over_floor: bool = False) -> float:
        row = _row(rows, start)
        return ratio(row, _rival(rows, row), over_floor)

    http = beside_rival("handler echo, unbatched")
    batched = beside_rival("handler echo, batched")
    grpc = beside_rival("gRPC handler echo")
    one, eight = (beside_rival(f"handler mobilenet, {n} connection", True) for n in (1, 8))
    apart = _row(rows, "handler echo, unbatched")["cpu_us"] / _row(rows, "echo, unbatched")["cpu_us"]
    alone, near = (statistics.median(document["neighbour"][key]) for key in ("alone_us", "beside_us"))
    return (
        f"A small request to a Python handler costs {http:.2f} of what it costs on tritonserver over HTTP, "
        f"{batched:.2f} when both form batches, and {grpc:.2f} over gRPC.\n"
        f"A request to a model that computes for milliseconds is almost all compute on either server, and of what the "
        f"server adds to it Trivium adds {one:.2f} at one connection and {eight:.2f} at eight.\n"
        f"A handler in a process of its own costs {apart:.1f} times an echo inside the server, and for that its crash, "
        f"its leak or its pure Python reaches nobody else: a tiny request takes {alone:.0f} us alone and {near:.0f} us "
        f"while another model's handler keeps a processor busy.\n"
        "The absolute figures are those of one small shared machine and differ by half from hour to hour; the "
        "ratios were measured side by side within one run and move far less.\n"
        "The figures say what a server adds to a model and nothing of the model's own speed; what happens when more "
        "requests come than a model can bear is on [another page](overload.md)."
    )


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(ROUNDS_FILE.read_text())))
