"""Text classification: the labels that fit a text best."""

from collections.abc import Mapping, Sequence

from trivium.translators.texts.labelled import LabelledTexts
from trivium.translators.texts.requests import TextRequest
from trivium.translators.texts.tokenizer import TokenRow
from trivium.types.datatype import Array
from trivium_worker import pictures as steps

_LISTED = 5


class TextClassification(LabelledTexts):
    """Answers `[{"className", "probability"}]`, the five best, and a list of those for a list of texts.

    Labels that exclude one another share a probability of 1; of several at once, or of one, each has its own.
    """

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: TextRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows."""
        scores = self.scores(outputs, 2, len(encodings))
        shares = steps.sigmoid(scores) if self.is_multi_label else steps.softmax(scores)
        answers = [steps.classifications(self.labels, row, _LISTED) for row in shares]
        return answers if request.is_list else answers[0]
