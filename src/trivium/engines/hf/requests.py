"""Judges requests before anything is computed for them, and says what their fields mean to this engine.

An error names the field, what it is and what was expected. It knows the model by its limits alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from trivium.engines.hf.memory import BLOCK, KeyValueBudget
from trivium.engines.hf.text_settings import completed
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate, Sampling
from trivium.types.operations import Infer

MOST_CHOICES = 128
MOST_SEQUENCES = 1024
MOST_ALTERNATIVES = 20
MOST_STOPS = 256
MOST_BIASES = 1024
MOST_STOP_TEXT = 16384


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """Bounds what a model takes: `context` tokens of a prompt and its answer, of `vocabulary`, embedded in `width`;
    their keys and values within a `budget`, where it has one of its own.
    """

    model: str
    context: int
    vocabulary: int
    width: int
    budget: KeyValueBudget | None = None


def room_for(prompt: int, asked: int | None, limits: GenerationLimits) -> int:
    """Return how many tokens may follow a prompt of so many: as asked, and as many as context and memory hold."""
    room = limits.context - prompt
    if limits.budget is not None:
        room = min(room, limits.budget.tokens - prompt)
    return room if asked is None else min(asked, room)


def is_greedy(sampling: Sampling) -> bool:
    """Return whether each token is the likeliest one, and none is drawn."""
    if sampling.samples is None:
        return not sampling.temperature
    return not sampling.samples or sampling.temperature == 0


def sequences_per_prompt(sampling: Sampling) -> int:
    """Return how many sequences are made of each prompt."""
    return max(sampling.choices, sampling.best_of or 0)


def only_reads(generate: Generate) -> bool:
    """Return whether nothing is computed for a request: its tokens, or its text, are all that is asked for."""
    return generate.sampling.max_tokens == 0 and not generate.scores_prompts


def judge(generate: Generate, limits: GenerationLimits) -> None:
    """Raise INVALID for a request that cannot be served, and name its field."""
    given = [name for name in ("prompts", "messages", "ids", "embeds") if getattr(generate, name) is not None]
    if len(given) != 1:
        raise refusal(
            limits.model,
            "prompts",
            "exactly one of prompts, messages, ids and embeds",
            " and ".join(given) or "none",
        )
    _judge_input(generate, limits)
    _judge_numbers(generate.sampling, limits.model)
    _judge_ends(generate.sampling, limits)
    _judge_choices(generate, limits.model)


def judged(infer: Infer, own: Mapping[str, float], limits: GenerationLimits) -> Generate:
    """Return what a request asks for, with the model's `own` settings of sampling where it says nothing. Raises INVALID
    for what cannot be served, and names its field.
    """
    generate = infer.payload
    assert isinstance(generate, Generate), "engines of texts take nothing else"
    if own:
        generate = msgspec.structs.replace(generate, sampling=completed(generate.sampling, own))
    try:
        judge(generate, limits)
    except TypeError as error:
        raise refusal(limits.model, "sampling", "numbers", error) from error
    return generate


def refusal(model: str, field: str, expected: str, found: object) -> ServeError:
    """Return the error of a field that is not what was expected."""
    text = str(found)
    shown = text if len(text) <= 100 else f"{text[:100]}…"
    return field_fault(model, field, f"'{field}' is {shown}; expected {expected}.")


def field_fault(model: str, field: str, text: str) -> ServeError:
    """Return the error of a field, which it names as this engine does; each wire has its own name for it."""
    info = ErrorInfo.of(reasons.GENERATION_FIELD, model=model, field=field)
    return ServeError(Code.INVALID, f"Model '{model}': {text}", info=info)


def beyond_context(limits: GenerationLimits, field: str, tokens: int) -> ServeError:
    """Return the error of a prompt that leaves no room for a token."""
    return _too_long(limits, field, f"{tokens} tokens; expected at most {limits.context - 1}")


def beyond_bytes(limits: GenerationLimits, field: str, size: int, most: int) -> ServeError:
    """Return the error of a text that leaves no room for a token, whatever its tokens are."""
    expected = f"expected at most {limits.context - 1} tokens, which have at most {most} bytes"
    return _too_long(limits, field, f"{size} bytes; {expected}")


def _too_long(
    limits: GenerationLimits, field: str, found: str, most: int | None = None, kv_bytes: int | None = None
) -> ServeError:
    """Return the error in words by which libraries of clients know it: they go on with another model, or less text."""
    info = ErrorInfo.of(reasons.TOO_LONG, model=limits.model, field=field, names="truncate")
    setting = "max_context" if kv_bytes is None else "kv_bytes"
    why = "" if kv_bytes is None else f" (its memory for keys and values is {kv_bytes} bytes)"
    most = most or limits.context
    text = (
        f"the prompt is too long: '{field}' has {found}. This model's maximum context length is {most} tokens, of a "
        f"prompt and its answer together{why}. Shorten it, say how many tokens to keep with 'truncate', or load the "
        f"model with a greater '{setting}'."
    )
    return ServeError(Code.INVALID, f"Model '{limits.model}': {text}", info=info)


def judge_memory(generate: Generate, field: str, prompt: int, limits: GenerationLimits) -> None:
    """Raise INVALID for a prompt of so many tokens, in a field, whose keys and values could never be there together
    with those of its answer, whoever else gave way.
    """
    held, asked = limits.budget, generate.sampling.max_tokens
    if held is None or held.tokens >= limits.context or only_reads(generate):
        return
    least = 0 if asked == 0 else 1
    new = least if asked is None else min(asked, limits.context - prompt)
    if prompt + new <= held.tokens:
        return
    needed = (prompt + new) * held.block_bytes // BLOCK
    if prompt + least > held.tokens:
        raise _too_long(
            limits,
            field,
            f"{prompt} tokens, whose keys and values are {needed} bytes",
            held.tokens,
            held.bytes,
        )
    raise field_fault(
        limits.model,
        "max_tokens",
        f"'max_tokens' is {asked}: with a prompt of {prompt} tokens keys and values are {needed} bytes, and the model "
        f"has {held.bytes} for them, which is {held.tokens} tokens of prompt and answer. Expected at most "
        f"{held.tokens - prompt}, or a model with a greater 'kv_bytes'.",
    )


def _judge_input(generate: Generate, limits: GenerationLimits) -> None:
    model = limits.model
    if generate.prompts is not None and not generate.prompts:
        raise refusal(model, "prompts", "one text at least", "empty")
    if generate.messages is not None and not generate.messages:
        raise refusal(model, "messages", "one message at least", "empty")
    if generate.messages is None and (generate.tools or generate.template_arguments):
        raise refusal(model, "tools", "messages, whose template gets them", "given without messages")
    if generate.ids is not None:
        if not generate.ids or not all(generate.ids):
            raise refusal(model, "input_ids", "one token at least in every prompt", "empty")
        for ids in generate.ids:
            if len(ids) >= limits.context and generate.sampling.truncate is None and not only_reads(generate):
                raise beyond_context(limits, "input_ids", len(ids))
            for token in (min(ids), max(ids)):
                _judge_token(limits, "input_ids", token)
    if generate.embeds is not None:
        _judge_embeds(generate, limits)


def _judge_embeds(generate: Generate, limits: GenerationLimits) -> None:
    embeds = generate.embeds
    assert embeds is not None
    if embeds.width != limits.width:
        raise refusal(
            limits.model, "inputs_embeds", f"rows of width {limits.width}", f"of width {embeds.width}"
        )
    if embeds.tokens < 1 or memoryview(embeds.data).nbytes != embeds.tokens * embeds.width * 4:
        found = f"{embeds.tokens} rows in {memoryview(embeds.data).nbytes} bytes"
        raise refusal(limits.model, "inputs_embeds", "one row at least, of float32", found)
    if generate.echoes or generate.scores_prompts:
        raise refusal(limits.model, "echo", "a prompt that has a text", "set for embeddings")


def _judge_token(limits: GenerationLimits, field: str, token: int) -> None:
    if not 0 <= token < limits.vocabulary:
        raise refusal(limits.model, field, f"tokens from 0 to {limits.vocabulary - 1}", token)


_BOUNDS: tuple[tuple[str, float, float, str], ...] = (
    ("temperature", 0.0, 1e6, "a number from 0"),
    ("top_k", -1, 2**31, "a whole number from 1, or -1 or 0 for any token"),
    ("min_p", 0.0, 1.0, "a number from 0 to 1"),
    ("presence_penalty", -100.0, 100.0, "a number from -100 to 100"),
    ("frequency_penalty", -100.0, 100.0, "a number from -100 to 100"),
    ("max_tokens", 0, 2**31, "a whole number from 0"),
    ("min_tokens", 0, 2**31, "a whole number from 0"),
    ("logprobs", 0, MOST_ALTERNATIVES, f"a whole number from 0 to {MOST_ALTERNATIVES}"),
    ("choices", 1, MOST_CHOICES, f"a whole number from 1 to {MOST_CHOICES}"),
    ("best_of", 1, MOST_CHOICES, f"a whole number from 1 to {MOST_CHOICES}"),
    ("truncate", -1, 2**31, "a whole number from 1, or -1 for as many as leave room for an answer"),
    ("seed", -(2**63), 2**64, "a whole number of 64 bits"),
)
_POSITIVE = (("top_p", 1.0), ("typical_p", 1.0), ("repetition_penalty", 1e6))


def _judge_numbers(sampling: Sampling, model: str) -> None:
    for name, least, most, expected in _BOUNDS:
        value = getattr(sampling, name)
        if value is not None and not least <= value <= most:
            raise refusal(model, name, expected, value)
    for name, top in _POSITIVE:
        share = getattr(sampling, name)
        if share is not None and not 0 < share <= top:
            raise refusal(model, name, "a number above 0" + (" and up to 1" if top == 1.0 else ""), share)
    if sampling.truncate == 0:
        raise refusal(model, "truncate", "a whole number from 1, or -1", 0)
    if sampling.samples and sampling.temperature == 0:
        raise refusal(model, "temperature", "a number above 0 where tokens are to be drawn", "0")
    fewest, limit = sampling.min_tokens or 0, sampling.max_tokens
    if limit is not None and fewest > limit:
        raise refusal(model, "min_tokens", f"at most the maximum of tokens, {limit}", fewest)


def _judge_ends(sampling: Sampling, limits: GenerationLimits) -> None:
    for name, count, most in (
        ("stop_ids", len(sampling.stop_ids), MOST_STOPS),
        ("logit_bias", len(sampling.logit_bias), MOST_BIASES),
    ):
        if count > most:
            raise refusal(limits.model, name, f"at most {most} tokens", f"of {count} tokens")
    for token in sampling.stop_ids:
        _judge_token(limits, "stop_ids", token)
    for token, value in sampling.logit_bias.items():
        _judge_token(limits, "logit_bias", token)
        if not math.isfinite(value):
            raise refusal(limits.model, "logit_bias", "finite numbers", value)
    if not all(sampling.stop):
        raise refusal(limits.model, "stop", "texts of one character at least", "empty")
    if len(sampling.stop) > MOST_STOPS or sum(map(len, sampling.stop)) > MOST_STOP_TEXT:
        expected = f"at most {MOST_STOPS} texts of {MOST_STOP_TEXT} characters in all"
        raise refusal(limits.model, "stop", expected, "longer")


def _judge_choices(generate: Generate, model: str) -> None:
    sampling = generate.sampling
    if sampling.best_of is not None and sampling.best_of < sampling.choices:
        raise refusal(
            model, "best_of", f"at least the number of choices, {sampling.choices}", sampling.best_of
        )
    if generate.streams and sequences_per_prompt(sampling) > sampling.choices:
        expected = "an answer that is not streamed, since the best are known at the end alone"
        raise refusal(model, "best_of", expected, f"{sampling.best_of} in a stream")
    count = len(generate.prompts or generate.ids or (1,)) * sequences_per_prompt(sampling)
    if count > MOST_SEQUENCES:
        expected = f"at most {MOST_SEQUENCES} sequences, prompts times choices"
        raise refusal(model, "prompts", expected, f"{count} sequences")
