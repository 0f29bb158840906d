"""Requests to generate text, and the parts of what is generated, in neutral names.

A request has prompts times choices, each a sequence of its own: sequence `i` is choice `i % choices` of prompt
`i // choices`. What a client has not said is None: each protocol fills in its own defaults.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import chain

import msgspec

from trivium.types.buffers import Lease


class Finish(Enum):
    """Says why a sequence has ended."""

    LENGTH = "length"  # as many tokens as were asked for, or as the model's context holds
    EOS = "eos"  # the model's own end
    STOP = "stop"  # a stop text or a stop token of the request
    CANCELLED = "cancelled"
    ERROR = "error"


class Sampling(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Says how the next token is chosen, and when a sequence ends.

    `samples` False is greedy, whatever the temperature says; None: greedy where the temperature is 0, or not said.
    `stop` texts and `stop_ids` end a sequence; a stop text is left out of the answer unless it `keeps_stop`. Log
    probabilities are wanted with `logprobs` alternatives (0: of the chosen token alone). `best_of` sequences are made
    and the best `choices` answered. `processor`: the name of one of the model's logits processors.
    `truncate`: tokens of the prompt that are kept, the last ones; -1: as many as leave room for an answer.
    """

    samples: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: Mapping[int, float] = {}
    seed: int | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    ignores_eos: bool = False
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()
    keeps_stop: bool = False
    logprobs: int | None = None
    choices: int = 1
    best_of: int | None = None
    shows_special: bool = False
    processor: str | None = None
    truncate: int | None = None


class Embeddings(msgspec.Struct, frozen=True, gc=False):
    """A prompt that has been embedded: `data` is `tokens` rows of `width` float32, little-endian."""

    tokens: int
    width: int
    data: bytes | memoryview


class Generate(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A request to generate: exactly one of `prompts`, `messages`, `ids` and `embeds` is set.

    `messages` are those of a chat, for the model's template, which also gets `tools` and `template_arguments`. If it
    `streams`, the answer is wanted in parts. `echoes`: the text of each prompt comes before what is generated; with
    `scores_prompts` its tokens do as well, each with its log probability behind those before it. `tells_prompts`: the
    first part has the ids of the prompts. `counts_parts`: each part has the usage so far. `adds_special`: whether the
    tokenizer puts its own tokens around a text (None: around prompts, and not around what a template has made).
    `cache_salt`: what is kept of this request is found by those alone that have the same. `adapter`: the name of the
    adapter that changes what the model computes for it. `outputs` are those beyond the text that a client of tensors
    gets.
    """

    prompts: tuple[str, ...] | None = None
    messages: tuple[Mapping[str, object], ...] | None = None
    ids: tuple[tuple[int, ...], ...] | None = None
    embeds: Embeddings | None = None
    sampling: Sampling = Sampling()
    streams: bool = False
    echoes: bool = False
    tools: tuple[Mapping[str, object], ...] | None = None
    template_arguments: Mapping[str, object] = {}
    lease: Lease | None = None
    scores_prompts: bool = False
    tells_prompts: bool = False
    counts_parts: bool = False
    adds_special: bool | None = None
    cache_salt: str = ""
    adapter: str = ""
    outputs: tuple[str, ...] = ()


class TokenText(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One generated token: the text that it completes (empty in the middle of a character), its log probability, and
    the `alternatives` that were asked for, each with id, name and log probability, the likeliest first. Its `name` is
    what the vocabulary has for it, where that may differ from the text: `bytes:\\xe4` for a piece of a character.
    """

    id: int
    text: str
    logprob: float | None = None
    alternatives: tuple[tuple[int, str, float], ...] = ()
    is_special: bool = False
    name: str = ""


class GeneratedChoice(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Continues one sequence by its `text` in whole characters, the `ids` of the tokens, and `tokens` where log
    probabilities were asked for. `finish` is set with its last part; `error` says why it is ERROR.
    """

    index: int
    text: str = ""
    ids: tuple[int, ...] = ()
    tokens: tuple[TokenText, ...] = ()
    finish: Finish | None = None
    error: str = ""


class GenerationUsage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Counts tokens of a whole request: of its prompts (`cached_tokens` of them were kept of earlier ones), and of all
    that it generated. `first_at` and `last_at`: when its first and last token were there, in monotonic seconds of this
    machine.
    """

    prompt_tokens: int
    new_tokens: int
    first_at: float = 0.0
    last_at: float = 0.0
    cached_tokens: int = 0


class Generated(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One part of an answer, or all of it; each sequence at most once. The last part has the `usage`, and the first one
    the ids of the `prompts`, where those are wanted.
    """

    choices: tuple[GeneratedChoice, ...] = ()
    usage: GenerationUsage | None = None
    prompts: tuple[tuple[int, ...], ...] = ()


def joined(parts: Sequence[Generated]) -> Generated:
    """Return one part that says what these say, one after the other."""
    if len(parts) == 1:
        return parts[0]
    found: dict[int, list[GeneratedChoice]] = {}
    for choice in chain.from_iterable(part.choices for part in parts):
        found.setdefault(choice.index, []).append(choice)
    usage = next((part.usage for part in reversed(parts) if part.usage is not None), None)
    prompts = next((part.prompts for part in parts if part.prompts), ())
    return Generated(tuple(_joined(index, of_one) for index, of_one in found.items()), usage, prompts)


def _joined(index: int, choices: Sequence[GeneratedChoice]) -> GeneratedChoice:
    return GeneratedChoice(
        index,
        "".join(choice.text for choice in choices),
        tuple(chain.from_iterable(choice.ids for choice in choices)),
        tuple(chain.from_iterable(choice.tokens for choice in choices)),
        choices[-1].finish,
        choices[-1].error,
    )
