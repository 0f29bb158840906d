import json
import re
from pathlib import Path

import pytest

from trivium.codecs.request_fields import MOST_BYTES
from trivium.codecs.sampling_fields import MEANINGFUL
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.generation import (
    Finish,
    Generate,
    Generated,
    GeneratedChoice,
    GenerationUsage,
    Sampling,
    TokenText,
)
from trivium.types.operations import Describe, List, Listing, ResponsePart, VersionStatus
from trivium.types.payload import Raw, RawPart
from trivium.types.state import VersionState
from trivium.types.wire import NOTHING_YET, Body, Head
from trivium.wires.openai import request
from trivium.wires.openai.errors import TABLE
from trivium.wires.openai.http import COSTLY_BYTES, OpenAiHttp

PROTOCOL = OpenAiHttp(lambda: "7", lambda: 5.5)
CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "hi"}]
NONE = Sampling(samples=True)


def head(path=CHAT, method="POST", query="", **headers):
    fields = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return Head(method, path, query, fields)


def ask(path, document, protocol=PROTOCOL, method="POST", **headers):
    request_head = head(path, method, **headers)
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return protocol.decode(request_head, protocol.head(request_head), Body(body))


def read(path, fields):
    """What is asked for, and the encoder that has read it."""
    operation, encoder = ask(path, {"model": "m", **fields})
    return operation.as_generate(operation.payload, {}), encoder


def chat(**fields):
    return read(CHAT, {"messages": MESSAGES, **fields})


def completion(**fields):
    return read(COMPLETION, {"prompt": "hi", **fields})


def body(answer):
    content = b"".join(answer.buffers)
    assert len(content) == answer.size
    return content


def events(*answers):
    return [
        event.removeprefix("data: ") for event in b"".join(map(body, answers)).decode().split("\n\n")[:-1]
    ]


def refusal(call):
    with pytest.raises(ServeError) as caught:
        call()
    return caught.value


# -- requests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "sampling"),
    [
        ({}, NONE),
        ({"temperature": 0}, Sampling(temperature=0.0)),
        ({"max_tokens": 5}, Sampling(samples=True, max_tokens=5)),
        ({"max_completion_tokens": 5, "max_tokens": 5}, Sampling(samples=True, max_tokens=5)),
        ({"logprobs": True}, Sampling(samples=True, logprobs=0)),
        ({"logprobs": True, "top_logprobs": 3}, Sampling(samples=True, logprobs=3)),
        ({"stop": "x", "n": 2}, Sampling(samples=True, stop=("x",), choices=2)),
        ({"top_k": -1, "ignore_eos": True}, Sampling(samples=True, top_k=0, ignores_eos=True)),
        ({"logits_processor": "f.py:P"}, Sampling(samples=True, processor="f.py:P")),
        ({"user": 5, "store": False, "tools": [], "modalities": ["text"], "audio": None}, NONE),
        ({"tools": [{"type": "function"}], "tool_choice": "none"}, NONE),
        ({"functions": [{"name": "f"}], "function_call": "none"}, NONE),
        ({"response_format": {"type": "text"}, "verbosity": "medium"}, NONE),
    ],
)
def test_chats(fields, sampling):
    generate, _ = chat(**fields)
    assert generate == Generate(None, tuple(MESSAGES), sampling=sampling)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Generate(("hi",), sampling=Sampling(samples=True, max_tokens=16))),
        (
            {"prompt": ["a", "b"], "echo": True, "n": 2, "best_of": 3},
            Generate(
                ("a", "b"),
                sampling=Sampling(samples=True, max_tokens=16, choices=2, best_of=3),
                echoes=True,
            ),
        ),
        ({"prompt": [1, 2]}, Generate(ids=((1, 2),), sampling=Sampling(samples=True, max_tokens=16))),
        (
            {"prompt": [[1], [2]]},
            Generate(ids=((1,), (2,)), sampling=Sampling(samples=True, max_tokens=16)),
        ),
        ({"logprobs": 0}, Generate(("hi",), sampling=Sampling(samples=True, max_tokens=16, logprobs=0))),
        (
            {"min_tokens": 40, "stream": True},
            Generate(("hi",), sampling=Sampling(samples=True, max_tokens=40, min_tokens=40), streams=True),
        ),
        ({"suffix": ""}, Generate(("hi",), sampling=Sampling(samples=True, max_tokens=16))),
    ],
)
def test_completions(fields, expected):
    assert completion(**fields)[0] == expected


