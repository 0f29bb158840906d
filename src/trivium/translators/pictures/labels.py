"""Class names: read from an argument, a file or what a URL gave, and held against a model's outputs."""

from collections.abc import Sequence
from pathlib import Path

from trivium.translators.arguments import MOST_LABELS, LabelSource
from trivium.translators.files import read_file, refusal, text_of


def read_labels(source: LabelSource, folder: Path, fetched: bytes | None = None) -> tuple[str, ...]:
    """Return the class names, one a line of the file. `fetched` is what the source's URL gave, where it has one.

    LOAD_FAILED for a file that is not there, empty, too long, or no text.
    """
    if source.labels is not None:
        return source.labels
    name = source.url or source.file
    if source.url and fetched is None:
        raise refusal(
            name, "has not been fetched", "Put the class names into synset.txt, and remove synsetUrl."
        )
    data = read_file(folder, source.file) if fetched is None else fetched
    lines = text_of(name, data).split("\n")
    labels = tuple(line.removesuffix("\r") for line in lines)
    labels = labels[:-1] if labels[-1] == "" else labels
    if not labels:
        raise refusal(name, "is empty", "Write one class name a line, in the order of the model's output.")
    if len(labels) > MOST_LABELS:
        raise refusal(
            name, f"has {len(labels)} lines, over the limit of {MOST_LABELS}", "Is it the right file?"
        )
    return labels


def fault_of_labels(labels: Sequence[str], classes: int | None, source: str = "synset.txt") -> str:
    """Return what is wrong with class names for a model of so many classes; empty for nothing, or where None knows."""
    if classes is None or classes < 0 or classes == len(labels):
        return ""
    return f"{source} has {len(labels)} class names and the model's output {classes} numbers; write one name for each"
