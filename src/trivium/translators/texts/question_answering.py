"""Question answering: the part of a paragraph that answers a question."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trivium.translators.arguments import QuestionAnsweringArguments
from trivium.translators.faults import refusal_in_words
from trivium.translators.texts.encoding import EncodesTexts, Floats, failure, output_at
from trivium.translators.texts.requests import PairRequest, parse_questions
from trivium.translators.texts.tokenizer import TokenRow
from trivium.types.datatype import Array
from trivium_worker import pictures as steps

_NOWHERE = np.float32(-100000)


class QuestionAnswering(EncodesTexts):
    """Answers `{"answer": text}`, and a list of those for an array of questions.

    The best beginning and the best end are found by themselves; where the end comes first, they change places.
    """

    def __init__(self, folder: Path, arguments: QuestionAnsweringArguments) -> None:
        super().__init__(folder, arguments.text)
        self._detail = arguments.detail

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> PairRequest:
        """Return the questions of a request. INVALID, in DJL's words, for one that has none."""
        return parse_questions(content, content_type, fields)

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: PairRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows: the scores of beginnings and of ends."""
        starts, ends = (output_at(outputs, place, 2, len(encodings)) for place in (0, 1))
        answers = [
            {"answer": self._answer(start, end, encoding)}
            for start, end, encoding in zip(starts, ends, encodings, strict=True)
        ]
        return answers if request.is_list else answers[0]

    def _answer(self, starts: Floats, ends: Floats, encoding: TokenRow) -> str:
        inside = np.array([sequence == 1 for sequence in encoding.sequence_ids])
        if not len(inside) == len(starts) == len(ends):
            raise failure(f"The model scored {len(starts)} and {len(ends)} tokens of {len(inside)}.")
        if not inside.any():
            raise refusal_in_words(
                "No valid answer span found in context.",
                "Ensure the paragraph/context contains relevant information.",
            )
        starts, ends = (np.where(inside, scores, _NOWHERE) for scores in (starts, ends))
        if self._detail:
            starts, ends = steps.softmax(starts), steps.softmax(ends)
        first, last = int(starts.argmax()), int(ends.argmax())
        score = float(starts[first] * ends[last])
        first, last = sorted((first, last))
        answer = self.encoder.tokenizer.decode(encoding.ids[first : last + 1]).strip()
        if not self._detail:
            return answer
        return json.dumps({"score": score, "start": first, "end": last, "answer": answer}, ensure_ascii=False)
