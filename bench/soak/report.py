"""Writes what the soak found: a page with a table, and one plot of every series over time."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from bench.soak.slopes import Verdict, windowed
from bench.soak.story import WARM_UP, Story

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "soak"

from matplotlib import pyplot  # noqa: E402 - after the backend is chosen

PLACE = Path(__file__).parents[2] / "docs" / "benchmarks"

PAGE = """# An hour of mixed traffic

Made by `make soak-hour` (`bench/soak`): one server with an ONNX model in two versions, engines, Python handlers, a
decoupled one, a DJL folder and a TorchServe archive, asked over HTTP and gRPC for {minutes:.0f} minutes on a machine of
two cores that did other work at the same time. Meanwhile one model is loaded and unloaded, another changes its version,
clients leave in the middle of a body, wrong requests are refused, small and large ones, answers are deferred and not
all of them fetched, and streams are read slowly, or not at all, while others wait for their model.

A series is flat if its growth over the time behind the first sixth stays within what is allowed. The growth is that of
the Theil-Sen slope: the median of the slopes between all pairs of points, which a few outliers do not move. Memory is
what no file backs; waits are those of a small JSON request; processor time is the server process's own. The longest
turn of the loop is processor time of its thread, and the longest since the start.

![every series over time](soak.svg)

| series | median | growth | allowed | |
|---|---|---|---|---|
{rows}

{answers} answers were checked, {wrong} of them wrong:

| traffic | answers |
|---|---|
{counts}
"""


def write(told: Story, place: Path = PLACE) -> str:
    """Page and plot into a folder; returns the page."""
    place.mkdir(parents=True, exist_ok=True)
    _plot(told, place / "soak.svg")
    counts = "\n".join(f"| {kind} | {count:,} |" for kind, count in told.counts.most_common())
    page = PAGE.format(
        minutes=told.samples.times[-1] / 60,
        rows="\n".join(map(_row, told.verdicts)),
        answers=f"{sum(told.counts.values()):,}",
        wrong=len(told.wrong),
        counts=counts,
    )
    if told.wrong:
        page += "\n" + "\n".join(f"- `{text}`" for text in sorted(set(told.wrong))[:20]) + "\n"
    (place / "soak.md").write_text(page)
    return page


def _row(verdict: Verdict) -> str:
    unit = f" {verdict.unit}" if verdict.unit else ""
    figures = " | ".join(f"{value:.3g}{unit}" for value in (verdict.median, verdict.growth, verdict.allowed))
    return f"| {verdict.name} | {figures} | {'flat' if verdict.is_flat else '**grows**'} |"


def _plot(told: Story, path: Path) -> None:
    figure, axes = pyplot.subplots(len(told.verdicts), 1, sharex=True, figsize=(8, 1.5 * len(told.verdicts)))
    for axis, verdict in zip(axes, told.verdicts, strict=True):
        _draw(axis, told.samples.times, told.samples.series[verdict.name], verdict)
    axes[-1].set_xlabel("minutes; grey is not judged")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _draw(axis: pyplot.Axes, times: Sequence[float], values: Sequence[float], verdict: Verdict) -> None:
    points = windowed(times, values, 180)
    axis.plot([time / 60 for time, _ in points], [value for _, value in points], linewidth=1)
    axis.axvspan(0, times[-1] * WARM_UP / 60, color="0.92")
    axis.set_ylim(bottom=0)
    axis.set_title(f"{verdict.name}{f', {verdict.unit}' if verdict.unit else ''}", fontsize=9, loc="left")
