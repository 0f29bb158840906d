"""Reads the JSON of a completion or a chat as a request to generate: every field is used, ignored or refused by name.

Source: OpenAI's reference of both requests; the fields that it lacks (top_k, min_tokens, ...) have the names that other
servers of its API gave them. `docs/openai.md` has the table of all fields, which a test holds against this one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trivium.codecs.chat_answers import NO_EXTRAS, AnswerExtras
from trivium.codecs.chat_messages import read_messages, template_arguments
from trivium.codecs.generation import MOST_PROMPTS, checked_ids
from trivium.codecs.request_fields import RequestFields, field_error
from trivium.codecs.sampling_fields import (
    HIDES_SPECIAL,
    MOST_ALTERNATIVES,
    MOST_TOKENS,
    REPORTED,
    RULES,
    RefusedFields,
    Said,
    integer,
    judge_others,
    number,
    read_sampling,
    sampling_of,
)
from trivium.types.generation import Generate, Sampling
from trivium.types.ignored_fields import IgnoredFields
from trivium.wires.openai.completion_answers import CompletionForm

COMPLETION_TOKENS = 16
"""Tokens of a completion that does not say how many."""

_COMMON: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "n": "choices",
    "stop": "stop",
    "seed": "seed",
    "max_tokens": "max_tokens",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logit_bias": "logit_bias",
}
EXTENSIONS: Mapping[str, str] = {
    "top_k": "top_k",
    "min_p": "min_p",
    "typical_p": "typical_p",
    "repetition_penalty": "repetition_penalty",
    "min_tokens": "min_tokens",
    "ignore_eos": "ignores_eos",
    "stop_token_ids": "stop_ids",
    "include_stop_str_in_output": "keeps_stop",
    "skip_special_tokens": HIDES_SPECIAL,
    "truncate_prompt_tokens": "truncate",
    "logits_processor": "processor",
}
"""Fields that OpenAI's API does not have."""

CHAT_SAMPLING: Mapping[str, str] = {"max_completion_tokens": "max_tokens", **_COMMON, **EXTENSIONS}
COMPLETION_SAMPLING: Mapping[str, str] = {
    **_COMMON,
    "best_of": "best_of",
    "logprobs": "logprobs",
    **EXTENSIONS,
}


def _room(fields: RequestFields, name: str) -> int | None:
    """Return how many tokens a chat may have; None for as many as there is room for, which -1 stands for."""
    found = fields.integer(name, -1, MOST_TOKENS)
    if found == 0:
        raise fields.unfit(
            name, 0, f"an integer from 1 to {MOST_TOKENS}, or -1 for as many as there is room for"
        )
    return None if found == -1 else found


_RULES = {
    **RULES,
    "temperature": number(0, 2),
    "best_of": integer(1, 20),
    "logprobs": integer(0, 5),
}
_CHAT_RULES = {**_RULES, "max_tokens": _room}
_COMPLETION_RULES = {**_RULES, "max_tokens": integer(0, MOST_TOKENS)}

IGNORED = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "user",
    }
)
"""Fields that change nothing of the text: they are for OpenAI's accounts, caches and tiers, or a hint to be faster."""

_LOCAL = "Leave it out: nothing is kept or looked up here."
CHAT_REFUSED: RefusedFields = {
    "tools": ("Leave it out, or send tool_choice none.", ([],)),
    "tool_choice": ("Send none, or leave it out.", ("none",)),
    "functions": ("Leave it out, or send function_call none.", ([],)),
    "function_call": ("Send none, or leave it out.", ("none",)),
    "response_format": (
        'Say in a message which form you want, and send {"type": "text"}.',
        ({"type": "text"},),
    ),
    "modalities": ('Send ["text"], or leave it out.', (["text"],)),
    "audio": ("Leave it out: text alone is answered.", ()),
    "store": (_LOCAL, (False,)),
    "verbosity": ("Say in a message how long the answer shall be.", ("medium",)),
    "web_search_options": (_LOCAL, ()),
    "moderation": (_LOCAL, ()),
    "echo": ("Send the text to /v1/completions.", (False,)),
    "best_of": ("Send n and choose, or use /v1/completions.", (1,)),
}
TOKEN_FIELDS = (
    "return_token_ids",
    "return_tokens_as_token_ids",
    "add_special_tokens",
    "priority",
    "cache_salt",
)
"""Fields about tokens and turns that both requests take: extensions."""
MOST_SALT = 1024
"""Characters of a `cache_salt`."""