@pytest.mark.parametrize(
    ("call", "fields", "field"),
    [
        (chat, {"temperature": 2.5}, "temperature"),
        (chat, {"temperature": "0"}, "temperature"),
        (chat, {"n": 0}, "n"),
        (chat, {"n": 129}, "n"),
        (chat, {"max_tokens": 0}, "max_tokens"),
        (chat, {"max_tokens": 4, "max_completion_tokens": 5}, "max_tokens"),
        (chat, {"logprobs": 3}, "logprobs"),
        (chat, {"top_logprobs": 3}, "top_logprobs"),
        (chat, {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        (chat, {"stream": 1}, "stream"),
        (chat, {"stream_options": {"include_usage": True}}, "stream_options"),
        (chat, {"stream": True, "stream_options": {"usage": True}}, "stream_options.usage"),
        (chat, {"stream": True, "stream_options": []}, "stream_options"),
        (chat, {"stop": [1]}, "stop"),
        (chat, {"logit_bias": {"a": 1}}, "logit_bias"),
        (chat, {"messages": []}, "messages"),
        (chat, {"messages": "hi"}, "messages"),
        (chat, {"prompt": "hi"}, "prompt"),
        (chat, {"chat_template_kwargs": []}, "chat_template_kwargs"),
        (chat, {"tools": [{"type": "function"}]}, "tools"),
        (chat, {"tool_choice": "required"}, "tool_choice"),
        (chat, {"add_generation_prompt": True, "continue_final_message": True}, "continue_final_message"),
        (chat, {"tools": [{}], "tool_choice": "required"}, "tools"),
        (chat, {"response_format": {"type": "json_schema"}}, "response_format"),
        (chat, {"modalities": ["text", "audio"]}, "modalities"),
        (chat, {"audio": {"voice": "a"}}, "audio"),
        (chat, {"store": True}, "store"),
        (chat, {"reasoning_effort": 5}, "reasoning_effort"),
        (chat, {"min_tokens": 5, "max_tokens": 4}, "min_tokens"),
        (completion, {"prompt": None}, "prompt"),
        (completion, {"prompt": []}, "prompt"),
        (completion, {"prompt": ["a", 1]}, "prompt"),
        (completion, {"prompt": [1, "a"]}, "prompt"),
        (completion, {"prompt": [True]}, "prompt"),
        (completion, {"prompt": [[]]}, "prompt"),
        (completion, {"prompt": ["a"] * 2049}, "prompt"),
        (completion, {"logprobs": 6}, "logprobs"),
        (completion, {"logprobs": True}, "logprobs"),
        (completion, {"echo": True, "logprobs": 1}, "echo"),
        (completion, {"n": 3, "best_of": 2}, "best_of"),
        (completion, {"best_of": 2, "stream": True}, "best_of"),
        (completion, {"suffix": "x"}, "suffix"),
        (completion, {"messages": MESSAGES}, "messages"),
        (completion, {"chat_template_kwargs": {}}, "chat_template_kwargs"),
    ],
)
def test_refusals_name_the_field(call, fields, field):
    error = refusal(lambda: call(**fields))
    assert (error.code, error.metadata["field"]) == (Code.INVALID, field)
    document = json.loads(body(PROTOCOL.refuse(error)))["error"]
    assert (document["param"], document["type"]) == (field, "invalid_request_error")
    assert document["code"] == ("unsupported_parameter" if error.reason == reasons.UNSERVED_FIELD else None)


def test_a_body_goes_to_a_model_that_generates_nothing_as_it_came():
    text = b'{"model": "m", "whatever": [1]}'
    operation, _ = ask(CHAT, text, x_own="1")
    part = RawPart(text, "application/json")
    assert (operation.model, operation.id) == ("m", "7")
    assert operation.payload == Raw((part,), {"x-own": "1"}, path="v1/chat/completions")


@pytest.mark.parametrize(
    ("text", "headers", "code"),
    [
        (b"", {}, Code.INVALID),
        (b"{", {}, Code.INVALID),
        (b"[]", {}, Code.INVALID),
        (b'{"model": 5}', {}, Code.INVALID),
        (b"{}", {}, Code.NOT_FOUND),
        (b'{"model": ""}', {}, Code.NOT_FOUND),
        (b"{}", {"content_encoding": "gzip"}, Code.UNSUPPORTED_MEDIA),
        (b'{"model":"m","x":"' + b"a" * MOST_BYTES + b'"}', {}, Code.TOO_LARGE),
        (b'{"model":"m","prompt":[' + b"1," * 2**19 + b"1]}", {}, Code.TOO_LARGE),
        (b'{"model":"m","prompt":"' + b"[" * 2**18, {}, Code.INVALID),
    ],
)
def test_bodies_that_cannot_be_read(text, headers, code):
    assert refusal(lambda: ask(CHAT, text, **headers)).code is code


def test_many_ids_are_read_elsewhere():
    assert PROTOCOL.is_costly(head(), bytes(COSTLY_BYTES + 1))
    assert not PROTOCOL.is_costly(head(), bytes(100))


def test_the_only_model_may_be_left_out_where_that_is_allowed():
    operation, _ = ask(CHAT, {}, OpenAiHttp(lambda: "7", takes_only=True))
    assert operation.model == ""


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/v1/embeddings", Code.NOT_FOUND),
        ("GET", "/v1", Code.NOT_FOUND),
        ("GET", "/v1/models/", Code.NOT_FOUND),
        ("POST", "/v1/models/m:predict", Code.METHOD),
        ("GET", CHAT, Code.METHOD),
        ("DELETE", "/v1/models/m", Code.METHOD),
    ],
)
def test_routes_that_are_not_there(method, path, code):
    assert refusal(lambda: PROTOCOL.head(head(path, method))).code is code


