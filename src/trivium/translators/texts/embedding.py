"""Vectors of texts, and scores of pairs of texts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from trivium.translators.arguments import CrossEncoderArguments, EmbeddingArguments
from trivium.translators.texts.encoding import EncodesTexts, Floats, checked, failure, output_at
from trivium.translators.texts.requests import PairRequest, TextRequest, parse_pairs, parse_texts
from trivium.translators.texts.tokenizer import TokenRow
from trivium.types.datatype import Array
from trivium_worker import pictures as steps

_STATES = "last_hidden_state"
_LEAST = np.float32(1e-9)
_LEAST_LENGTH = np.float32(1e-12)


class TextEmbedding(EncodesTexts):
    """Answers a vector, and a list of vectors for a list of texts: the states of a text's tokens, pooled."""

    def __init__(self, folder: Path, arguments: EmbeddingArguments) -> None:
        super().__init__(folder, arguments.text)
        self._pool = POOLS[arguments.pooling]
        self._normalize = arguments.normalize

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> TextRequest:
        """Return the texts of a request. INVALID, in DJL's words, for one that has none."""
        return parse_texts(content, content_type)

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: TextRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows: `last_hidden_state`, or else the first."""
        rows = len(encodings)
        named = outputs.get(_STATES)
        states = output_at(outputs, 0, 3, rows) if named is None else checked(named, 3, rows)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.float32)
        if mask.shape != states.shape[:2]:
            raise failure(f"The model's output has {states.shape[1]} states for {mask.shape[1]} tokens.")
        vectors = self._pool(states, mask)
        if self._normalize:
            lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
            vectors = vectors / np.maximum(lengths, _LEAST_LENGTH)
        answers = vectors.astype("<f4").tolist()
        return answers if request.is_list else answers[0]


class CrossEncoder(EncodesTexts):
    """Answers the scores of a pair of texts, and a list of those for a list of pairs."""

    def __init__(self, folder: Path, arguments: CrossEncoderArguments) -> None:
        super().__init__(folder, arguments.text)
        self._sigmoid = arguments.sigmoid

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> PairRequest:
        """Return the pairs of a request. INVALID, in DJL's words, for one that has none."""
        return parse_pairs(content, content_type, fields)

    def decode(
        self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: PairRequest
    ) -> object:
        """Return the answer of a request from the outputs of its rows."""
        first = next(iter(outputs.values()), np.zeros(0))
        scores = checked(
            first.reshape(len(first), -1) if first.size and first.ndim else first, 2, len(encodings)
        )
        answers = (steps.sigmoid(scores) if self._sigmoid else scores).tolist()
        return answers if request.is_list else answers[0]


def _mean(states: Floats, mask: Floats) -> Floats:
    mean: Floats = _total(states, mask) / np.maximum(mask.sum(1, keepdims=True), _LEAST)
    return mean


def _mean_by_root(states: Floats, mask: Floats) -> Floats:
    mean: Floats = _total(states, mask) / np.sqrt(np.maximum(mask.sum(1, keepdims=True), _LEAST))
    return mean


def _total(states: Floats, mask: Floats) -> Floats:
    total: Floats = (states * mask[:, :, None]).sum(1)
    return total


def _weighted_mean(states: Floats, mask: Floats) -> Floats:
    return _mean(states, mask * np.arange(1, mask.shape[1] + 1, dtype=np.float32))


def _most(states: Floats, mask: Floats) -> Floats:
    found: Floats = np.where(mask[:, :, None] == 0, np.float32(-1e9), states).max(1)
    return found


def _first_token(states: Floats, mask: Floats) -> Floats:
    return states[:, 0]


def _last_token(states: Floats, mask: Floats) -> Floats:
    last = mask.shape[1] - 1 - np.argmax(mask[:, ::-1] != 0, axis=1)
    found: Floats = states[np.arange(len(states)), last]
    return found


POOLS: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "mean": _mean,
    "max": _most,
    "cls": _first_token,
    "mean_sqrt_len": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last_token,
}
"""The way from states `[rows, tokens, n]`, with 1 where a token is, to vectors `[rows, n]`."""