WITHOUT_EFFECT: Mapping[str, tuple[object, ...]] = {
    **{name: values for name, values in REPORTED.items() if name not in TOKEN_FIELDS},
    **dict.fromkeys(IGNORED, ()),
    "store": (False,),
    "verbosity": ("medium",),
    "prompt_cache_options": (),
    "include_reasoning": (),
    "mm_processor_kwargs": (),
    "media_io_kwargs": (),
    "session_id": (),
    "kv_transfer_params": (),
    "ec_transfer_params": (),
    "vllm_xargs": (),
    "watermarking": (False,),
    "return_prompt_text": (False,),
    "return_token_offsets": (False,),
    "return_mm_kwargs": (True,),
    "routed_experts_prompt_start": (0,),
    "stream_interval": (1,),
}
"""Fields that are taken and reported, unless requests are to be judged strictly -> values that ask for nothing."""

COMPLETION_REFUSED: RefusedFields = {
    "suffix": ("Leave it out: no model here fills in the middle.", ("",)),
    "response_format": ("Say in the prompt which form you want.", ({"type": "text"},)),
    "messages": ("Send them to /v1/chat/completions.", ()),
    "prompt_embeds": ("Send 'inputs_embeds' to /v2/models/MODEL/generate.", ()),
}
CHAT_FIELDS = (
    "model",
    "messages",
    "stream",
    "stream_options",
    "logprobs",
    "top_logprobs",
    "chat_template_kwargs",
    "reasoning_effort",
    "add_generation_prompt",
    "continue_final_message",
    *TOKEN_FIELDS,
)
COMPLETION_FIELDS = ("model", "prompt", "stream", "stream_options", "echo", *TOKEN_FIELDS)


class OpenAiForm(msgspec.Struct, frozen=True, gc=False):
    """Says how the answer to a request is written: as events or whole, with the usage as an event of its own, with log
    probabilities, how many alternatives of each token, what OpenAI's lacks, and the number of choices of each prompt.
    """

    streams: bool
    tells_usage: bool
    has_logprobs: bool
    alternatives: int = 0
    extras: AnswerExtras = NO_EXTRAS
    choices: int = 1

    @property
    def of_tokens(self) -> CompletionForm:
        """Return what a completion tells of its tokens."""
        return CompletionForm(self.alternatives if self.has_logprobs else None, self.extras, self.choices)


def read_chat(
    document: Mapping[str, Any], ignored: IgnoredFields | None = None
) -> tuple[Generate, OpenAiForm]:
    """Return what a chat asks for. INVALID, naming the field."""
    fields = RequestFields(document, ignored=ignored)
    fields.take("model")
    form = _form(fields, fields.flag("logprobs") or False)
    alternatives = fields.integer("top_logprobs", 0, MOST_ALTERNATIVES)
    if alternatives and not form.has_logprobs:
        raise fields.contradiction("top_logprobs", "it needs 'logprobs' to be true. Send both.")
    messages = read_messages(fields.take("messages"), ignored=ignored)
    arguments = template_arguments(fields)
    for choice, tools in (("tool_choice", "tools"), ("function_call", "functions")):
        if document.get(choice) == "none":
            fields.take(tools)
        elif document.get(choice) == "auto" and not document.get(tools):
            fields.take(choice)
    adds_special, salt = fields.flag("add_special_tokens"), _salt(fields)
    judge_others(fields, CHAT_REFUSED, WITHOUT_EFFECT)
    said = read_sampling(fields, CHAT_SAMPLING, _CHAT_RULES)
    if form.has_logprobs:
        said["logprobs"] = alternatives or 0
    sampling = _sampling(said, fields, CHAT_SAMPLING, {})
    _end(fields, (*CHAT_FIELDS, *CHAT_SAMPLING, *CHAT_REFUSED))
    form = msgspec.structs.replace(form, alternatives=alternatives or 0)
    generate = Generate(
        None,
        messages,
        sampling=sampling,
        streams=form.streams,
        template_arguments=arguments,
        tells_prompts=form.extras.tells_ids,
        counts_parts=form.extras.counts_parts,
        adds_special=adds_special,
        cache_salt=salt,
    )
    return generate, form


