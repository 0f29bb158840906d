"""What the public tests of DJL's formatters claim, as facts about our writers: the same tokens, the same documents.

Source: the original's tests of its rolling batch. Its input is a request that has been read; ours is a body.
"""

import json
from typing import Any

import msgspec
import pytest

from trivium.servers.djl.wire.generated_answer import begin
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generated, GeneratedChoice, GenerationUsage, TokenText
from trivium.types.payload import Raw, RawPart

PROMPT = "This is a wonderful day"
TOKENS = ((244, "He", -0.334532), (576, "llo", -0.123123), (4558, " world", -0.567854))
PLAIN = [{"id": id, "text": text, "log_prob": value} for id, text, value in TOKENS]
TGI_TOKENS = [{"id": id, "text": text, "logprob": value, "special": False} for id, text, value in TOKENS]
DETAILS = {"finish_reason": "length", "generated_tokens": 3, "inputs": PROMPT}
TGI = {"tgi_compat": "true"}


def parts() -> list[Generated]:
    last = len(TOKENS) - 1
    return [
        Generated(
            (
                GeneratedChoice(
                    0, text, (id,), (TokenText(id, text, value),), Finish.LENGTH if at == last else None
                ),
            ),
            GenerationUsage(5, 3) if at == last else None,
        )
        for at, (id, text, value) in enumerate(TOKENS)
    ]


def played(parameters: dict[str, Any], model: dict[str, str] | None = None, failed: str = "") -> str:
    """Return what is answered, all pieces together."""
    raw = Raw((RawPart(msgspec.json.encode({"inputs": PROMPT, "parameters": parameters})),))
    stream = {"stream": True} if parameters.pop("stream", False) else {}
    raw = Raw((RawPart(msgspec.json.encode({"inputs": PROMPT, "parameters": parameters, **stream})),))
    _, writer = begin(raw, model or {}, "1", 0.0)
    made = parts()
    if failed:
        pieces = [writer.write(part, False) for part in made[:2]]
        pieces.append(writer.failed(ServeError(Code.MODEL_FAILED, failed)))
    else:
        pieces = [writer.write(part, part is made[-1]) for part in made]
    return b"".join(pieces).decode()


@pytest.mark.parametrize(
    ("parameters", "model", "expected"),
    [
        ({}, {}, {"generated_text": "Hello world"}),
        ({"return_full_text": True}, {}, {"generated_text": PROMPT + "Hello world"}),
        ({"details": True}, {}, {"generated_text": "Hello world", "details": {**DETAILS, "tokens": PLAIN}}),
        (
            {"return_full_text": True, "details": True},
            TGI,
            [{"generated_text": PROMPT + "Hello world", "details": {**DETAILS, "tokens": TGI_TOKENS}}],
        ),
    ],
)
def test_a_whole_answer(parameters: dict[str, Any], model: dict[str, str], expected: object) -> None:
    assert json.loads(played(parameters, model)) == expected


@pytest.mark.parametrize(
    ("parameters", "last"),
    [
        ({}, {"generated_text": "Hello world"}),
        ({"return_full_text": True}, {"generated_text": PROMPT + "Hello world"}),
        ({"details": True}, {"generated_text": "Hello world", "details": DETAILS}),
    ],
)
def test_lines_and_events(parameters: dict[str, Any], last: dict[str, object]) -> None:
    expected = [{"token": token} for token in PLAIN[:2]] + [{"token": PLAIN[2], **last}]
    assert [json.loads(line) for line in played({**parameters, "stream": True}).splitlines()] == expected
    events = played({**parameters, "output_formatter": "sse"}).split("\n\n")
    assert [json.loads(event.removeprefix("data:")) for event in events if event] == expected


def test_events_of_tgi_have_details_unless_a_request_says_no() -> None:
    expected = [{"token": token} for token in TGI_TOKENS[:2]]
    last = {"token": TGI_TOKENS[2], "generated_text": "Hello world", "details": DETAILS}
    events = [event for event in played({"stream": True}, TGI).split("\n\n") if event]
    assert [json.loads(event.removeprefix("data:")) for event in events] == [*expected, last]
    without = played({"stream": True, "details": False}, TGI)
    assert "details" not in without


def test_the_form_of_another_vendor() -> None:
    whole = json.loads(played({"output_formatter": "3p", "details": True, "return_full_text": True}))
    assert whole["body"] == {
        "generation": PROMPT + "Hello world",
        "prompt_token_count": 5,
        "generation_token_count": 3,
        "stop_reason": "length",
    }
    assert whole["metering"] == {"inputTokenCount": 5, "outputTokenCount": 3}
    assert whole["content_type"] == "application/json"


def test_what_breaks_off_is_named_in_the_last_line() -> None:
    *_, last = [json.loads(line) for line in played({"stream": True}, failed="some error").splitlines()]
    assert last["token"]["error_msg"] == "some error"
    assert last["generated_text"] is None
    *_, vendor = [
        json.loads(line)
        for line in played({"output_formatter": "3p_stream"}, failed="some error").splitlines()
    ]
    assert vendor["body"]["stop_reason"] == "error"
    assert vendor["error"]["error_msg"] == "some error"
