"""Reads a request to generate in LMI's form, from any route of predictions: `inputs` with `parameters`, or `messages`.

Source: spec sheet `djl`, sections 11.4 and 11.5, the current form where that differs from the old one. Every field is
used or refused by name. A chat has the fields of OpenAI's, and LMI's defaults for what it does not say.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trivium.codecs.chat_messages import read_messages, template_arguments
from trivium.codecs.generation_errors import wire_names
from trivium.codecs.request_fields import RequestFields, decode_request, field_error
from trivium.codecs.sampling_fields import (
    COMMON_NAMES,
    HIDES_SPECIAL,
    MOST_ALTERNATIVES,
    REPORTED,
    RefusedFields,
    Said,
    judge_others,
    read_sampling,
    sampling_of,
)
from trivium.servers.djl.words.formatters import FORMATTERS, OF_CHATS, Formatter, Shape
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.payload import Raw, RawPart

NEW_TOKENS = 30
"""Tokens of an answer that does not say how many."""

SAMPLING: Mapping[str, str] = {
    "do_sample": "samples",
    **COMMON_NAMES,
    "max_new_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "min_length": "min_tokens",
    "ignore_eos_token": "ignores_eos",
    "ignore_eos": "ignores_eos",
    "stop_sequences": "stop",
    "stop": "stop",
    "stop_token_ids": "stop_ids",
    "include_stop_str_in_output": "keeps_stop",
    "top_n_tokens": "logprobs",
    "n": "choices",
    "best_of": "best_of",
    "skip_special_tokens": HIDES_SPECIAL,
    "truncate": "truncate",
    "truncate_prompt_tokens": "truncate",
    "min_tokens": "min_tokens",
    "logits_processor": "processor",
}
WITHOUT_EFFECT: Mapping[str, tuple[object, ...]] = {
    **REPORTED,
    "use_lru_kv_cache": (False,),
    **dict.fromkeys(("metadata", "parallel_tool_calls", "store"), (False,)),
}
CHAT_SAMPLING: Mapping[str, str] = {"max_completion_tokens": "max_tokens", **SAMPLING}
LMI_NAMES = wire_names(SAMPLING, prompt="inputs", prompts="inputs")
"""What LMI calls the fields of a request to generate, by neutral name."""

_STATIC = "Leave it out, or serve the model with static batching."
REFUSED: RefusedFields = {
    "decoder_input_details": ("Leave it out: of a prompt its text alone is told.", (False,)),
    "prompt_logprobs": ("Leave it out.", (0,)),
    "num_beams": (_STATIC, (1,)),
    "length_penalty": (_STATIC, (1, 1.0)),
    "early_stopping": (_STATIC, (False,)),
    "penalty_alpha": (_STATIC, ()),
    "decoding_strategy": ("Send do_sample.", ("greedy", "sample")),
    "use_lru_kv_cache": ("Leave it out.", (False,)),
    "bad_sequences": ("Use logit_bias against single tokens.", ([],)),
    "logprobs": ("Send details, and top_n_tokens for alternatives.", ()),
    "spaces_between_special_tokens": ("Leave it out.", (True,)),
    "watermark": ("Leave it out.", (False,)),
}
CHAT_REFUSED: RefusedFields = {
    "tools": ("Leave it out, or send tool_choice none.", ([],)),
    "tool_choice": ("Send none, or leave it out.", ("none",)),
    "response_format": ("Say in a message which form you want.", ({"type": "text"},)),
    "decoder_input_details": REFUSED["decoder_input_details"],
    "num_beams": REFUSED["num_beams"],
}
_TOP_REFUSED: RefusedFields = {
    "cached_prompt": ("Put it in front of the inputs.", ("",)),
}
_ADAPTER = ("adapters", "adapter")
_OWN = ("details", "return_full_text", "output_formatter")
_CHAT_OWN = (
    "messages",
    "model",
    "stream",
    "user",
    "logprobs",
    "top_logprobs",
    "output_formatter",
    "chat_template_kwargs",
    "reasoning_effort",
    "add_generation_prompt",
    "continue_final_message",
)


class LmiForm(msgspec.Struct, frozen=True, gc=False):
    """Says how an answer is written: by which formatter, with details, with the prompt in front, and whether in the
    spelling of TGI, or that of the asynchronous mode. Of a chat with log probabilities or not.
    """

    formatter: Formatter = FORMATTERS["json"]
    details: bool = False
    prompt: str = ""
    is_full: bool = False
    alternatives: int = 0
    as_tgi: bool = False
    has_logprobs: bool = False
    as_async: bool = False
    seed: int | None = None


def read_document(raw: Raw) -> dict[str, Any]:
    """Return the JSON of a body. INVALID where it is no object, TOO_LARGE."""
    part = _body(raw)
    if part.name == "inputs":
        return {"inputs": str(part.data, "utf-8", "replace")}
    return decode_request(part.data)


def read_request(
    document: dict[str, Any], parameters: Mapping[str, str], ignored: IgnoredFields | None = None
) -> tuple[Generate, LmiForm]:
    """Return what is asked for of a model that has these parameters. INVALID, naming the field."""
    option = parameters.get("output_formatter", "").strip()
    as_tgi = parameters.get("tgi_compat", "").strip().lower() == "true"
    if "messages" in document:
        return _chat(document, option, as_tgi, ignored)
    return _plain(document, option, as_tgi, is_async(parameters), ignored)


def is_async(parameters: Mapping[str, str]) -> bool:
    """Tell whether a model with these parameters is asked in DJL's asynchronous mode."""
    return parameters.get("async_mode") == "true"


