"""Models that score labels of a text: the labels that their configuration names, and that the model scores as many."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from trivium.translators.arguments import TextArguments
from trivium.translators.pictures.labels import fault_of_labels
from trivium.translators.texts.encoding import EncodesTexts, Floats, failure, output_at
from trivium.translators.texts.pretrained import FILE, read_pretrained_labels
from trivium.translators.texts.requests import TextRequest, parse_texts
from trivium.types.datatype import Array

_SOURCE = f"{FILE}: id2label"


class LabelledTexts(EncodesTexts):
    """Owns the labels of a model, for those that make answers of its scores; reads the texts of a request."""

    def __init__(self, folder: Path, arguments: TextArguments) -> None:
        super().__init__(folder, arguments)
        self.labels, self.is_multi_label = read_pretrained_labels(folder)

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return what is wrong with the labels for outputs of these shapes (no batch axis, -1 for any); else empty."""
        first = next(iter(shapes.values()), ())
        return fault_of_labels(self.labels, first[-1] if first else None, _SOURCE)

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> TextRequest:
        """Return the texts of a request. INVALID, in DJL's words, for one that has none."""
        return parse_texts(content, content_type)

    def scores(self, outputs: Mapping[str, Array], rank: int, rows: int) -> Floats:
        """Return the first output, of this rank, with a score for each label on its last axis. MODEL_FAILED for
        another.
        """
        scores = output_at(outputs, 0, rank, rows)
        if fault := fault_of_labels(self.labels, scores.shape[-1], _SOURCE):
            raise failure(f"{fault}.")
        return scores
