import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

from trivium.codecs.request_fields import MOST_BYTES
from trivium.codecs.sampling_fields import MEANINGFUL
from trivium.types import reasons
from trivium.types.adapters import found
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
from trivium.types.operations import (
    Describe,
    DescribeAll,
    List,
    Listing,
    ModelDescription,
    ModelDescriptions,
    Readiness,
    Ready,
    ResponsePart,
    VersionStatus,
)
from trivium.types.payload import PayloadKind, Raw, RawPart
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


def ask(path, document, protocol=PROTOCOL, method="POST", query="", **headers):
    request_head = head(path, method, query, **headers)
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
        ({"max_tokens": -1}, Sampling(samples=True)),
        ({"max_completion_tokens": 5, "max_tokens": -1}, Sampling(samples=True, max_tokens=5)),
        ({"stop": ["x"] * 64}, Sampling(samples=True, stop=("x",) * 64)),
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
        (
            {"echo": True, "logprobs": 1, "max_tokens": 0},
            Generate(
                ("hi",),
                sampling=Sampling(samples=True, max_tokens=0, logprobs=1),
                echoes=True,
                scores_prompts=True,
            ),
        ),
        (
            {"return_token_ids": True, "add_special_tokens": False, "truncate_prompt_tokens": -1},
            Generate(
                ("hi",),
                sampling=Sampling(samples=True, max_tokens=16, truncate=-1),
                tells_prompts=True,
                adds_special=False,
            ),
        ),
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
        (chat, {"max_tokens": -2}, "max_tokens"),
        (chat, {"stop": ["x"] * 65}, "stop"),
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
        (completion, {"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
        (completion, {"prompt_embeds": "x"}, "prompt_embeds"),
        (chat, {"return_token_ids": 1}, "return_token_ids"),
        (completion, {"priority": "high"}, "priority"),
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


@pytest.mark.parametrize("streams", [False, True])
def test_the_only_model_may_be_left_out_and_the_answer_names_it(streams):
    operation, encoder = ask(CHAT, {"messages": MESSAGES, "stream": streams})
    assert operation.model == ""
    operation.as_generate(operation.payload, {})
    part = Generated((GeneratedChoice(0, "a", (6,), finish=Finish.EOS),))
    answer = encoder.encode(ResponsePart(part, model="tiny"))
    text = events(answer)[0] if streams else body(answer)
    assert json.loads(text)["model"] == "tiny"


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


USAGE = GenerationUsage(3, 2, cached_tokens=1)


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
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "total_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 1},
        },
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


def row(model, version, state=VersionState.READY, takes=PayloadKind.GENERATE, **facts):
    return VersionStatus(model, version, state, is_default=True, takes=frozenset({takes}), **facts)


ROWS = (
    row("b", "1", aliases=("lmi", "both", "a"), context=64),
    row("a", "1", takes=PayloadKind.RAW),
    row("a", "2", takes=PayloadKind.RAW),
    row("c", "1", VersionState.FAILED, aliases=("c2",)),
    row("onnx", "1", takes=PayloadKind.TENSORS, aliases=("both",)),
)


def test_models():
    operation, encoder = ask("/v1/models", b"", method="GET")
    assert operation == List(ready=True)
    document = json.loads(body(encoder.encode(ResponsePart(answer=Listing(ROWS)))))
    assert document["object"] == "list"
    plain = {"object": "model", "created": 5, "owned_by": "trivium"}
    served = {**plain, "root": "b", "parent": None, "max_model_len": 64}
    expected = [{"id": "a", **plain}, {"id": "b", **served}, {"id": "lmi", **served}]
    assert document["data"] == expected
    _, encoder = ask("/v1/models", b"", method="GET", query="all=true")
    document = json.loads(body(encoder.encode(ResponsePart(answer=Listing(ROWS)))))
    assert document["data"] == [*expected, {"id": "onnx", **plain}]
    operation, encoder = ask("/v1/models/a%20b", b"", method="GET")
    assert operation == Describe("a b", in_full=True)
    assert encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "none"))).status == 404