def _body(raw: Raw) -> RawPart:
    """Return the part that is the body: the only one, or the field of a form that is called data."""
    named = [part for part in raw.parts if part.name in ("", "data", "body", "inputs")]
    if len(named) != 1:
        raise ServeError(
            Code.INVALID,
            'The request is no JSON. Send an object with "inputs", and "parameters" if you have some.',
        )
    return named[0]


def _plain(
    document: dict[str, Any], option: str, as_tgi: bool, as_async: bool, ignored: IgnoredFields | None
) -> tuple[Generate, LmiForm]:
    top = RequestFields(document, ignored=ignored)
    for name, (way_out, neutral) in _TOP_REFUSED.items():
        top.refuse(name, way_out, *neutral)
    adapter = _adapter(top)
    inputs = top.take("inputs")
    if not isinstance(inputs, str) or not inputs:
        raise top.unfit("inputs", inputs, "a text that is not empty")
    streams = top.flag("stream") or False
    fields = RequestFields(top.objects("parameters"), "parameters.", ignored=ignored)
    asked = fields.text("output_formatter") or top.text("output_formatter") or ""
    if as_async:
        top.take("model")
    top.refuse_others(("inputs", "parameters", "stream", "messages", *_ADAPTER, *_TOP_REFUSED))
    formatter = _formatter(asked, option, streams, as_tgi)
    details = fields.flag("details")
    details = as_tgi if details is None else details  # as in the original: TGI's clients read them
    is_full = fields.flag("return_full_text") or False
    said = read_sampling(fields, SAMPLING)
    judge_others(fields, REFUSED, WITHOUT_EFFECT)
    alternatives = said.pop("logprobs", 0)
    if formatter.shape is Shape.LMI and (details or formatter.streams):
        said["logprobs"] = alternatives
    sampling = sampling_of((_filled_async if as_async else _filled)(said), fields, SAMPLING)
    fields.refuse_others((*_OWN, *SAMPLING, *REFUSED))
    many = sampling.choices if sampling.best_of is None else max(sampling.best_of, sampling.choices)
    if many > 1 and (formatter.streams or formatter.shape is Shape.VENDOR):
        raise fields.contradiction(
            "n", f"the formatter {formatter.name} writes one text alone. Ask for json."
        )
    generate = Generate((inputs,), sampling=sampling, streams=formatter.streams, adapter=adapter)
    form = LmiForm(
        formatter,
        details,
        inputs,
        is_full,
        alternatives,
        as_tgi or as_async,
        as_async=as_async,
        seed=sampling.seed,
    )
    return generate, form