# -- answers -----------------------------------------------------------------------------------------------


def said(text, finish=None, index=0, usage=None, tokens=()):
    return Generated((GeneratedChoice(index, text, (1,), tokens, finish),), usage)


def part(payload, final=True):
    return ResponsePart(payload, final=final, model="m", version="1")


USAGE = GenerationUsage(3, 2)


def test_a_whole_chat_is_written_once_it_is_there():
    _, encoder = chat()
    assert encoder.encode(part(said("He"), False)) is NOTHING_YET
    answer = encoder.encode(part(said("y", Finish.EOS, usage=USAGE)))
    assert json.loads(body(answer)) == {
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hey", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


def test_a_streamed_chat():
    _, encoder = chat(stream=True, stream_options={"include_usage": True})
    first = encoder.encode(part(said("H\n"), False))
    silent = encoder.encode(part(Generated((GeneratedChoice(0, "", (2,)),)), False))
    last = encoder.encode(part(said("", Finish.LENGTH, usage=USAGE)))
    assert b"text/event-stream" in first.fields
    assert (silent.size, silent.final, last.fields) == (0, False, b"")
    *chunks, done = events(first, silent, last)
    assert done == "[DONE]"
    documents = [json.loads(chunk) for chunk in chunks]
    assert all(document["object"] == "chat.completion.chunk" for document in documents)
    assert [document["choices"] for document in documents] == [
        [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        for delta, reason in (
            ({"role": "assistant", "content": ""}, None),
            ({"content": "H\n"}, None),
            ({}, "length"),
        )
    ] + [[]]
    assert [document["usage"] for document in documents] == [None, None, None, documents[-1]["usage"]]
    assert documents[-1]["usage"]["total_tokens"] == 5


TOKENS = (TokenText(1, "é", -0.25, ((1, "é", -0.25), (2, "a", float("-inf")))),)


def test_log_probabilities():
    _, encoder = chat(logprobs=True, top_logprobs=2)
    answer = encoder.encode(part(said("é", Finish.STOP, tokens=TOKENS)))
    (token,) = json.loads(body(answer))["choices"][0]["logprobs"]["content"]
    assert token == {
        "token": "é",
        "logprob": -0.25,
        "bytes": [195, 169],
        "top_logprobs": [
            {"token": "é", "logprob": -0.25, "bytes": [195, 169]},
            {"token": "a", "logprob": -9999.0, "bytes": [97]},
        ],
    }
    _, encoder = completion(logprobs=2, stream=True)
    chunks = events(
        encoder.encode(part(said("é", tokens=TOKENS), False)),
        encoder.encode(part(said("é", Finish.STOP, tokens=TOKENS))),
    )
    found = [json.loads(chunk)["choices"][0]["logprobs"] for chunk in chunks[:-1]]
    assert found[0] == {
        "tokens": ["é"],
        "token_logprobs": [-0.25],
        "top_logprobs": [{"é": -0.25, "a": -9999.0}],
        "text_offset": [0],
    }
    assert found[1]["text_offset"] == [1]


def test_a_whole_completion_is_in_order():
    _, encoder = completion(n=2)
    whole = Generated(
        (GeneratedChoice(1, "b", finish=Finish.STOP), GeneratedChoice(0, "a", finish=Finish.EOS))
    )
    assert [choice["text"] for choice in json.loads(body(encoder.encode(part(whole))))["choices"]] == [
        "a",
        "b",
    ]


def test_what_is_long_to_write_is_written_elsewhere():
    _, encoder = chat(logprobs=True)
    costly = encoder.encode(part(said("é" * 100, Finish.STOP, tokens=TOKENS * 100)))
    assert costly.status == 0
    assert len(json.loads(body(costly.write()))["choices"][0]["logprobs"]["content"]) == 100


def test_failures_in_front_of_and_behind_the_first_event():
    failed = ResponsePart(error=ServeError(Code.MODEL_FAILED, "why"))
    _, encoder = chat(stream=True)
    answer = encoder.encode(failed)
    assert (answer.status, json.loads(body(answer))["error"]["message"]) == (500, "why")
    for last in (failed, part(Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),)))):
        _, encoder = chat(stream=True)
        encoder.encode(part(said("a"), False))
        answer = encoder.encode(last)
        assert (answer.status, answer.final) == (200, True)
        (event,) = events(answer)
        assert json.loads(event)["error"]["message"] == "why"
    _, encoder = chat(n=2)
    assert encoder.encode(last).status == 500


