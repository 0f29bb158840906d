"""Counts which tokens each slot's sequence has had, for penalties; memory is taken once a request asks for one."""

from collections.abc import Sequence

import torch

from trivium.types.generation import Sampling


def uses_counts(sampling: Sampling) -> bool:
    """Return whether a request has a penalty."""
    return bool(
        sampling.presence_penalty
        or sampling.frequency_penalty
        or sampling.repetition_penalty not in (None, 1.0)
    )


class TokenCounts:
    """One per model: two numbers per slot and token."""

    def __init__(self, slots: int, vocabulary: int, device: torch.device) -> None:
        self._size = slots, vocabulary
        self._device = device
        self._new: torch.Tensor | None = None  # how often a token was generated
        self._known: torch.Tensor | None = None  # whether it was, or stands in the prompt

    def begin(self, slot: int, known: Sequence[int], new: Sequence[int]) -> None:
        """Count anew for a slot: what is known of prompt and answer, and the answer's tokens."""
        if self._new is None or self._known is None:
            self._new = torch.zeros(self._size, dtype=torch.float32, device=self._device)
            self._known = torch.zeros(self._size, dtype=torch.bool, device=self._device)
        self._new[slot] = torch.bincount(self._tensor(new), minlength=self._size[1]).float()
        self._known[slot] = False
        self._known[slot, self._tensor(known)] = True

    def add(self, slots: torch.Tensor, tokens: torch.Tensor) -> None:
        """Count a token for each of some slots."""
        assert self._new is not None, "each slot has begun"
        assert self._known is not None, "the same"
        self._new[slots, tokens] += 1
        self._known[slots, tokens] = True

    def penalise(
        self,
        scores: torch.Tensor,
        slots: torch.Tensor,
        repetition: torch.Tensor,
        presence: torch.Tensor,
        frequency: torch.Tensor,
    ) -> torch.Tensor:
        """Return the scores of the rows of these slots, those of known tokens made smaller."""
        assert self._new is not None, "each slot has begun"
        assert self._known is not None, "the same"
        factor = repetition[:, None]
        repeated = torch.where(scores > 0, scores / factor, scores * factor)
        scores = torch.where(self._known[slots], repeated, scores)
        new = self._new[slots]
        return scores - new * frequency[:, None] - (new > 0) * presence[:, None]

    def _tensor(self, tokens: Sequence[int]) -> torch.Tensor:
        return torch.tensor(tokens, dtype=torch.long, device=self._device)
