import json

import pytest

from trivium.servers.djl.wire.http import DjlHttp
from trivium.servers.djl.wire.options import DjlOptions
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
from trivium.types.operations import Defer, Fetched, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.wire import NOTHING_YET, Body, Head

PROTOCOL = DjlHttp(lambda: "7", DjlOptions(epoch=lambda: 5.5))
TOKEN = "12345678-1234-1234-1234-123456789abc"
GREEDY = Sampling(samples=False, max_tokens=30)
MESSAGES = [{"role": "user", "content": "hi"}]


def ask(document, path="/predictions/m", **headers):
    fields = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    head = Head("POST", path, "model_name=m", fields)
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return PROTOCOL.decode(head, PROTOCOL.head(head), Body(body))


def read(document, parameters=None, path="/predictions/m"):
    """What is asked for, and the encoder that has read it."""
    operation, encoder = ask(document, path)
    return operation.as_generate(operation.payload, parameters or {}), encoder


def plain(parameters=None, own=None, **fields):
    return read({"inputs": "hi", "parameters": parameters or {}, **fields}, own)


def body(answer):
    content = b"".join(answer.buffers)
    assert len(content) == answer.size
    return content


def kind(answer):
    return next(
        line[14:] for line in answer.fields.decode().split("\r\n") if line.startswith("Content-Type: ")
    )


def said(text, finish=None, id=1, usage=None, index=0, alternatives=()):
    token = TokenText(id, text, -0.5, alternatives)
    return Generated((GeneratedChoice(index, text, (id,), (token,), finish),), usage)


def part(payload, final=True):
    return ResponsePart(payload, final=final, model="m", version="1")


USAGE = GenerationUsage(1, 2)
PARTS = (part(said("He"), False), part(said("y", Finish.STOP, 2, USAGE)))


@pytest.mark.parametrize("path", ["/predictions/m", "/invocations", "/models/m/invoke"])
def test_every_route_of_predictions_takes_both_forms(path):
    assert read({"inputs": "hi"}, path=path)[0] == Generate(("hi",), sampling=GREEDY)
    assert read({"messages": MESSAGES}, path=path)[0] == Generate(None, tuple(MESSAGES), sampling=GREEDY)


@pytest.mark.parametrize(
    ("parameters", "sampling"),
    [
        ({"temperature": 0.5}, Sampling(samples=True, temperature=0.5, max_tokens=30)),
        ({"temperature": 0}, Sampling(samples=False, temperature=0.0, max_tokens=30)),
        ({"do_sample": True}, Sampling(samples=True, max_tokens=30)),
        (
            {"do_sample": False, "temperature": 0.5},
            Sampling(samples=False, temperature=0.5, max_tokens=30),
        ),
        ({"max_new_tokens": 5, "seed": 3}, Sampling(samples=False, max_tokens=5, seed=3)),
        ({"stop_sequences": ["a"], "stop": "a"}, Sampling(samples=False, max_tokens=30, stop=("a",))),
        ({"details": True, "top_n_tokens": 2}, Sampling(samples=False, max_tokens=30, logprobs=2)),
        ({"ignore_eos_token": True}, Sampling(samples=False, max_tokens=30, ignores_eos=True)),
        ({"num_beams": 1, "length_penalty": 1.0, "decoder_input_details": False}, GREEDY),
        ({"min_new_tokens": 50}, Sampling(samples=False, max_tokens=50, min_tokens=50)),
    ],
)
def test_sampling(parameters, sampling):
    assert plain(parameters)[0].sampling == sampling


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "inputs"),
        ({"inputs": ""}, "inputs"),
        ({"inputs": ["a", "b"]}, "inputs"),
        ({"inputs": "a", "parameters": []}, "parameters"),
        ({"inputs": "a", "stream": "yes"}, "stream"),
        ({"inputs": "a", "prompt": "b"}, "prompt"),
        ({"inputs": "a", "cached_prompt": "b"}, "cached_prompt"),
        ({"inputs": "a", "parameters": {"temprature": 1}}, "parameters.temprature"),
        ({"inputs": "a", "parameters": {"top_p": 2}}, "parameters.top_p"),
        ({"inputs": "a", "parameters": {"num_beams": 2}}, "parameters.num_beams"),
        ({"inputs": "a", "parameters": {"decoder_input_details": True}}, "parameters.decoder_input_details"),
        ({"inputs": "a", "parameters": {"stop": "a", "stop_sequences": "b"}}, "parameters.stop"),
        ({"inputs": "a", "parameters": {"n": 2, "output_formatter": "sse"}}, "parameters.n"),
        ({"inputs": "a", "parameters": {"output_formatter": "xml"}}, "output_formatter"),
        ({"messages": []}, "messages"),
        ({"messages": MESSAGES, "tools": [{}]}, "tools"),
        ({"messages": MESSAGES, "inputs": "a"}, "inputs"),
        ({"messages": MESSAGES, "top_logprobs": 1}, "top_logprobs"),
    ],
)
def test_refusals_name_the_field_and_are_of_one_form(document, field):
    operation, encoder = ask(document)
    with pytest.raises(ServeError) as caught:
        operation.as_generate(operation.payload, {})
    assert (caught.value.code, caught.value.metadata["field"]) == (Code.INVALID, field)
    answer = encoder.encode(ResponsePart(error=caught.value))
    assert (answer.status, answer.closes) == (424, True)
    assert json.loads(body(answer)) == {"code": 424, "error": caught.value.message}


