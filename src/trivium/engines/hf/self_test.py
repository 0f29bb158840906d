"""Compares a loaded model's logits by our attention with those by its own, before it serves.

Two prompts, one of them in two pieces, and a step of both: what keys, windows, scaling or positions of a kind that we
do not know would change, is refused here instead of answered wrongly. The other prompt is the begin of the first, which
spares a pass: what a token sees does not depend on those behind it.
"""

from typing import Any

import torch

from trivium.engines.hf.attention import StepAttention
from trivium.engines.hf.forward import ForwardPass
from trivium.engines.hf.prompts import PromptInput
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.sequences import GenerationRequest, Prompt, SequenceState
from trivium.types.generation import Generate

_SHORT, _LONGEST = 8, 136
_ROUGH = 0.25
"""The tolerance where weights have 8 or 4 bits: what a layer makes of a token depends a little on those beside it."""

_TOLERANCE = {torch.float32: 2e-3, torch.float16: 5e-2, torch.bfloat16: 1e-1}


def self_test(
    model: Any, attention: StepAttention, limits: GenerationLimits, has_two: bool, is_rough: bool = False
) -> str:
    """Say where the logits differ; empty where they agree. The model keeps our attention. `is_rough`: its weights are
    quantised.
    """
    device = next(model.parameters()).device
    window = getattr(model.config.get_text_config(), "sliding_window", None)
    size = min(window + 4 if window and window + 4 <= _LONGEST else _SHORT, limits.context)
    ids = [7919 * (i + 1) % limits.vocabulary for i in range(size)]
    part = ids[: max(2, size // 2)]
    model.set_attn_implementation("eager")
    whole = _own(model, ids, device)
    model.set_attn_implementation(attention.name)
    try:
        found = _ours(ForwardPass(model, attention, device), ids, part, has_two)
    finally:
        attention.clear_all()
    tolerance = _ROUGH if is_rough else _TOLERANCE[next(model.parameters()).dtype]
    names = "a prompt in two pieces", "a step", "a step of another prompt"
    for name, mine, own in zip(names, found, (whole[-2], whole[-1], whole[len(part) - 1]), strict=False):
        gap = float((mine.float() - own.float()).abs().max()) / max(1.0, float(own.abs().max()))
        if not gap <= tolerance:  # what is no number agrees with nothing
            return f"after {name} the logits differ by {gap:.2g} of the greatest"
    return ""


def _own(model: Any, ids: list[int], device: torch.device) -> torch.Tensor:
    logits: torch.Tensor = model(input_ids=torch.tensor([ids], device=device), use_cache=False).logits[0]
    return logits


def _ours(forward: ForwardPass, ids: list[int], part: list[int], has_two: bool) -> list[torch.Tensor]:
    """Return the logits behind all but the last token, behind that, and behind the other prompt."""
    first, second = _sequence(ids[:-1], 0), _sequence(part[:-1], 1)
    if first.left > 1:
        forward.run([(first, first.left // 2)])
    reads = [(first, first.left), *([(second, second.left)] if has_two else [])]
    logits, ended, _ = forward.run(sorted(reads, key=_is_piece))
    found = [logits[ended.index(first)]]
    first.new.append(ids[-1])
    second.new.append(part[-1])
    logits, ended, _ = forward.run([(first, 1), *([(second, 1)] if has_two else [])])
    return [*found, *(logits[ended.index(one)] for one in (first, second) if one in ended)]


def _sequence(ids: list[int], slot: int) -> SequenceState:
    request = GenerationRequest(slot, Generate(ids=(tuple(ids),)), 0)
    made = SequenceState(request, slot, 0, Prompt(PromptInput(tuple(ids))))
    made.slot = slot
    return made


def _is_piece(read: tuple[SequenceState, int]) -> bool:
    return read[1] > 1
