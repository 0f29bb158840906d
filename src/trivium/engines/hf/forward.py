"""Runs a model over the tokens of one step, and returns the logits of those that are wanted."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from trivium.engines.hf.attention import StepAttention
from trivium.engines.hf.lora.layers import AdaptedLayers, AdaptedRows
from trivium.engines.hf.sequences import Prompt, SequenceState
from trivium.engines.hf.storage import RowSegment

Reads = Sequence[tuple[SequenceState, int]]
"""The sequences of a step and how many inputs of each are computed: those with one input first."""


@dataclass(frozen=True, slots=True)
class PromptLogits:
    """Holds the logits of a prompt behind its inputs from `begin` on: what the model expects to come next."""

    prompt: Prompt
    begin: int
    logits: torch.Tensor


class ForwardPass:
    """One model, whose layers call the attention, and which adapters may change."""

    def __init__(
        self, model: Any, attention: StepAttention, device: torch.device, layers: AdaptedLayers | None = None
    ) -> None:
        self._layers = layers or AdaptedLayers({})
        self._model = model
        self._attention = attention
        self._device = device

    def run(self, reads: Reads) -> tuple[torch.Tensor, list[SequenceState], list[PromptLogits]]:
        """Compute a step. Returns the logits of the sequences all of whose inputs are computed now, those, and the
        logits of prompts that are to be scored.
        """
        ids: list[int] = []
        positions: list[int] = []
        segments: list[RowSegment] = []
        kept: list[int] = []
        ended: list[SequenceState] = []
        scored: list[tuple[Prompt, int, range]] = []
        adapted: list[AdaptedRows] = []
        for sequence, count in reads:
            segments.append(RowSegment(sequence.place, sequence.done, count))
            if sequence.prompt.scores is not None:
                begin, stop = sequence.prompt.unscored(sequence.done, count)
                if begin < stop:
                    at = len(ids) - sequence.done
                    scored.append((sequence.prompt, begin, range(at + begin, at + stop)))
            if sequence.adapter is not None:
                adapted.append(AdaptedRows(sequence.adapter, len(ids), len(ids) + count))
            ids += sequence.tokens(count)
            positions += range(sequence.done, sequence.done + count)
            if count == sequence.left:
                kept.append(len(ids) - 1)
                ended.append(sequence)
        self._attention.place(segments, self._device)
        inputs: dict[str, torch.Tensor] = {"input_ids": torch.tensor([ids], device=self._device)}
        if any(sequence.prompt.embeds is not None for sequence, _ in reads):
            inputs = {"inputs_embeds": self._embedded(inputs["input_ids"], reads)}
        wanted = [*kept, *chain.from_iterable(rows for _, _, rows in scored)] or [0]
        if adapted:
            self._layers.begin(adapted, wanted, self._device)
        try:
            logits = self._model(
                **inputs,
                position_ids=torch.tensor([positions], device=self._device),
                use_cache=False,
                logits_to_keep=torch.tensor(wanted, device=self._device),
            ).logits[0]
        finally:
            if adapted:
                self._layers.end()
        for sequence, count in reads:
            sequence.done += count
        return logits[: len(kept)], ended, _of_prompts(logits[len(kept) :], scored)

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


def _of_prompts(logits: torch.Tensor, scored: Sequence[tuple[Prompt, int, range]]) -> list[PromptLogits]:
    found = []
    at = 0
    for prompt, begin, rows in scored:
        found.append(PromptLogits(prompt, begin, logits[at : at + len(rows)]))
        at += len(rows)
    return found
