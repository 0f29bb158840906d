"""Every field of a request is used, refused by name, or taken and named in a header line and once in the log."""

import inspect
import json
import logging

import pytest

from trivium.codecs.ignored_field_log import MOST_REMEMBERED, IgnoredFieldLog
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generated, GeneratedChoice
from trivium.types.ignored_fields import MOST, IgnoredFields
from trivium.types.operations import ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head
from trivium.wires.openai.http import OpenAiHttp, make

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
PROMPTS = {CHAT: {"messages": [{"role": "user", "content": "hi"}]}, COMPLETION: {"prompt": "hi"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
VALUES = {
    "model": "m",
    "messages": PROMPTS[CHAT]["messages"],
    "prompt": "hi",
    "audio": {"voice": "alloy", "format": "wav"},
    "frequency_penalty": 0.5,
    "function_call": "auto",
    "functions": [{"name": "f"}],
    "logit_bias": {"5": 1},
    "max_completion_tokens": 5,
    "max_tokens": 5,
    "metadata": {"a": "b"},
    "modalities": ["text"],
    "moderation": {"type": "x"},
    "n": 2,
    "parallel_tool_calls": True,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 0.5,
    "prompt_cache_key": "k",
    "prompt_cache_options": {"a": 1},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "high",
    "response_format": {"type": "json_object"},
    "safety_identifier": "s",
    "seed": 1,
    "service_tier": "auto",
    "stop": ["x"],
    "store": True,
    "stream": True,
    "temperature": 0.5,
    "tool_choice": "auto",
    "tools": [TOOL],
    "top_p": 0.5,
    "user": "u",
    "verbosity": "low",
    "web_search_options": {},
    "best_of": 2,
    "echo": True,
    "suffix": "s",
}
TOGETHER = {"stream_options": {"stream": True, "stream_options": {"include_usage": True}}}
REFUSED = {
    CHAT: {"audio", "functions", "moderation", "response_format", "tools", "web_search_options"},
    COMPLETION: {"suffix"},
}
TAKEN = {
    *("metadata", "parallel_tool_calls", "prediction", "prompt_cache_key", "prompt_cache_options", "store"),
    *("prompt_cache_retention", "safety_identifier", "service_tier", "user", "verbosity"),
}


def parameters(path):
    """Name the typed parameters of the installed client for a route."""
    openai = pytest.importorskip("openai")
    kind = openai.resources.chat.Completions if path == CHAT else openai.resources.Completions
    own = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
    return [name for name in inspect.signature(kind.create).parameters if name not in own]


def every():
    return [(path, name) for path in (CHAT, COMPLETION) for name in parameters(path)]


def answered(path, fields, log=None):
    """What is asked for, and the header line of the answer."""
    protocol = OpenAiHttp(lambda: "7", ignored=log or IgnoredFieldLog())
    head = Head("POST", path, "", {})
    body = json.dumps({"model": "m", **PROMPTS[path], **fields}).encode()
    operation, encoder = protocol.decode(head, protocol.head(head), Body(body))
    generate = operation.as_generate(operation.payload, {})
    part = ResponsePart(Generated((GeneratedChoice(0, "a", (1,), (), Finish.EOS),)), final=True, model="m")
    answer = encoder.encode(part)
    assert answer.status == 200
    lines = dict(line.split(": ", 1) for line in answer.fields.decode().splitlines())
    return generate, lines.get("Trivium-Ignored", "")


@pytest.mark.parametrize(("path", "name"), every())
def test_each_parameter_of_the_client_is_used_or_named(path, name):
    values = {"logprobs": True if path == CHAT else 1, "top_logprobs": 2}
    fields = TOGETHER.get(name) or {name: {**values, **VALUES}[name]}
    fields |= {"logprobs": True} if name == "top_logprobs" else {}
    if name in REFUSED[path]:
        with pytest.raises(ServeError) as caught:
            answered(path, fields)
        assert (caught.value.code, caught.value.metadata["field"]) == (Code.INVALID, name)
        return
    _, ignored = answered(path, fields)
    assert ignored == (name if name in TAKEN else "")


OF_VLLM = {
    "add_special_tokens": (True, "used"),
    "allowed_token_ids": ([5], "refused"),
    "bad_words": (["x"], "refused"),
    "cache_salt": ("s", "used"),
    "ec_transfer_params": ({"a": 1}, "taken"),
    "ignore_eos": (True, "used"),
    "include_stop_str_in_output": (True, "used"),
    "kv_transfer_params": ({"a": 1}, "taken"),
    "length_penalty": (0.5, "taken"),
    "logprob_token_ids": ([5], "refused"),
    "min_p": (0.1, "used"),
    "min_tokens": (1, "used"),
    "priority": (-1, "used"),
    "prompt_logprobs": (1, "refused"),
    "repetition_detection": ({"a": 1}, "refused"),
    "repetition_penalty": (1.1, "used"),
    "request_id": ("r", "taken"),
    "return_mm_kwargs": (False, "taken"),
    "return_token_ids": (True, "used"),
    "return_token_offsets": (True, "taken"),
    "return_tokens_as_token_ids": (True, "used"),
    "routed_experts_prompt_start": (1, "taken"),
    "session_id": ("s", "taken"),
    "skip_special_tokens": (False, "used"),
    "spaces_between_special_tokens": (False, "taken"),
    "stop_token_ids": ([5], "used"),
    "stream_interval": (4, "taken"),
    "structured_outputs": ({"regex": "x"}, "refused"),
    "thinking_token_budget": (5, "refused"),
    "top_k": (5, "used"),
    "truncate_prompt_tokens": (5, "used"),
    "truncation_side": ("right", "refused"),
    "use_beam_search": (True, "refused"),
    "vllm_xargs": ({"a": 1}, "taken"),
    "watermarking": (True, "taken"),
}
"""vLLM's fields of both requests that OpenAI's lack, with what becomes of each. Source: the classes of its server."""
OF_VLLM_ALONE = {
    CHAT: {
        "add_generation_prompt": (False, "used"),
        "chat_template": ("{{ x }}", "refused"),
        "chat_template_kwargs": ({"a": 1}, "used"),
        "continue_final_message": (True, "used"),
        "documents": ([{"text": "x"}], "refused"),
        "echo": (True, "refused"),
        "include_reasoning": (False, "taken"),
        "media_io_kwargs": ({"a": {}}, "taken"),
        "mm_processor_kwargs": ({"a": 1}, "taken"),
        "return_prompt_text": (True, "taken"),
    },
    COMPLETION: {"prompt_embeds": ("x", "refused"), "response_format": ({"type": "json_object"}, "refused")},
}


@pytest.mark.parametrize(
    ("path", "name", "value", "fate"),
    [
        (path, name, *told)
        for path, alone in OF_VLLM_ALONE.items()
        for name, told in {**OF_VLLM, **alone}.items()
    ],
)
def test_each_field_of_vllm_is_used_named_or_refused(path, name, value, fate):
    if fate == "refused":
        with pytest.raises(ServeError) as caught:
            answered(path, {name: value})
        assert (caught.value.code, caught.value.metadata["field"]) == (Code.INVALID, name)
        return
    assert answered(path, {name: value})[1] == (name if fate == "taken" else "")


OFF = {
    "tools": [],
    "tool_choice": "none",
    "functions": [],
    "function_call": "none",
    "response_format": {"type": "text"},
    "top_logprobs": 0,
    "stop": [],
    "logit_bias": {},
    "bad_words": [],
    "use_beam_search": False,
    "store": False,
    "user": None,
    "chat_id": None,
    "modalities": ["text"],
}


@pytest.mark.parametrize("name", OFF)
def test_what_means_off_is_taken_without_a_word(name):
    assert answered(CHAT, {name: OFF[name]})[1] == ""
    assert answered(CHAT, OFF)[1] == ""


def test_tools_that_may_not_be_called_are_left_aside():
    assert answered(CHAT, {"tools": [TOOL], "tool_choice": "none"})[1] == ""
    assert answered(CHAT, {"tool_choice": "auto"})[1] == ""


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
@pytest.mark.parametrize(
    "name", ["guided_json", "structured_outputs", "bad_words", "documents", "chat_template", "num_beams"]
)
def test_what_would_change_the_meaning_is_refused_with_the_way_out(path, name):
    with pytest.raises(ServeError, match=f"'{name}'") as caught:
        answered(path, {name: {"a": 1}})
    assert caught.value.metadata["field"] == name


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", "hot"), ("n", 1.5), ("stream", 3), ("stop", [1])]
)
def test_a_wrong_type_stays_an_error(name, value):
    with pytest.raises(ServeError) as caught:
        answered(CHAT, {name: value})
    assert caught.value.metadata["field"] == name


def test_bodies_of_other_clients_are_taken():
    webui = {"chat_id": "1", "session_id": "2", "background_tasks": {}, "features": {}, "keep_alive": "5m"}
    assert answered(CHAT, webui)[1] == "keep_alive, session_id, chat_id, background_tasks, features"
    generate, ignored = answered(
        CHAT,
        {
            "reasoning_effort": "low",
            "continue_final_message": True,
            "add_generation_prompt": False,
            "chat_template_kwargs": {"enable_thinking": False},
            "truncate_prompt_tokens": 5,
            "min_p": 0.1,
            "repetition_penalty": 1.1,
            "max_completion_tokens": 7,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        },
    )
    assert ignored == ""
    assert generate.counts_parts
    assert generate.template_arguments == {
        "reasoning_effort": "low",
        "continue_final_message": True,
        "add_generation_prompt": False,
        "enable_thinking": False,
    }
    assert (generate.sampling.truncate, generate.sampling.min_p, generate.sampling.max_tokens) == (5, 0.1, 7)


def test_names_are_bounded_and_visible():
    names = [f"é,\r\n{'x' * 100}{i}" for i in range(5)] + [f"n{i}" for i in range(100)]
    _, ignored = answered(COMPLETION, dict.fromkeys(names, 1))
    listed = ignored.split(", ")
    assert len(listed) <= MOST
    assert all(
        0 < len(one) <= 64 and one.isascii() and one.isprintable() and " " not in one for one in listed
    )


def test_the_log_says_each_field_once_and_remembers_so_many(caplog):
    log = IgnoredFieldLog()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            answered(CHAT, {"temprature": 1, "chat_id": "x", "user": "u"}, log)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert (
        "'temprature' of a request is not known here, and is ignored. Did its sender mean 'temperature'?"
        in said[1]
    )
    assert "'user' of a request has no effect here" in said[0]
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        for number in range(300):
            ignored = IgnoredFields()
            ignored.add(f"f{number}", ("x",))
            assert log.told("m", ignored) == f"Trivium-Ignored: f{number}\r\n".encode()
    assert len(caplog.records) == MOST_REMEMBERED - 3


@pytest.mark.parametrize("is_strict", [True, False])
def test_the_operator_may_have_them_refused(is_strict):
    protocol = make(ProtocolContext(strict_requests=is_strict))
    head = Head("POST", CHAT, "", {})
    body = json.dumps({"model": "m", **PROMPTS[CHAT], "chat_id": "1", "user": "u"}).encode()
    operation, _ = protocol.decode(head, protocol.head(head), Body(body))
    if not is_strict:
        assert operation.as_generate(operation.payload, {}).messages
        return
    with pytest.raises(ServeError, match="'chat_id' is not known here"):
        operation.as_generate(operation.payload, {})