def test_a_handler_s_answer_goes_out_as_it_is():
    _, encoder = ask(CHAT, {"model": "m"})
    raw = Raw((RawPart(b"teapot", "text/plain"),), {"X-Own": "1", "Connection": "x"}, status=418)
    answer = encoder.encode(part(raw, False))
    assert (answer.status, answer.fields) == (
        418,
        b"x-request-id: 7\r\nContent-Type: text/plain\r\nX-Own: 1\r\n",
    )
    assert body(encoder.encode(part(Raw((RawPart(b"!"),))))) == b"!"


def test_the_error_object():
    for code in Code:
        assert TABLE.rows[code].status >= 400
    full = ServeError(Code.QUEUE_FULL, "full", retry_after=0.0)
    answer = PROTOCOL.refuse(full)
    assert (answer.status, b"Retry-After: 1\r\n" in answer.fields) == (429, True)
    unknown = ServeError(Code.NOT_FOUND, "none", info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model="m"))
    assert json.loads(body(PROTOCOL.refuse(unknown)))["error"]["code"] == "model_not_found"


def test_models():
    operation, encoder = ask("/v1/models", b"", method="GET")
    assert operation == List(ready=True)
    rows = (
        VersionStatus("b", "1", VersionState.READY),
        VersionStatus("a", "1", VersionState.READY),
        VersionStatus("a", "2", VersionState.READY),
        VersionStatus("c", "1", VersionState.FAILED),
    )
    document = json.loads(body(encoder.encode(ResponsePart(answer=Listing(rows)))))
    assert document["object"] == "list"
    assert document["data"] == [
        {"id": name, "object": "model", "created": 5, "owned_by": "trivium"} for name in ("a", "b")
    ]
    operation, encoder = ask("/v1/models/a%20b", b"", method="GET")
    assert operation == Describe("a b")
    assert encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "none"))).status == 404


# -- the manual --------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[4] / "docs" / "openai.md").read_text()


def documented(title):
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_field_is_in_the_table_of_the_manual():
    extensions = {"logits_processor", *request.EXTENSIONS}
    assert documented("Fields without effect") == set(request.WITHOUT_EFFECT)
    assert documented("Refused in either") == set(MEANINGFUL)
    assert documented("Extensions") == extensions
    known = {*request.CHAT_FIELDS, *request.CHAT_SAMPLING, *request.CHAT_REFUSED}
    assert documented("Fields of a chat") == known - extensions - set(request.WITHOUT_EFFECT)
    known = {*request.COMPLETION_FIELDS, *request.COMPLETION_SAMPLING, *request.COMPLETION_REFUSED}
    assert documented("Fields of a completion") == known - extensions