@pytest.mark.parametrize("text", [b"", b"hello", b"[]", b"{", b"\xff", b'"' * 2**24])
def test_a_body_that_is_no_object(text):
    operation, encoder = ask(text)
    with pytest.raises(ServeError) as caught:
        operation.as_generate(operation.payload, {})
    assert encoder.encode(ResponsePart(error=caught.value)).status == 424


@pytest.mark.parametrize(
    ("parameters", "own", "fields", "expected"),
    [
        ({}, {}, {}, "application/json"),
        ({}, {}, {"stream": True}, "application/jsonlines"),
        ({}, {"tgi_compat": "true"}, {"stream": True}, "text/event-stream"),
        ({}, {"output_formatter": "sse"}, {}, "text/event-stream"),
        ({"output_formatter": "json"}, {"output_formatter": "sse"}, {"stream": True}, "application/json"),
        ({"output_formatter": "jsonlines"}, {}, {}, "application/jsonlines"),
    ],
)
def test_who_chooses_the_formatter(parameters, own, fields, expected):
    generate, encoder = plain(parameters, own, **fields)
    answers = [encoder.encode(each) for each in PARTS]
    answer = next(each for each in answers if each is not NOTHING_YET)
    assert kind(answer) == expected
    assert generate.streams == (expected != "application/json")


def test_json_is_whole():
    _, encoder = plain({"details": True, "return_full_text": True, "top_n_tokens": 1})
    assert encoder.encode(part(said("He", alternatives=((1, "He", -0.5),)), False)) is NOTHING_YET
    document = json.loads(body(encoder.encode(PARTS[1])))
    assert document == {
        "generated_text": "hiHey",
        "details": {
            "finish_reason": "stop_sequence",
            "generated_tokens": 2,
            "inputs": "hi",
            "tokens": [{"id": 1, "text": "He", "log_prob": -0.5}, {"id": 2, "text": "y", "log_prob": -0.5}],
            "top_tokens": [[{"id": 1, "text": "He", "log_prob": -0.5}], []],
        },
    }
    _, encoder = plain({"details": False}, {"tgi_compat": "true"})
    assert json.loads(body(encoder.encode(part(said("He", Finish.EOS))))) == [{"generated_text": "He"}]
    _, encoder = plain({"n": 2})
    whole = Generated(
        (GeneratedChoice(1, "b", finish=Finish.EOS), GeneratedChoice(0, "a", finish=Finish.EOS))
    )
    document = json.loads(body(encoder.encode(part(whole))))
    assert (document["generated_text"], document["details"]["best_of_sequences"][0]["generated_text"]) == (
        "a",
        "b",
    )