def read_completion(
    document: Mapping[str, Any], ignored: IgnoredFields | None = None
) -> tuple[Generate, OpenAiForm]:
    """Return what a completion asks for. INVALID, naming the field."""
    fields = RequestFields(document, ignored=ignored)
    fields.take("model")
    has_logprobs = document.get("logprobs") is not None
    form = _form(fields, has_logprobs)
    prompts, ids = _prompts(fields.take("prompt"))
    echoes = fields.flag("echo") or False
    adds_special, salt = fields.flag("add_special_tokens"), _salt(fields)
    judge_others(fields, COMPLETION_REFUSED, WITHOUT_EFFECT)
    said = read_sampling(fields, COMPLETION_SAMPLING, _COMPLETION_RULES)
    sampling = _sampling(said, fields, COMPLETION_SAMPLING, {"max_tokens": COMPLETION_TOKENS})
    if form.streams and sampling.best_of is not None and sampling.best_of > sampling.choices:
        raise fields.contradiction(
            "best_of", "which is the best is known in the end, so it cannot be streamed."
        )
    _end(fields, (*COMPLETION_FIELDS, *COMPLETION_SAMPLING, *COMPLETION_REFUSED))
    form = msgspec.structs.replace(form, alternatives=sampling.logprobs or 0, choices=sampling.choices)
    generate = Generate(
        prompts,
        None,
        ids,
        sampling=sampling,
        streams=form.streams,
        echoes=echoes,
        scores_prompts=echoes and has_logprobs,
        tells_prompts=form.extras.tells_ids,
        counts_parts=form.extras.counts_parts,
        adds_special=adds_special,
        cache_salt=salt,
    )
    return generate, form


def _salt(fields: RequestFields) -> str:
    """Return what a client shares its kept beginnings under; empty where it says nothing."""
    salt = fields.text("cache_salt")
    if salt is None or 0 < len(salt) <= MOST_SALT:
        return salt or ""
    raise fields.unfit("cache_salt", salt, f"a text of 1 to {MOST_SALT} characters")


def read_priority(document: Mapping[str, Any]) -> int:
    """Return the level of a request: 1 before those that say nothing of it, 3 behind them, 0 where it says nothing.
    INVALID for a priority that is no integer.
    """
    found = RequestFields(document).integer("priority", -(2**63), 2**63 - 1) or 0
    return 0 if not found else 1 if found < 0 else 3


def _form(fields: RequestFields, has_logprobs: bool) -> OpenAiForm:
    streams = fields.flag("stream") or False
    if not streams and "stream_options" in fields:
        raise fields.contradiction("stream_options", "it needs 'stream' to be true. Send both, or neither.")
    options = RequestFields(fields.objects("stream_options"), "stream_options.", ignored=fields.ignored)
    tells_usage = options.flag("include_usage") or False
    counts_parts = (options.flag("continuous_usage_stats") or False) and tells_usage
    options.report({"include_obfuscation": (False,)})
    options.flag("include_obfuscation")
    options.refuse_others(("include_usage", "include_obfuscation", "continuous_usage_stats"))
    fields.take("priority")
    extras = AnswerExtras(
        fields.flag("return_token_ids") or False,
        fields.flag("return_tokens_as_token_ids") or False,
        counts_parts,
    )
    return OpenAiForm(streams, tells_usage, has_logprobs, extras=extras)


def _prompts(value: object) -> tuple[tuple[str, ...] | None, tuple[tuple[int, ...], ...] | None]:
    expected = f"a string, ids of tokens, or a list of at most {MOST_PROMPTS} of them"
    if isinstance(value, str):
        return (value,), None
    if isinstance(value, list) and value:
        if all(isinstance(one, str) for one in value) and len(value) <= MOST_PROMPTS:
            return tuple(value), None
        return None, checked_ids(value if isinstance(value[0], list) else [value], "prompt", expected)
    raise field_error("prompt", f"The field 'prompt' is missing or empty; expected is {expected}.")


def _sampling(
    said: Said, fields: RequestFields, names: Mapping[str, str], defaults: Mapping[str, int]
) -> Sampling:
    """Fill in OpenAI's defaults: tokens are drawn, by a temperature of 1 unless the model has one of its own, and their
    number holds the minimum.
    """
    filled: Said = {key: max(value, said.get("min_tokens", 0)) for key, value in defaults.items()}
    if "temperature" not in said:
        filled["samples"] = True
    return sampling_of({**filled, **said}, fields, names)


def _end(fields: RequestFields, known: tuple[str, ...]) -> None:
    for name in IGNORED:
        fields.take(name)
    fields.refuse_others((*known, *IGNORED))