def test_adapters_are_listed_with_their_model():
    calls = tuple(found(name, f"/adapters/{name}") for name in ("eng", "b", "lmi", "both"))
    rows = (
        row("b", "1", aliases=("lmi",), context=64, adapters=calls),
        row("c", "1", context=8, adapters=calls[3:]),
    )
    _, encoder = ask("/v1/models", b"", method="GET")
    listed = json.loads(body(encoder.encode(ResponsePart(answer=Listing(rows)))))["data"]
    told = {one["id"]: (one["parent"], one["root"]) for one in listed}
    plain = {"b": (None, "b"), "lmi": (None, "b"), "c": (None, "c")}
    assert told == plain | {"eng": ("b", "/adapters/eng")}, (
        "an own name, and one of two models, is no adapter's"
    )
    _, encoder = ask("/v1/models/eng", b"", method="GET")
    spec = replace(make_spec(), name="b", context=64)
    answer = ResponsePart(answer=ModelDescription(spec, ("1",), standing=calls))
    one = json.loads(body(encoder.encode(answer)))
    assert (one["id"], one["parent"], one["root"], one["max_model_len"]) == ("eng", "b", "/adapters/eng", 64)


# -- tokens, and the server --------------------------------------------------------------------------------


def about_tokens(path, **fields):
    operation, encoder = ask(path, {"model": "m", **fields})
    assert operation == DescribeAll("m", asked=operation.asked)
    return operation.asked.as_generate(operation.asked.payload, {}), encoder


def described(said, context=64):
    spec = replace(make_spec(), context=context)
    return ResponsePart(answer=ModelDescriptions((), (ModelDescription(spec, ("1",)),), said=said))


def test_the_tokens_of_a_text_are_told():
    generate, encoder = about_tokens("/tokenize", prompt="hi", add_special_tokens=False)
    sampling = Sampling(max_tokens=0, shows_special=True)
    assert generate == Generate(("hi",), sampling=sampling, tells_prompts=True, adds_special=False)
    answer = encoder.encode(described(Generated(prompts=((1, 2, 3),))))
    assert json.loads(body(answer)) == {
        "count": 3,
        "max_model_len": 64,
        "tokens": [1, 2, 3],
        "token_strs": None,
    }
    generate, _ = about_tokens("/tokenize", messages=MESSAGES, add_generation_prompt=False)
    assert (generate.messages, generate.template_arguments) == (
        tuple(MESSAGES),
        {"add_generation_prompt": False},
    )


def test_the_text_of_tokens_is_told():
    generate, encoder = about_tokens("/detokenize", tokens=[1, 2])
    assert (generate.ids, generate.echoes, generate.sampling.max_tokens) == (((1, 2),), True, 0)
    answer = encoder.encode(described(Generated((GeneratedChoice(0, "hi", finish=Finish.LENGTH),))))
    assert json.loads(body(answer)) == {"prompt": "hi"}


@pytest.mark.parametrize(
    ("path", "fields", "field"),
    [
        ("/tokenize", {}, "messages"),
        ("/tokenize", {"prompt": 5}, "prompt"),
        ("/tokenize", {"prompt": "a", "return_token_strs": True}, "return_token_strs"),
        ("/tokenize", {"prompt": "a", "x": 1}, "x"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": ["a"]}, "tokens"),
        ("/detokenize", {"tokens": []}, "tokens"),
    ],
)
def test_a_wrong_field_about_tokens_is_named(path, fields, field):
    assert refusal(lambda: about_tokens(path, **fields)).metadata["field"] == field


def test_what_has_no_tokens_says_so_and_a_handler_answers_for_itself():
    _, encoder = about_tokens("/tokenize", prompt="hi")
    answer = encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "none")))
    assert answer.status == 404
    _, encoder = about_tokens("/tokenize", prompt="hi")
    answer = encoder.encode(described(Raw((RawPart(b"{}", "text/x"),), status=201)))
    assert (answer.status, body(answer)) == (201, b"{}")
    assert b"Content-Type: text/x" in answer.fields