def lines(encoder, *parts):
    text = b"".join(body(encoder.encode(each)) for each in parts).decode()
    return [json.loads(line) for line in text.splitlines()]


def test_lines_of_json():
    _, encoder = plain({"details": True}, stream=True)
    assert lines(encoder, *PARTS) == [
        {"token": {"id": 1, "text": "He", "log_prob": -0.5}},
        {
            "token": {"id": 2, "text": "y", "log_prob": -0.5},
            "generated_text": "Hey",
            "details": {"finish_reason": "stop_sequence", "generated_tokens": 2, "inputs": "hi"},
        },
    ]
    _, encoder = plain({}, stream=True)
    found = lines(encoder, part(said("He"), False), part(Generated(usage=USAGE)))
    assert found[-1] == {"token": {"id": -1, "text": "", "log_prob": None}, "generated_text": "He"}


def test_events_in_the_spelling_of_tgi():
    _, encoder = plain({}, {"tgi_compat": "true"}, stream=True)
    text = b"".join(body(encoder.encode(each)) for each in PARTS).decode()
    first, last = [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n")[:-1]]
    assert first == {"token": {"id": 1, "text": "He", "logprob": -0.5, "special": False}}
    assert last["generated_text"] == "Hey"


def test_chats():
    _, encoder = read({"messages": MESSAGES})
    document = json.loads(body(encoder.encode(part(said("Hey", Finish.EOS, usage=USAGE)))))
    assert (document["id"], document["object"], document["created"]) == ("chatcmpl-7", "chat.completion", 5)
    assert document["choices"][0]["finish_reason"] == "eos_token"
    _, encoder = read({"messages": MESSAGES, "stream": True})
    found = lines(encoder, *PARTS)
    assert [chunk["choices"][0]["delta"] for chunk in found] == [
        {"role": "assistant", "content": ""},
        {"content": "He"},
        {"content": "y"},
    ]
    _, encoder = read({"messages": MESSAGES, "stream": True, "output_formatter": "sse"})
    assert b"".join(body(encoder.encode(each)) for each in PARTS).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("form", ["jsonlines", "sse"])
def test_a_failure_in_mid_stream_is_the_last_line(form):
    for failed in (
        ResponsePart(error=ServeError(Code.MODEL_FAILED, "why")),
        part(Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),))),
    ):
        _, encoder = plain({"output_formatter": form})
        encoder.encode(PARTS[0])
        answer = encoder.encode(failed)
        document = json.loads(body(answer).decode().removeprefix("data: "))
        assert (answer.status, answer.final) == (200, True)
        assert (document["error"], document["code"], document["generated_text"]) == ("why", 424, None)


def test_what_is_the_servers_keeps_its_form():
    _, encoder = ask({"inputs": "hi"})
    error = ServeError(Code.NOT_FOUND, "There is none.", info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model="m"))
    assert json.loads(body(encoder.encode(ResponsePart(error=error))))["type"] == "ModelNotFoundException"
    _, encoder = plain()
    full = encoder.encode(ResponsePart(error=ServeError(Code.QUEUE_FULL, "full")))
    assert (full.status, json.loads(body(full))["type"]) == (503, "WlmCapacityException")
    encoder = plain()[1]
    assert encoder.encode(ResponsePart(error=ServeError(Code.MODEL_FAILED, "why"))).status == 424


# -- fetched later -----------------------------------------------------------------------------------------

FAILED = ResponsePart(error=ServeError(Code.MODEL_FAILED, "why"))
DIED = ResponsePart(error=ServeError(Code.WORKER_DIED, "it died"))
UNTOLD = part(Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),)))
FORMS = [
    {"inputs": "hi"},
    {"inputs": "hi", "parameters": {"details": True, "return_full_text": True}},
    {"inputs": "hi", "stream": True},
    {"inputs": "hi", "parameters": {"output_formatter": "sse", "top_n_tokens": 1}},
    {"messages": MESSAGES},
    {"messages": MESSAGES, "stream": True},
]


def deferred(document, *parts):
    """What is kept of an answer."""
    operation, _ = ask(document, x_synchronous="false")
    assert isinstance(operation, Defer)
    operation.infer.as_generate(operation.infer.payload, {})
    return [kept for each in parts if (kept := operation.write(each)) is not None]


