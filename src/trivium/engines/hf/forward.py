"""Runs a model over the tokens of one step, and returns the logits of those that are wanted."""

from collections.abc import Sequence
from typing import Any

import torch

from trivium.engines.hf.attention import StepAttention
from trivium.engines.hf.sequences import SequenceState
from trivium.engines.hf.storage import RowSegment

Reads = Sequence[tuple[SequenceState, int]]
"""The sequences of a step and how many inputs of each are computed: those with one input first."""


class ForwardPass:
    """One model, whose layers call the attention."""

    def __init__(self, model: Any, attention: StepAttention, device: torch.device) -> None:
        self._model = model
        self._attention = attention
        self._device = device

    def run(self, reads: Reads) -> tuple[torch.Tensor, list[SequenceState]]:
        """Compute a step. Returns the logits of the sequences all of whose inputs are computed now, and those."""
        ids: list[int] = []
        positions: list[int] = []
        segments: list[RowSegment] = []
        kept: list[int] = []
        ended: list[SequenceState] = []
        for sequence, count in reads:
            segments.append(RowSegment(sequence.place, sequence.done, count))
            ids += sequence.tokens(count)
            positions += range(sequence.done, sequence.done + count)
            if count == sequence.left:
                kept.append(len(ids) - 1)
                ended.append(sequence)
        self._attention.place(segments, self._device)
        inputs: dict[str, torch.Tensor] = {"input_ids": torch.tensor([ids], device=self._device)}
        if any(sequence.prompt.embeds is not None for sequence, _ in reads):
            inputs = {"inputs_embeds": self._embedded(inputs["input_ids"], reads)}
        logits = self._model(
            **inputs,
            position_ids=torch.tensor([positions], device=self._device),
            use_cache=False,
            logits_to_keep=torch.tensor(kept or [0], device=self._device),
        ).logits[0]
        for sequence, count in reads:
            sequence.done += count
        return logits[: len(kept)], ended

    def _embedded(self, ids: torch.Tensor, reads: Reads) -> torch.Tensor:
        rows: torch.Tensor = self._model.get_input_embeddings()(ids)
        at = 0
        for sequence, count in reads:
            embeds = sequence.prompt.embeds
            if embeds is not None:
                given = embeds[sequence.done : sequence.done + count]
                rows[0, at : at + len(given)] = given.to(rows.device, rows.dtype)
            at += count
        return rows
