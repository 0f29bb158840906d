"""Zero-shot classification: candidates for a text, by a model that says whether one sentence follows from another."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trivium.translators.arguments import TextArguments
from trivium.translators.texts.encoding import EncodesTexts, failure, output_at
from trivium.translators.texts.pretrained import read_entailment
from trivium.translators.texts.requests import ZeroShotRequest, parse_candidates
from trivium.translators.texts.tokenizer import TokenRow
from trivium.types.datatype import Array
from trivium_worker import pictures as steps


class ZeroShotClassification(EncodesTexts):
    """Answers `{"sequence", "labels", "scores"}`, the best first. A request has a row for each candidate.

    Candidates share a score of 1, but with `multi_label`, or alone, each is held against its contradiction.
    """

    def __init__(self, folder: Path, arguments: TextArguments) -> None:
        self._places = read_entailment(folder)
        has_types = arguments.include_token_types or self._places.has_token_types
        super().__init__(
            folder, TextArguments(arguments.tokenizer, has_types, arguments.int32, arguments.batchifier)
        )

    def fault(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Return what is wrong with outputs of these shapes (no batch axis, -1 for any); empty for nothing."""
        shape = next(iter(shapes.values()), ())
        return self._fault_of_width(shape[-1]) if shape and shape[-1] >= 0 else ""

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> ZeroShotRequest:
        """Return text and candidates of a request. INVALID, in DJL's words, for one that has none."""
        return parse_candidates(content)

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: ZeroShotRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows."""
        scores = output_at(outputs, 0, 2, len(encodings))
        if fault := self._fault_of_width(scores.shape[1]):
            raise failure(f"{fault}.")
        entailment, contradiction, _ = self._places
        if not request.is_multi_label and len(request.candidates) > 1:
            shares = steps.softmax(scores[:, entailment])
        elif scores.shape[1] == 2:
            shares = steps.softmax(scores)[:, entailment]
        else:
            shares = steps.softmax(scores[:, [contradiction, entailment]])[:, 1]
        order = np.argsort(-shares, kind="stable")
        return {
            "sequence": request.text,
            "labels": [request.candidates[index] for index in order],
            "scores": [float(shares[index]) for index in order],
        }

    def _fault_of_width(self, width: int) -> str:
        last = self._places.entailment if width == 2 else max(self._places[:2])
        if last < width:
            return ""
        return f"the model's output has {width} numbers, and config.json's label2id asks for number {last}"