def page(kept, first=0, is_last=True):
    _, encoder = ask(b"", x_starting_token=TOKEN + str(first or ""))
    return encoder.encode(ResponsePart(answer=Fetched(tuple(kept), first + len(kept), is_last, is_last)))


@pytest.mark.parametrize("document", FORMS)
def test_pages_joined_are_what_is_answered_at_once(document):
    _, encoder = read(document)
    answers = [each for part in PARTS if (each := encoder.encode(part)) is not NOTHING_YET]
    kept = deferred(document, *PARTS)
    whole = page(kept)
    assert (whole.status, kind(whole)) == (200, kind(answers[0]))
    assert body(whole) == b"".join(map(body, answers))
    assert len(kept) == len(answers)
    assert [each.final for each in kept] == [False] * (len(kept) - 1) + [True]
    first, *others = kept
    pages = [page([first], 0, not others), *(page([each], at + 1) for at, each in enumerate(others))]
    assert b"".join(map(body, pages)) == body(whole)
    assert all(b"Content-Type" not in each.fields for each in pages[1:])


@pytest.mark.parametrize("failed", [FAILED, UNTOLD, DIED])
@pytest.mark.parametrize("form", ["jsonlines", "sse"])
def test_a_failure_behind_a_kept_piece_is_the_last_line(form, failed):
    document = {"inputs": "hi", "parameters": {"output_formatter": form}}
    _, encoder = read(document)
    expected = [body(encoder.encode(each)) for each in (PARTS[0], failed)]
    kept = deferred(document, PARTS[0], failed)
    assert [each.final for each in kept] == [False, True]
    assert (page(kept).status, body(page(kept))) == (200, b"".join(expected))


@pytest.mark.parametrize(
    ("failed", "status", "document"),
    [
        (FAILED, 424, {"code": 424, "error": "why"}),
        (UNTOLD, 424, {"code": 424, "error": "why"}),
        (DIED, 500, {"code": 500, "type": "WlmException", "message": "it died"}),
    ],
)
def test_a_failure_before_the_first_piece_is_kept_with_its_status(failed, status, document):
    answer = page(deferred(FORMS[0], failed))
    assert (answer.status, json.loads(body(answer))) == (status, document)


def test_what_is_refused_at_once_is_of_the_same_form():
    operation, encoder = ask({"inputs": "hi", "parameters": {"temprature": 1}}, x_synchronous="false")
    with pytest.raises(ServeError) as caught:
        operation.infer.as_generate(operation.infer.payload, {})
    kept = operation.write(ResponsePart(error=caught.value))
    for answer in (encoder.encode(ResponsePart(error=kept.error)), page([kept])):
        assert (answer.status, json.loads(body(answer))["code"]) == (424, 424)
        assert b"parameters.temprature" in body(answer)


def test_what_a_handler_answers_is_kept_as_it_is():
    operation, _ = ask(b"x", x_synchronous="false")
    for each in (ResponsePart(Raw((RawPart(b"a"),)), final=False), DIED, ResponsePart()):
        assert operation.write(each) is each


# -- every formatter ---------------------------------------------------------------------------------------


def written(document, own=None, parts=PARTS):
    """What is answered in all, and its content type."""
    _, encoder = read(document, own)
    answers = [each for part in parts if (each := encoder.encode(part)) is not NOTHING_YET]
    return kind(answers[0]), b"".join(map(body, answers)).decode()


ENDED = (part(said("He"), False), part(said("y", Finish.STOP, 2, GenerationUsage(3, 2))))


