"""Says to vLLM how the tokens of one sequence are chosen, and when it ends. This is pure.

Stop texts are found here, in the text that is answered; tokens that end a sequence are vLLM's to look for, as stop
tokens: it leaves out those that come before the minimum.
"""

from collections.abc import Collection
from typing import Any

from trivium.engines.hf.requests import is_greedy, refusal
from trivium.types.generation import Generate, Sampling

_SEEDS = 2**63


def judge_sampling(generate: Generate, model: str, takes_embeds: bool, has_adapters: bool) -> None:
    """Raise INVALID for what a request asks for and vLLM cannot do, and name its field. Scores of a prompt end the
    engine of vLLM 0.32 where it has adapters: it takes the rows of the prompt for those of the answers.
    """
    sampling = generate.sampling
    if sampling.typical_p not in (None, 1.0):
        expected = "1, or none: vLLM has no such filter; top_p and min_p are much alike"
        raise refusal(model, "typical_p", expected, sampling.typical_p)
    if sampling.processor is not None:
        expected = "none: the engine vllm runs no logits processors of a folder"
        raise refusal(model, "logits_processor", expected, f"'{sampling.processor}'")
    if generate.scores_prompts and has_adapters:
        expected = (
            "not set: vLLM cannot score prompts of a model that takes adapters; load it without enable_lora"
        )
        raise refusal(model, "prompt_logprobs", expected, "set")
    if generate.embeds is not None and not takes_embeds:
        expected = "none, unless the model is loaded with enable_prompt_embeds=true"
        raise refusal(model, "inputs_embeds", expected, "given")


def sampling_arguments(
    sampling: Sampling, room: int, number: int, is_scored: bool, ends: Collection[int]
) -> dict[str, Any]:
    """Return the arguments of `SamplingParams` for the sequence of this number, which may have so many tokens."""
    stops = sorted({*sampling.stop_ids, *(() if sampling.ignores_eos else ends)})
    best = (sampling.best_of or 0) > sampling.choices
    return {
        **_chosen_by(sampling),
        "n": 1,
        "seed": None if sampling.seed is None else (sampling.seed + number) % _SEEDS,
        "max_tokens": max(1, room),
        "min_tokens": min(sampling.min_tokens or 0, max(1, room)),
        "stop_token_ids": stops,
        "ignore_eos": True,
        "logprobs": sampling.logprobs if sampling.logprobs is not None else 0 if best else None,
        "prompt_logprobs": (sampling.logprobs or 0) if is_scored else None,
        "detokenize": False,
    }


def _chosen_by(sampling: Sampling) -> dict[str, Any]:
    """Return what makes one token more likely than another."""
    found: dict[str, Any] = {
        "repetition_penalty": sampling.repetition_penalty or 1.0,
        "presence_penalty": sampling.presence_penalty or 0.0,
        "frequency_penalty": sampling.frequency_penalty or 0.0,
        "logit_bias": dict(sampling.logit_bias) or None,
    }
    if is_greedy(sampling):
        return found | {"temperature": 0.0}
    return found | {
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_k": max(0, sampling.top_k or 0),
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "min_p": sampling.min_p or 0.0,
    }
