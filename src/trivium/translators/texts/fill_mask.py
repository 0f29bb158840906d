"""Fill mask: the words that fit best into a gap."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trivium.translators.arguments import FillMaskArguments
from trivium.translators.faults import refusal_in_words
from trivium.translators.files import refusal
from trivium.translators.long_texts import Encode
from trivium.translators.texts.encoding import EncodedTexts, EncodesTexts, failure, output_at
from trivium.translators.texts.requests import TextRequest, parse_texts
from trivium.translators.texts.tokenizer import Text, TokenRow
from trivium.types.datatype import Array
from trivium_worker import pictures as steps


class FillMask(EncodesTexts):
    """Answers `[{"className", "probability"}]`, the best first, and a list of those for a list of texts.

    As in DJL the best tokens are turned into text together and parted at its blanks, so a piece of a word that follows
    another token is joined to it.
    """

    def __init__(self, folder: Path, arguments: FillMaskArguments) -> None:
        super().__init__(folder, arguments.text)
        self._token, self._top_k = arguments.mask_token, arguments.top_k
        found = self.encoder.tokenizer.id_of(self._token)
        if found is None:
            raise refusal(
                "maskToken", f"is {self._token!r}, which the tokenizer does not have", "Write its own."
            )
        self._id = found

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> TextRequest:
        """Return the texts of a request. INVALID, in DJL's words, for one that has none."""
        return parse_texts(content, content_type)

    def encode(self, rows: Sequence[Text], encode: Encode | None = None) -> EncodedTexts:
        """Return the tensors of some rows. INVALID for one that has no mask, or more than one."""
        encoded = super().encode(rows, encode)
        for encoding in encoded.encodings:
            self._place(encoding)
        return encoded

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: TextRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows: the scores of all words at every token."""
        scores = output_at(outputs, 0, 3, len(encodings))
        answers = []
        for row, encoding in zip(scores, encodings, strict=True):
            place = self._place(encoding)
            if place >= len(row):
                raise failure(f"The model scored {len(row)} tokens of {len(encoding.ids)}.")
            shares = steps.softmax(row[place])
            best = np.argsort(-shares, kind="stable")[: self._top_k]
            words = self.encoder.tokenizer.decode(best.tolist()).strip().split(" ")
            answers.append(
                [
                    {"className": word, "probability": float(shares[index])}
                    for word, index in zip(words, best, strict=False)
                ]
            )
        return answers if request.is_list else answers[0]

    def _place(self, encoding: TokenRow) -> int:
        places = [place for place, token in enumerate(encoding.ids) if token == self._id]
        if len(places) > 1:
            raise refusal_in_words("Only one mask supported.")
        if not places:
            raise refusal_in_words(f"Mask token {self._token} not found.")
        return places[0]