@pytest.mark.parametrize("by_request", [True, False])
@pytest.mark.parametrize(
    ("formatter", "expected", "text"),
    [
        ("none", "text/plain", "Hey"),
        ("json", "application/json", '{"generated_text":"Hey"}'),
        (
            "3p",
            "application/json",
            '{"body":{"generation":"Hey","prompt_token_count":3,"generation_token_count":2,"stop_reason":'
            '"stop_sequence"},"metering":{"inputTokenCount":3,"outputTokenCount":2},"content_type":"application/json"}',
        ),
        (
            "3p_stream",
            "application/jsonlines",
            '{"body":{"generation":"He","prompt_token_count":null,"generation_token_count":1,"stop_reason":null},'
            '"metering":{"outputTokenCount":1},"content_type":"application/jsonlines"}\n'
            '{"body":{"generation":"y","prompt_token_count":3,"generation_token_count":2,"stop_reason":'
            '"stop_sequence"},"metering":{"inputTokenCount":3,"outputTokenCount":2},'
            '"content_type":"application/jsonlines"}\n',
        ),
    ],
)
def test_a_formatter_per_request_and_per_model(by_request, formatter, expected, text):
    document = {"inputs": "hi"}
    own = {} if by_request else {"output_formatter": formatter}
    if by_request:
        document["parameters"] = {"output_formatter": formatter}
    assert written(document, own, ENDED) == (expected, text)


@pytest.mark.parametrize(
    "document", [{"inputs": "hi"}, {"messages": MESSAGES}], ids=["of inputs", "of a chat"]
)
@pytest.mark.parametrize(
    ("formatter", "expected"),
    [
        ("json_chat", "application/json"),
        ("jsonlines_chat", "application/jsonlines"),
        ("sse_chat", "text/event-stream"),
    ],
)
def test_the_forms_of_chats(document, formatter, expected):
    found, text = written(document, {"output_formatter": formatter}, ENDED)
    assert found == expected
    if formatter == "json_chat":
        whole = json.loads(text)
        assert whole["choices"][0]["message"]["content"] == "Hey"
        assert whole["choices"][0]["finish_reason"] == "stop_sequence"
        return
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    if formatter == "sse_chat":
        assert lines.pop() == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "Hey"


@pytest.mark.parametrize(("formatter", "is_begun"), [("3p_stream", True), ("none", True), ("sse_chat", True)])
def test_a_failure_in_every_formatter(formatter, is_begun):
    _, encoder = plain({"output_formatter": formatter})
    encoder.encode(ENDED[0])
    answer = body(encoder.encode(ResponsePart(error=ServeError(Code.MODEL_FAILED, "why")))).decode()
    document = json.loads(answer.removeprefix("data: "))
    if formatter == "3p_stream":
        assert document["error"] == {"error_code": 400, "error_msg": "why"}
        assert document["body"]["stop_reason"] == "error"
    else:
        assert document == {"code": 424, "error": "why"}


def test_several_texts_need_a_formatter_that_has_room_for_them():
    for formatter in ("3p", "3p_stream", "none", "jsonlines_chat"):
        operation, _ = ask({"inputs": "a", "parameters": {"n": 2, "output_formatter": formatter}})
        with pytest.raises(ServeError, match="writes one text alone"):
            operation.as_generate(operation.payload, {})
    generate, _ = plain({"n": 2, "output_formatter": "json_chat"})
    assert generate.sampling.choices == 2


# -- the asynchronous mode ---------------------------------------------------------------------------------

ASYNC = {"async_mode": "true"}


def test_a_completion_has_openais_form_and_any_model():
    generate, encoder = read({"prompt": "hi", "max_tokens": 2}, ASYNC)
    assert (generate.prompts, generate.sampling.max_tokens, generate.sampling.samples) == (("hi",), 2, True)
    document = json.loads(body(encoder.encode(part(said("Hey", Finish.EOS, usage=USAGE)))))
    assert (document["object"], document["model"], document["id"]) == ("text_completion", "lmi", "cmpl-7")
    assert document["choices"][0] == {"text": "Hey", "index": 0, "logprobs": None, "finish_reason": "stop"}
    for own, asked, name in (
        ({"served_model_name": "mine"}, {}, "mine"),
        ({"served_model_name": "mine"}, {"model": "other"}, "other"),
    ):
        _, encoder = read({"messages": MESSAGES, **asked}, {**ASYNC, **own})
        chat = json.loads(body(encoder.encode(part(said("Hey", Finish.STOP, usage=USAGE)))))
        assert (chat["object"], chat["model"], chat["choices"][0]["finish_reason"]) == (
            "chat.completion",
            name,
            "stop",
        )