def test_health_and_version():
    operation, encoder = ask("/health", b"", method="GET")
    assert operation == Ready()
    assert encoder.encode(ResponsePart(answer=Readiness(True))).status == 200
    assert encoder.encode(ResponsePart(answer=Readiness(False, "m is loading"))).status == 503
    protocol = OpenAiHttp(lambda: "7", version="1.2")
    _, encoder = ask("/version", b"", protocol, method="GET")
    assert json.loads(body(encoder.encode(ResponsePart()))) == {"version": "1.2"}


# -- extensions of answers ---------------------------------------------------------------------------------

TOLD = Generated(
    (
        GeneratedChoice(1, "b", (7,), (TokenText(7, "b", -1.0, ((8, "c", -2.0),)),), Finish.EOS),
        GeneratedChoice(0, "a", (6,), (TokenText(6, "a", None),), Finish.EOS),
    ),
    GenerationUsage(2, 2),
    ((1, 2),),
)


def test_ids_are_told_where_they_are_asked_for():
    _, encoder = completion(n=2, return_token_ids=True, logprobs=1, return_tokens_as_token_ids=True)
    document = json.loads(body(encoder.encode(ResponsePart(TOLD))))
    first, second = document["choices"]
    assert (first["token_ids"], second["token_ids"]) == ([6], [7])
    assert first["prompt_token_ids"] == second["prompt_token_ids"] == [1, 2]
    assert first["logprobs"]["token_logprobs"] == first["logprobs"]["top_logprobs"] == [None]
    assert second["logprobs"]["tokens"] == ["token_id:7"]
    assert second["logprobs"]["top_logprobs"] == [{"token_id:7": -1.0, "token_id:8": -2.0}]
    _, encoder = chat(n=2, return_token_ids=True)
    document = json.loads(body(encoder.encode(ResponsePart(TOLD))))
    assert document["prompt_token_ids"] == [1, 2]
    assert [choice["token_ids"] for choice in document["choices"]] == [[6], [7]]


@pytest.mark.parametrize("call", [chat, completion])
def test_a_stream_tells_ids_and_counts_as_it_goes(call):
    options = {"include_usage": True, "continuous_usage_stats": True}
    generate, encoder = call(stream=True, stream_options=options, return_token_ids=True)
    assert generate.counts_parts
    assert generate.tells_prompts
    one = Generated((GeneratedChoice(0, "a", (6,)),), GenerationUsage(2, 1), ((1, 2),))
    two = Generated((GeneratedChoice(0, "", (7,)),), GenerationUsage(2, 2))
    end = Generated((GeneratedChoice(0, "b", (8,), (), Finish.EOS),), GenerationUsage(2, 3))
    parts = [ResponsePart(part, final=part is end) for part in (one, two, end)]
    chunks = [json.loads(event) for event in events(*map(encoder.encode, parts))[:-1]]
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks if chunk["choices"]] == (
        [1, 1, 2, 3] if call is chat else [1, 2, 3]
    )
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert [choice["token_ids"] for choice in choices if "token_ids" in choice] == [[6], [7], [8]]
    holders = chunks if call is chat else choices
    assert [one["prompt_token_ids"] for one in holders if "prompt_token_ids" in one] == [[1, 2]]


@pytest.mark.parametrize(("priority", "level"), [(0, 0), (-5, 1), (7, 3)])
def test_a_priority_is_a_level(priority, level):
    operation, _ = ask(COMPLETION, {"model": "m", "prompt": "hi", "priority": priority})
    assert operation.priority == level


# -- the manual --------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[4] / "docs" / "openai.md").read_text()


def documented(title):
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_field_is_in_the_table_of_the_manual():
    extensions = {"logits_processor", *request.EXTENSIONS, *request.TOKEN_FIELDS}
    assert documented("Fields without effect") == set(request.WITHOUT_EFFECT)
    assert documented("Refused in either") == set(MEANINGFUL)
    assert documented("Extensions") == extensions
    known = {*request.CHAT_FIELDS, *request.CHAT_SAMPLING, *request.CHAT_REFUSED}
    assert documented("Fields of a chat") == known - extensions - set(request.WITHOUT_EFFECT)
    known = {*request.COMPLETION_FIELDS, *request.COMPLETION_SAMPLING, *request.COMPLETION_REFUSED}
    assert documented("Fields of a completion") == known - extensions
