"""Writes what the story measured: a page and three plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from examples.food11.load import Heard

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "food11"

from matplotlib import pyplot  # noqa: E402 - after the backend is chosen

HEAD = """# Food classifier: from an endpoint to a model server

Made by `make food11` (`examples/food11/story.py`) on one machine with two cores, which the senders share with the
servers: compare the rows with one another, not with other machines. The network is MobileNetV2's with random weights.
"""


@dataclass(frozen=True)
class Story:
    """What was heard in closed loops and in bursts; capacity in answers a second; batch statistics by model."""

    closed: Sequence[Heard]
    stormy: Sequence[Heard]
    capacity: float
    batches: Mapping[str, Sequence[tuple[int, int, float]]]


def write(story: Story, folder: Path) -> str:
    """Page and plots into `folder`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    _plot_closed(story.closed, folder / "food11-senders.svg")
    _plot_bursts(story.stormy, folder / "food11-bursts.svg")
    _plot_batches(story.batches, folder / "food11-batches.svg")
    page = "\n".join(
        [
            HEAD,
            "## One sender, sixteen senders\n",
            *_table(story.closed),
            "\n![throughput and latency](food11-senders.svg)\n",
            "## Bursts\n",
            "Requests arrive at random: for two seconds half as many as the plain ONNX model can take "
            f"({story.capacity:.0f} a second), for one second 1.6 times as many, over and over.\n",
            *_table(story.stormy),
            "\n![latency over time](food11-bursts.svg)\n",
            "## What the statistics say of each batch size\n",
            "A batch pays where a device has room for more at a time. Here one core computes every picture, so that "
            "a picture costs as much in a batch as alone, and copying it into the batch comes on top: the statistics "
            "show it, as they would show what the same configuration brings on a GPU.\n",
            *_batches(story.batches),
            "\n![time of a picture by batch size](food11-batches.svg)",
        ]
    )
    (folder / "food11.md").write_text(page + "\n")
    return page


def _table(rows: Sequence[Heard]) -> list[str]:
    lines = [
        "| who answers | senders | answers | a second | mean, ms | median, ms | 95th percentile, ms | failures |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.senders} | {len(row.latencies)} | {row.rate:.1f} | {row.mean:.0f} "
            f"| {row.percentile(50):.0f} | {row.percentile(95):.0f} | {row.failures} |"
        )
    return lines


def _batches(models: Mapping[str, Sequence[tuple[int, int, float]]]) -> list[str]:
    lines = ["| model | batch size | executions | ms an execution | ms a picture |", "|---|---|---|---|---|"]
    for model, rows in models.items():
        for size, count, spent in rows:
            lines.append(f"| {model} | {size} | {count} | {spent:.1f} | {spent / size:.1f} |")
    return lines


def _plot_closed(rows: Sequence[Heard], path: Path) -> None:
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True)
    names = [f"{row.name}, {row.senders}" for row in rows]
    left.barh(names, [row.rate for row in rows], color="#4c72b0")
    left.set_xlabel("answers a second")
    right.barh(names, [row.percentile(95) for row in rows], color="#dd8452")
    right.set_xlabel("95th percentile of latency, ms")
    left.invert_yaxis()
    _save(figure, path)


def _plot_bursts(rows: Sequence[Heard], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(11, 4))
    for row in rows:
        axes.plot(row.sent_at, row.latencies, ".", markersize=3, label=row.name)
    axes.set_xlabel("sent at, s")
    axes.set_ylabel("latency, ms")
    axes.legend()
    _save(figure, path)


def _plot_batches(models: Mapping[str, Sequence[tuple[int, int, float]]], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for model, rows in models.items():
        axes.plot([size for size, _, _ in rows], [spent / size for size, _, spent in rows], "o-", label=model)
    axes.set_xlabel("batch size")
    axes.set_ylabel("ms a picture")
    axes.set_ylim(bottom=0)
    axes.legend()
    _save(figure, path)


def _save(figure: "pyplot.Figure", path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
