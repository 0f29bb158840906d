"""Token classification: the names and other entities in a text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trivium.translators.arguments import TokenClassificationArguments
from trivium.translators.texts.encoding import Floats, failure
from trivium.translators.texts.labelled import LabelledTexts
from trivium.translators.texts.requests import TextRequest
from trivium.translators.texts.tokenizer import TokenRow
from trivium.types.datatype import Array
from trivium_worker import pictures as steps

_OUTSIDE = "O"


@dataclass(frozen=True, slots=True)
class Entity:
    """One token or several: their label and score, ids, and the letters of the text from `start` to `end`."""

    label: str
    score: float
    ids: tuple[int, ...]
    start: int
    end: int
    index: int = -1
    word: str = ""


class TokenClassification(LabelledTexts):
    """Answers `[{"entity", "score", "index", "word", "start", "end"}]`, and a list of those for a list of texts.

    What is outside of any entity is left out. An aggregation joins the pieces of a word, then the words of an entity;
    `simple` joins tokens of one label alone. What is joined has the index -1, as in DJL.
    """

    def __init__(self, folder: Path, arguments: TokenClassificationArguments) -> None:
        super().__init__(folder, arguments.text)
        self._softmax, self._aggregation = arguments.softmax, arguments.aggregation

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: TextRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows: the scores of all labels for every token."""
        scores = self.scores(outputs, 3, len(encodings))
        if scores.shape[1] < max(len(encoding.ids) for encoding in encodings):
            raise failure(f"The model scored {scores.shape[1]} tokens of {len(encodings[0].ids)}.")
        shares = steps.softmax(scores) if self._softmax else scores
        answers = [
            [_shown(entity) for entity in self._entities(row, encoding, text)]
            for row, encoding, text in zip(shares, encodings, request.rows, strict=True)
        ]
        return answers if request.is_list else answers[0]

    def _entities(self, shares: Floats, encoding: TokenRow, text: str) -> Iterator[Entity]:
        places = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        if self._aggregation in ("none", "simple"):
            found = [self._of_token(place, shares, encoding) for place in places]
            found = self._grouped(found) if self._aggregation == "simple" else found
        else:
            words: list[list[int]] = []
            for place in places:
                if words and _is_inside_word(text, encoding.offsets[place][0]):
                    words[-1].append(place)
                else:
                    words.append([place])
            found = self._grouped([self._of_word(word, shares, encoding) for word in words])
        return (entity for entity in found if entity.label != _OUTSIDE)

    def _of_token(self, place: int, shares: Floats, encoding: TokenRow) -> Entity:
        best = int(shares[place].argmax())
        start, end = encoding.offsets[place]
        ids = (encoding.ids[place],)
        score, word = float(shares[place, best]), encoding.tokens[place]
        return Entity(self.labels[best], score, ids, start, end, place, word)

    def _of_word(self, places: Sequence[int], shares: Floats, encoding: TokenRow) -> Entity:
        """Join the pieces of a word: by the first, by the one that is surest, or by the mean of all."""
        tokens = [self._of_token(place, shares, encoding) for place in places]
        label, score = tokens[0].label, tokens[0].score
        if self._aggregation == "max":
            best = max(tokens, key=lambda token: token.score)
            label, score = best.label, best.score
        elif self._aggregation == "average" and len(tokens) > 1:
            mean = shares[np.array(places)].mean(0)
            label, score = self.labels[int(mean.argmax())], float(mean.max())
        ids = tuple(encoding.ids[place] for place in places)
        return Entity(label, score, ids, tokens[0].start, tokens[-1].end)

    def _grouped(self, entities: Sequence[Entity]) -> list[Entity]:
        """Join neighbours of one label; one that begins an entity (`B-`) begins a group."""
        groups: list[list[Entity]] = []
        for entity in entities:
            is_next = groups and _bare(entity.label) == _bare(groups[-1][-1].label)
            if is_next and not entity.label.startswith("B-"):
                groups[-1].append(entity)
            else:
                groups.append([entity])
        return [self._joined(group) for group in groups]

    def _joined(self, group: Sequence[Entity]) -> Entity:
        ids = tuple(token for entity in group for token in entity.ids)
        score = sum(entity.score for entity in group) / len(group)
        label = group[0].label
        label = label[label.index("-") + 1 :] if "-" in label[1:] else label
        word = self.encoder.tokenizer.decode(ids)
        return Entity(label, score, ids, group[0].start, group[-1].end, word=word)


def _bare(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label


def _is_inside_word(text: str, start: int) -> bool:
    """Return if a token goes on with a word: there is no blank where it begins, nor before it."""
    return start > 0 and " " not in text[start - 1 : start + 1]


def _shown(entity: Entity) -> dict[str, object]:
    return {
        "entity": entity.label,
        "score": entity.score,
        "index": entity.index,
        "word": entity.word,
        "start": entity.start,
        "end": entity.end,
    }