def _chat(
    document: dict[str, Any], option: str, as_tgi: bool, ignored: IgnoredFields | None
) -> tuple[Generate, LmiForm]:
    fields = RequestFields(document, ignored=ignored)
    adapter = _adapter(fields)
    messages = read_messages(fields.take("messages"), ignored=ignored)
    arguments = template_arguments(fields)
    fields.take("model")
    fields.report({"user": ()})
    fields.take("user")
    streams = fields.flag("stream") or False
    formatter = _formatter(fields.text("output_formatter") or "", option, streams, as_tgi)
    if streams and formatter.name == "json":
        formatter = FORMATTERS["jsonlines"]
    formatter = FORMATTERS[OF_CHATS.get(formatter.name, formatter.name)]
    has_logprobs = fields.flag("logprobs") or False
    alternatives = fields.integer("top_logprobs", 0, MOST_ALTERNATIVES)
    if alternatives and not has_logprobs:
        raise fields.contradiction("top_logprobs", "it needs 'logprobs' to be true. Send both.")
    if document.get("tool_choice") == "none":
        fields.take("tools")
    judge_others(fields, CHAT_REFUSED, WITHOUT_EFFECT)
    said = read_sampling(fields, CHAT_SAMPLING)
    if has_logprobs:
        said["logprobs"] = alternatives or 0
    sampling = sampling_of(_filled(said), fields, CHAT_SAMPLING)
    fields.refuse_others((*_CHAT_OWN, *_ADAPTER, *CHAT_SAMPLING, *CHAT_REFUSED))
    generate = Generate(
        None,
        messages,
        sampling=sampling,
        streams=formatter.streams,
        template_arguments=arguments,
        adapter=adapter,
    )
    return generate, LmiForm(formatter, alternatives=alternatives or 0, has_logprobs=has_logprobs)


def _adapter(fields: RequestFields) -> str:
    """Return the adapter that a request names: by `adapters`, one for its one text, or by `adapter`."""
    found = {name: fields.take(name) for name in _ADAPTER}
    said: set[str] = set()
    for name, value in found.items():
        names = value if isinstance(value, list) else [] if value is None else [value]
        if len(names) > 1 or not all(isinstance(one, str) for one in names):
            raise fields.unfit(name, value, "the name of one adapter, or a list of one")
        said.update(one for one in names if one)
    if len(said) > 1:
        raise fields.contradiction("adapters", "'adapter' names another one. Send one of them.")
    return next(iter(said), "")


def _formatter(asked: str, option: str, streams: bool, as_tgi: bool) -> Formatter:
    """Return the request's own formatter, else the model's, else what the request's `stream` stands for."""
    found = asked or option or ("json" if not streams else "sse" if as_tgi else "jsonlines")
    if found not in FORMATTERS:
        whose = "request" if asked else "model"
        words = f"The output_formatter of the {whose} is {found[:40]!r}; expected is one of {', '.join(FORMATTERS)}."
        raise field_error("output_formatter", words, reasons.UNSERVED_FIELD)
    return FORMATTERS[found]


def _filled(said: Said) -> Said:
    """Fill in LMI's defaults: 30 tokens, and the likeliest ones unless a temperature is given or do_sample is true."""
    samples = said.get("samples")
    if samples is None:
        samples = said.get("temperature", 0) > 0
    tokens = max(NEW_TOKENS, said.get("min_tokens", 0))
    return {"max_tokens": tokens, **said, "samples": samples}


def _filled_async(said: Said) -> Said:
    """Fill in the defaults of the asynchronous mode: 30 tokens, which are drawn unless do_sample is false or the
    temperature is 0.
    """
    samples = said.get("samples")
    if samples is not False:
        samples = None if "temperature" in said else True
    tokens = max(NEW_TOKENS, said.get("min_tokens", 0))
    return {"max_tokens": tokens, **said, "samples": samples}
