"""Counts which tokens each slot's sequence has had, for penalties: its own ones, not the whole vocabulary."""

from collections.abc import Sequence

import numpy as np
import torch

from trivium.types.datatype import Array
from trivium.types.generation import Sampling


def uses_counts(sampling: Sampling) -> bool:
    """Return whether a request has a penalty."""
    return bool(
        sampling.presence_penalty
        or sampling.frequency_penalty
        or sampling.repetition_penalty not in (None, 1.0)
    )


class _Counted:
    """The different tokens of one sequence, and how often it generated each of them."""

    def __init__(self, known: Sequence[int], new: Sequence[int]) -> None:
        tokens = dict.fromkeys(known)
        self._places = {token: place for place, token in enumerate(tokens)}
        self._size = len(tokens)
        room = 2 * self._size + 64
        self._ids = np.zeros(room, np.int64)
        self._ids[: self._size] = list(tokens)
        self._times = np.zeros(room, np.float32)
        for token in new:
            self._times[self._places[token]] += 1

    @property
    def ids(self) -> Array:
        """Return the tokens."""
        return self._ids[: self._size]

    @property
    def times(self) -> Array:
        """Return how often each was generated."""
        return self._times[: self._size]

    def add(self, token: int) -> None:
        """Count a token that was generated."""
        place = self._places.setdefault(token, self._size)
        if place == self._size:
            if place == len(self._ids):
                self._ids, self._times = np.resize(self._ids, 2 * place), np.resize(self._times, 2 * place)
            self._ids[place], self._times[place] = token, 0
            self._size += 1
        self._times[place] += 1


class TokenCounts:
    """One per model, for its slots."""

    def __init__(self) -> None:
        self._of: dict[int, _Counted] = {}

    def begin(self, slot: int, known: Sequence[int], new: Sequence[int]) -> None:
        """Count anew for a slot: what is known of prompt and answer, and the answer's tokens."""
        self._of[slot] = _Counted(known, new)

    def add(self, slots: Sequence[int], tokens: Sequence[int]) -> None:
        """Count a token for each of some slots."""
        for slot, token in zip(slots, tokens, strict=True):
            self._of[slot].add(token)

    def penalise(
        self, scores: torch.Tensor, rows: Sequence[int], slots: Sequence[int], penalties: torch.Tensor
    ) -> None:
        """Make the scores of known tokens smaller, in the rows of these slots. Each has three penalties: for
        repetition, presence and frequency.
        """
        counted = [self._of[slot] for slot in slots]
        sizes = [len(one.ids) for one in counted]
        if not sum(sizes):
            return
        device = scores.device
        of = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(device)
        ids = torch.from_numpy(np.concatenate([one.ids for one in counted])).to(device)
        times = torch.from_numpy(np.concatenate([one.times for one in counted])).to(device)
        places = torch.tensor(rows, device=device)[of], ids
        repetition, presence, frequency = penalties[:, of]
        found = scores[places]
        found = torch.where(found > 0, found / repetition, found * repetition)
        scores[places] = found - times * frequency - (times > 0) * presence