@pytest.mark.parametrize("asked", [{"prompt": "hi"}, {"messages": MESSAGES}])
def test_what_streams_there_has_a_line_for_each_chunk(asked):
    document = {**asked, "stream": True, "stream_options": {"include_usage": True}}
    found, text = written(document, ASYNC, ENDED)
    assert found == "application/jsonlines"
    *chunks, usage = [json.loads(line) for line in text.splitlines()]
    assert usage["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    said = [each["choices"][0] for each in chunks]
    assert "".join(one.get("text", one.get("delta", {}).get("content", "")) for one in said) == "Hey"


def test_inputs_there_are_drawn_and_spelled_as_tgi_does():
    document = {"inputs": "hi", "model": "any", "parameters": {"details": True, "seed": 4}}
    generate, encoder = read(document, ASYNC)
    assert (generate.sampling.samples, generate.sampling.max_tokens) == (True, 30)
    encoder.encode(ENDED[0])
    whole = json.loads(body(encoder.encode(ENDED[1])))
    assert whole == {
        "generated_text": "Hey",
        "details": {
            "finish_reason": "stop",
            "generated_tokens": 2,
            "seed": 4,
            "prefill": [],
            "tokens": [{"id": 1, "text": "He", "logprob": -0.5}, {"id": 2, "text": "y", "logprob": -0.5}],
        },
    }
    _, text = written({**document, "stream": True}, ASYNC, ENDED)
    first, last = map(json.loads, text.splitlines())
    token = {"id": 1, "text": "He", "logprob": -0.5}
    assert first == {"index": 0, "token": token, "generated_text": None, "details": None}
    assert last["generated_text"] == "Hey"
    assert last["details"] == {
        "finish_reason": "stop",
        "seed": 4,
        "generated_tokens": 2,
        "input_length": 3,
    }


@pytest.mark.parametrize(
    ("parameters", "samples"),
    [
        ({}, True),
        ({"do_sample": False}, False),
        ({"do_sample": False, "temperature": 1}, False),
        ({"temperature": 0}, None),
        ({"do_sample": True, "temperature": 0}, None),
        ({"temperature": 0.5}, None),
    ],
)
def test_whether_tokens_are_drawn_there(parameters, samples):
    assert plain(parameters, ASYNC)[0].sampling.samples is samples


def test_errors_there_name_the_fields_that_were_sent():
    operation, encoder = ask({"text": "hi"})
    with pytest.raises(ServeError, match="neither 'inputs' nor 'prompt' nor 'messages'") as caught:
        operation.as_generate(operation.payload, ASYNC)
    assert encoder.encode(ResponsePart(error=caught.value)).status == 424
    operation, _ = ask({"prompt": "hi", "max_tokens": "many"})
    with pytest.raises(ServeError, match="'max_tokens'"):
        operation.as_generate(operation.payload, ASYNC)


def test_a_prompt_is_no_field_of_lmis_own_form():
    operation, _ = ask({"prompt": "hi"})
    with pytest.raises(ServeError, match="'inputs'"):
        operation.as_generate(operation.payload, {})


@pytest.mark.parametrize("document", [{"inputs": "x"}, {"messages": [{"role": "user", "content": "x"}]}])
def test_a_request_names_its_adapter(document):
    for told in (
        {"adapters": "eng"},
        {"adapters": ["eng"]},
        {"adapter": "eng"},
        {"adapters": "eng", "adapter": "eng"},
    ):
        assert read(document | told)[0].adapter == "eng"
    for told in ({}, {"adapters": []}, {"adapters": ""}, {"adapters": None}):
        assert read(document | told)[0].adapter == ""
    for told in (
        {"adapters": ["eng", "fra"]},
        {"adapters": 5},
        {"adapters": [5]},
        {"adapters": "eng", "adapter": "fra"},
    ):
        with pytest.raises(ServeError) as caught:
            read(document | told)
        assert (caught.value.code, caught.value.metadata["field"]) == (Code.INVALID, "adapters")
