"""Describes the routes of OpenAI's API to programs: what each takes and answers. Pure."""

from collections.abc import Mapping
from typing import Any

from trivium.codecs.routes import described
from trivium.types.described import (
    ANY_KIND,
    ANYTHING,
    EVENTS_KIND,
    JSON_KIND,
    NUMBER,
    SWITCH,
    TEXT,
    WHOLE,
    Answers,
    DescribedArgument,
    DescribedBody,
    DescribedVerb,
    JsonSchema,
    WireDescription,
    json_body,
    list_of,
    object_of,
)
from trivium.types.protocol_context import ProtocolContext
from trivium.wires.openai.request import CHAT_SAMPLING, COMPLETION_SAMPLING
from trivium.wires.openai.routes import ROWS, OpenAiVerb

_ERROR = object_of(
    {
        "error": object_of(
            {
                "message": TEXT,
                "type": TEXT,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            }
        )
    }
)
_ERRORS: Answers = {"4XX": json_body(_ERROR), "5XX": json_body(_ERROR)}
_FIELDS: Mapping[str, JsonSchema] = {
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "n": {"type": "integer", "minimum": 1},
    "stop": {"anyOf": [TEXT, list_of(TEXT)]},
    "seed": WHOLE,
    "max_tokens": WHOLE,
    "max_completion_tokens": WHOLE,
    "presence_penalty": {"type": "number", "minimum": -2, "maximum": 2},
    "frequency_penalty": {"type": "number", "minimum": -2, "maximum": 2},
    "logit_bias": {"type": "object", "additionalProperties": NUMBER},
    "best_of": WHOLE,
    "logprobs": WHOLE,
    "top_k": WHOLE,
    "min_p": NUMBER,
    "typical_p": NUMBER,
    "repetition_penalty": NUMBER,
    "min_tokens": WHOLE,
    "ignore_eos": SWITCH,
    "stop_token_ids": list_of(WHOLE),
    "include_stop_str_in_output": SWITCH,
    "skip_special_tokens": SWITCH,
    "truncate_prompt_tokens": WHOLE,
    "logits_processor": TEXT,
}
_STREAM: Mapping[str, JsonSchema] = {
    "stream": SWITCH,
    "stream_options": object_of({}, {"include_usage": SWITCH}),
}
_MESSAGE = object_of(
    {"role": {"enum": ["developer", "system", "user", "assistant", "tool"]}},
    {"content": {"anyOf": [TEXT, list_of({"type": "object"}), {"type": "null"}]}, "name": TEXT},
)
_MESSAGES = {**list_of(_MESSAGE), "minItems": 1}
_IDS = list_of(WHOLE)
CHAT: JsonSchema = {
    **object_of(
        {"messages": _MESSAGES},
        {
            "model": TEXT,
            **_STREAM,
            **{name: _FIELDS[name] for name in CHAT_SAMPLING},
            "logprobs": SWITCH,
            "top_logprobs": WHOLE,
        },
    ),
    "title": "ChatRequest",
}
COMPLETION: JsonSchema = {
    **object_of(
        {"prompt": {"anyOf": [TEXT, list_of(TEXT), _IDS, list_of(_IDS)]}},
        {"model": TEXT, **_STREAM, "echo": SWITCH, **{name: _FIELDS[name] for name in COMPLETION_SAMPLING}},
    ),
    "title": "CompletionRequest",
}
_USAGE = {
    **object_of({"prompt_tokens": WHOLE, "completion_tokens": WHOLE, "total_tokens": WHOLE}),
    "type": ["object", "null"],
}
_FINISH = {"finish_reason": {"type": ["string", "null"]}, "logprobs": {"type": ["object", "null"]}}


def _answer(kind: str, said: Mapping[str, JsonSchema]) -> JsonSchema:
    choice = object_of({"index": WHOLE, **said, **_FINISH})
    head = {"id": TEXT, "object": {"const": kind}, "created": WHOLE, "model": TEXT}
    return object_of({**head, "choices": list_of(choice), "usage": _USAGE})


def _generated(answer: JsonSchema) -> Answers:
    kinds: Mapping[str, Any] = {JSON_KIND: answer, EVENTS_KIND: ANYTHING}
    own = DescribedBody({ANY_KIND: ANYTHING}, "What a handler says that takes the body as it came.")
    return {"200": DescribedBody(kinds, "Whole, or with `stream` as events."), "default": own}


_SAID = object_of({"role": TEXT, "content": {"type": ["string", "null"]}})
_MODEL = object_of({"id": TEXT, "object": {"const": "model"}, "created": WHOLE, "owned_by": TEXT})
_HEALTH: Answers = {"200": None, "503": None}
_VERBS: Mapping[str, DescribedVerb] = {
    OpenAiVerb.CHAT: DescribedVerb(
        summary="Answer a conversation",
        body=json_body(CHAT),
        answers=_generated(_answer("chat.completion", {"message": _SAID})),
    ),
    OpenAiVerb.COMPLETION: DescribedVerb(
        summary="Go on with a text",
        body=json_body(COMPLETION),
        answers=_generated(_answer("text_completion", {"text": TEXT})),
    ),
    OpenAiVerb.MODELS: DescribedVerb(
        summary="Models that these routes can name",
        arguments=(DescribedArgument("all", TEXT, "`true`: also those that take tensors alone"),),
        answers={"200": json_body(object_of({"object": {"const": "list"}, "data": list_of(_MODEL)}))},
    ),
    OpenAiVerb.MODEL: DescribedVerb(summary="One model", answers={"200": json_body(_MODEL)}),
    OpenAiVerb.TOKENIZE: DescribedVerb(
        summary="The tokens of a text or a conversation",
        body=json_body(object_of({}, {"model": TEXT, "prompt": TEXT, "messages": _MESSAGES})),
        answers={
            "200": json_body(object_of({"count": WHOLE, "max_model_len": WHOLE, "tokens": _IDS})),
            "default": DescribedBody({ANY_KIND: ANYTHING}, "What a handler says."),
        },
    ),
    OpenAiVerb.DETOKENIZE: DescribedVerb(
        summary="The text of tokens",
        body=json_body(object_of({"tokens": _IDS}, {"model": TEXT})),
        answers={
            "200": json_body(object_of({"prompt": TEXT})),
            "default": DescribedBody({ANY_KIND: ANYTHING}, "What a handler says."),
        },
    ),
    OpenAiVerb.HEALTH: DescribedVerb(summary="Are all models ready?", answers=_HEALTH),
    OpenAiVerb.VERSION: DescribedVerb(
        summary="The server's version", answers={"200": json_body(object_of({"version": TEXT}))}
    ),
}


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    return WireDescription(
        "OpenAI",
        described(ROWS, _VERBS),
        _ERRORS,
        "Chats and completions of language models; the body names the model.",
    )
