"""Text classification: the labels that fit a text best."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from trivium.translators.arguments import TextArguments
from trivium.translators.pictures.labels import fault_of_labels
from trivium.translators.texts.encoding import EncodesTexts, failure, output_at
from trivium.translators.texts.pretrained import FILE, read_pretrained_labels
from trivium.translators.texts.requests import TextRequest, parse_texts
from trivium.translators.texts.tokenizer import TokenRow
from trivium.types.datatype import Array
from trivium_worker import pictures as steps

_LISTED = 5


class TextClassification(EncodesTexts):
    """Answers `[{"className", "probability"}]`, the five best, and a list of those for a list of texts.

    Labels that exclude one another share a probability of 1; of several at once, or of one, each has its own.
    """

    def __init__(self, folder: Path, arguments: TextArguments) -> None:
        super().__init__(folder, arguments)
        self._labels, self._is_multi_label = read_pretrained_labels(folder)

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return what is wrong with the labels for outputs of these shapes (no batch axis, -1 for any); else empty."""
        first = next(iter(shapes.values()), ())
        return fault_of_labels(self._labels, first[-1] if first else None, f"{FILE}: id2label")

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> TextRequest:
        """Return the texts of a request. INVALID, in DJL's words, for one that has none."""
        return parse_texts(content, content_type)

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: TextRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows."""
        scores = output_at(outputs, 0, 2, len(encodings))
        if fault := fault_of_labels(self._labels, scores.shape[1], f"{FILE}: id2label"):
            raise failure(f"{fault}.")
        shares = steps.sigmoid(scores) if self._is_multi_label else steps.softmax(scores)
        answers = [steps.classifications(self._labels, row, _LISTED) for row in shares]
        return answers if request.is_list else answers[0]
