import json
from urllib.parse import urlencode

import numpy as np
import pytest

from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generate, Generated, GeneratedChoice, Sampling
from trivium.types.operations import ResponsePart
from trivium.types.wire import NOTHING_YET, Body, Head

PROTOCOL = TorchServeHttp(lambda: "7")
GREEDY = Sampling(samples=False, max_tokens=2048)


def ask(body, kind):
    head = Head("POST", "/predictions/m", "", {b"content-type": kind.encode()})
    return PROTOCOL.decode(head, PROTOCOL.head(head), Body(body))


def as_form(fields):
    return ask(urlencode(fields).encode(), "application/x-www-form-urlencoded")


def as_json(fields):
    return ask(json.dumps(fields).encode(), "application/json")


def read(asked, parameters=None):
    operation, encoder = asked
    return operation.as_generate(operation.payload, parameters or {}), encoder


@pytest.mark.parametrize(
    ("fields", "sampling"),
    [
        ({}, GREEDY),
        ({"temperature": 0.5}, Sampling(samples=True, temperature=0.5, max_tokens=2048)),
        (
            {"do_sample": True, "top_k": 5, "max_new_tokens": 7},
            Sampling(samples=True, top_k=5, max_tokens=7),
        ),
        ({"num_beams": 1, "use_cache": True}, GREEDY),
        ({"stop_strings": ["a", "b"]}, Sampling(samples=False, max_tokens=2048, stop=("a", "b"))),
    ],
)
def test_a_form_and_json_say_the_same(fields, sampling):
    expected = Generate(("5",), sampling=sampling, streams=True)
    assert read(as_json({"text": "5", **fields}))[0] == expected
    shown = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    assert read(as_form({"text": "5", **shown}))[0] == expected


def test_of_a_field_that_comes_again_the_last_counts():
    assert read(as_form([("text", "a"), ("text", "b"), ("model_name", "m")]))[0].prompts == ("b",)


def test_the_model_says_how_many_tokens():
    assert read(as_json({"text": "a"}), {"max_new_tokens": "9"})[0].sampling.max_tokens == 9


@pytest.mark.parametrize(
    "asked", [as_form({"inputs_embeds": "[[1, 2]]"}), as_json({"inputs_embeds": [[1, 2]]})]
)
def test_embeddings(asked):
    embeds = read(asked)[0].embeds
    assert (embeds.tokens, embeds.width, np.frombuffer(embeds.data, "<f4").tolist()) == (1, 2, [1.0, 2.0])


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (as_json({}), "text"),
        (as_json({"text": 5}), "text"),
        (as_json({"text": "a", "inputs_embeds": [[1]]}), "text"),
        (as_form({"text": "a", "top_p": "high"}), "top_p"),
        (as_json({"text": "a", "top_p": "0.5"}), "top_p"),
        (as_json({"input_embeds": [[1]]}), "input_embeds"),
        (as_json({"text": "a", "num_beams": 4}), "num_beams"),
        (as_json({"inputs_embeds": [[1], [2, 3]]}), "inputs_embeds"),
        (as_form({"inputs_embeds": "x"}), "inputs_embeds"),
        (ask(b"text=%ff", "application/x-www-form-urlencoded"), "text"),
    ],
)
def test_refusals_name_the_field(asked, field):
    operation, encoder = asked
    with pytest.raises(ServeError) as caught:
        operation.as_generate(operation.payload, {})
    assert (caught.value.code, caught.value.metadata["field"]) == (Code.INVALID, field)
    assert encoder.encode(ResponsePart(error=caught.value)).status == 400


def test_a_single_field_that_is_called_data_is_the_json():
    expected = read(as_json({"text": "5", "top_k": 3}))[0]
    for name in ("data", "body"):
        assert read(as_form({name: '{"text": "5", "top_k": 3}'}))[0] == expected


def test_a_body_that_is_no_request():
    with pytest.raises(ServeError, match="no JSON object"):
        read(ask(b"hello", "text/plain"))


def test_a_chunk_for_each_piece_and_the_end():
    _, encoder = read(as_json({"text": "a"}), {"end_of_stream_token": "<end>"})
    parts = [
        ResponsePart(Generated((GeneratedChoice(0, text, (1,), finish=finish),)), final=finish is not None)
        for text, finish in (("", None), ("é", None), ("", None), ("z", Finish.EOS))
    ]
    answers = [encoder.encode(part) for part in parts]
    assert answers[0] is NOTHING_YET
    assert b"ts_stream_next: true\r\n" in answers[1].fields
    assert b"Content-Type: text/plain; charset=utf-8\r\n" in answers[1].fields
    assert answers[2] is NOTHING_YET
    assert b"".join(b"".join(answer.buffers) for answer in answers).decode() == "éz<end>"
    assert answers[3].final
    _, encoder = read(as_json({"text": "a"}))
    assert encoder.encode(ResponsePart(Generated())).buffers == (b"<|endoftext|>",)


def test_a_failure_in_mid_stream_breaks_the_answer_off():
    failed = Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),))
    _, encoder = read(as_json({"text": "a"}))
    assert encoder.encode(ResponsePart(failed)).status == 503
    _, encoder = read(as_json({"text": "a"}))
    encoder.encode(ResponsePart(Generated((GeneratedChoice(0, "a"),)), final=False))
    answer = encoder.encode(ResponsePart(failed))
    assert (answer.closes, answer.size) == (True, 0)


# -- vllm_handler ------------------------------------------------------------------------------------------


def ask_below(path, fields):
    head = Head("POST", f"/predictions/m/1.0/{path}", "", {b"content-type": b"application/json"})
    return PROTOCOL.decode(head, PROTOCOL.head(head), Body(json.dumps(fields).encode()))


OPENAI = {"openai_paths": "true"}
MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("streams", [False, True])
def test_openais_paths_stand_below_a_prediction(streams):
    asked = {"model": "x", "messages": MESSAGES, "stream": streams, "max_tokens": 3}
    generate, encoder = read(ask_below("v1/chat/completions", asked), OPENAI)
    assert (generate.messages, generate.sampling.max_tokens, generate.streams) == (
        tuple(MESSAGES),
        3,
        streams,
    )
    part = Generated((GeneratedChoice(0, "a", (1,), finish=Finish.EOS),))
    answer = encoder.encode(ResponsePart(part, model="m"))
    text = b"".join(answer.buffers)
    assert answer.status == 200
    if streams:
        assert text.startswith(b"data: {")
        assert text.endswith(b"data: [DONE]\n\n")
    else:
        assert json.loads(text)["choices"][0]["message"]["content"] == "a"
        assert json.loads(text)["model"] == "x"
    generate, _ = read(ask_below("v1/completions", {"prompt": "hi"}), OPENAI)
    assert generate.prompts == ("hi",)


@pytest.mark.parametrize(
    ("path", "fields", "code"),
    [
        ("v1/models", {}, Code.NOT_FOUND),
        ("", {"prompt": "hi"}, Code.NOT_FOUND),
        ("v1/completions", {"prompt": "hi", "temperature": "hot"}, Code.INVALID),
    ],
)
def test_what_is_none_of_them_is_refused(path, fields, code):
    with pytest.raises(ServeError) as caught:
        read(ask_below(path, fields), OPENAI)
    assert caught.value.code is code
