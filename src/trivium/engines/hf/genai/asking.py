"""Says what a request's fields mean to OpenVINO GenAI, and refuses by name those that it does not know. Pure."""

from collections.abc import Collection, Mapping
from hashlib import blake2b

from trivium.engines.hf.genai.options import NAME
from trivium.engines.hf.requests import GenerationLimits, is_greedy, refusal
from trivium.types.generation import Generate, Sampling

MOST_LOGPROBS = 1


def judge_known(generate: Generate, limits: GenerationLimits, keeps: bool) -> None:
    """Raise INVALID for a field that this engine cannot honour, by its name; `keeps`: beginnings of prompts are kept
    for others, whoever sends them.
    """
    for field, expected, found in _unknown(generate, keeps):
        raise refusal(limits.model, field, f"{expected} (the engine '{NAME}' knows no more)", found)


def _unknown(generate: Generate, keeps: bool) -> list[tuple[str, str, object]]:
    sampling = generate.sampling
    likeliest = is_greedy(sampling) and not _has_penalty(sampling)
    none = "none"
    found: tuple[tuple[bool, str, str, object], ...] = (
        (generate.embeds is not None, "inputs_embeds", "a text, messages or ids of tokens", "a prompt of embeddings"),
        (bool(sampling.logit_bias), "logit_bias", none, f"given for {len(sampling.logit_bias)} tokens"),
        (sampling.typical_p not in (None, 1), "typical_p", "1, or none", sampling.typical_p),
        (sampling.processor is not None, "logits_processor", none, sampling.processor),
        (bool(generate.adapter), "adapter", none, generate.adapter),
        (generate.scores_prompts, "logprobs", "log probabilities of new tokens alone, without those of the prompt",
         "wanted of the prompt"),
        ((sampling.logprobs or 0) > MOST_LOGPROBS, "logprobs", "the chosen token's, or one alternative",
         f"{sampling.logprobs} alternatives"),
        (sampling.logprobs == 1 and not likeliest, "logprobs",
         "an alternative where the likeliest token is taken and nothing is penalised; the chosen token's log "
         "probability is told always", "one alternative for drawn or penalised tokens"),
        (bool(generate.cache_salt) and keeps, "cache_salt",
         "none, or a model that is loaded with prefix_cache=false", "given"),
    )  # fmt: skip
    return [(field, expected, value) for is_wrong, field, expected, value in found if is_wrong]


def wants_logprobs(generate: Generate) -> bool:
    """Return whether log probabilities are wanted, by the client or to find the best sequences."""
    sampling = generate.sampling
    return sampling.logprobs is not None or (sampling.best_of or 0) > sampling.choices


def settings_of(
    generate: Generate, room: int, ends: Collection[int], seed: int, number: int
) -> Mapping[str, object]:
    """Return the fields of a `GenerationConfig` for one sequence of a request, which may have so many tokens. Where it
    ends is for us to say: it is asked not to end by itself, but for the tokens that a minimum holds back.
    """
    sampling = generate.sampling
    made: dict[str, object] = {
        "max_new_tokens": room,
        "ignore_eos": True,
        "logprobs": int(wants_logprobs(generate)),
        "repetition_penalty": sampling.repetition_penalty or 1.0,
        "presence_penalty": sampling.presence_penalty or 0.0,
        "frequency_penalty": sampling.frequency_penalty or 0.0,
    }
    if sampling.min_tokens:
        held = frozenset(sampling.stop_ids) | (frozenset() if sampling.ignores_eos else frozenset(ends))
        if held:
            made |= {"min_new_tokens": sampling.min_tokens, "stop_token_ids": set(held), "ignore_eos": False}
    if is_greedy(sampling):
        return {**made, "do_sample": False}
    made |= {"do_sample": True, "rng_seed": seed_of(seed, number)}
    made["temperature"] = 1.0 if sampling.temperature is None else sampling.temperature
    if sampling.top_k and sampling.top_k > 0:
        made["top_k"] = sampling.top_k
    if sampling.top_p is not None:
        made["top_p"] = sampling.top_p
    if sampling.min_p:
        made["min_p"] = sampling.min_p
    return made


def seed_of(seed: int, number: int) -> int:
    """Return the seed of one sequence: of each another one, and of equal requests the same."""
    text = f"{seed % 2**64} {number}".encode()
    return int.from_bytes(blake2b(text, digest_size=4).digest(), "little")


def _has_penalty(sampling: Sampling) -> bool:
    return bool(
        sampling.presence_penalty
        or sampling.frequency_penalty
        or sampling.repetition_penalty not in (None, 1.0)
        or sampling.min_tokens
    )
