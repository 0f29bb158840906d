"""The form in which a worker calls a language model: its bodies are LMI's, its answers LMI's or tokens."""

import json

import msgspec
import pytest

from trivium.servers.djl.wire.calls import LmiCall
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generated, GeneratedChoice, TokenText
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, RawPart


def body(document: object, answer: str = "") -> Raw:
    return Raw((RawPart(msgspec.json.encode(document)),), {"answer": answer})


def documents(call: LmiCall, *parts: Generated) -> list[object]:
    found = []
    for number, part in enumerate(parts):
        written = call.written(ResponsePart(part, final=number == len(parts) - 1))
        if written is not None and isinstance(written.payload, Raw):
            found.append(json.loads(bytes(written.payload.parts[0].data)))
    return found


def said(id: int, text: str, finish: Finish | None = None, index: int = 0) -> Generated:
    return Generated((GeneratedChoice(index, text, (id,), (TokenText(id, text, -0.5),), finish),))


def test_tokens_come_one_by_one_whatever_the_request_says_of_its_answer() -> None:
    call = LmiCall()
    asked = {
        "inputs": "x",
        "parameters": {"max_new_tokens": 2, "top_n_tokens": 2, "mine": 1},
        "stream": False,
    }
    generate = call.read(body(asked, "tokens"), {"output_formatter": "sse", "tgi_compat": "true"})
    assert (generate.prompts, generate.streams, generate.tells_prompts) == (("x",), True, True)
    assert (generate.sampling.max_tokens, generate.sampling.logprobs) == (2, 2)
    first = msgspec.structs.replace(said(1, "a"), prompts=((7, 8),))
    assert documents(call, first, said(2, "b", Finish.EOS)) == [
        {
            "sequences": [{"index": 0, "tokens": [[1, "a", -0.5, False, []]], "finish": None}],
            "prompt": [7, 8],
        },
        {"sequences": [{"index": 0, "tokens": [[2, "b", -0.5, False, []]], "finish": "eos_token"}]},
    ]


def test_an_end_without_a_token_is_an_empty_one() -> None:
    call = LmiCall()
    call.read(body({"inputs": "x"}, "tokens"), {})
    (end,) = documents(call, Generated((GeneratedChoice(0, "", (), (), Finish.STOP),)))
    assert end == {
        "sequences": [{"index": 0, "tokens": [[-1, "", None, False, []]], "finish": "stop_sequence"}]
    }


def test_of_the_best_of_many_all_come_at_once() -> None:
    generate = LmiCall().read(body({"inputs": "x", "parameters": {"best_of": 3}}, "tokens"), {})
    assert (generate.streams, generate.sampling.best_of) == (False, 3)


def test_a_completion_of_the_asynchronous_mode_comes_as_tokens_too() -> None:
    generate = LmiCall().read(body({"prompt": "x", "max_tokens": 3}, "tokens"), {"async_mode": "true"})
    assert (generate.prompts, generate.sampling.max_tokens, generate.sampling.logprobs) == (("x",), 3, 0)


def test_an_answer_in_lmis_form_is_that_of_its_route() -> None:
    call = LmiCall()
    assert not call.read(body({"inputs": "x", "parameters": {"mine": 1}}), {}).streams
    assert documents(call, said(1, "a"), said(2, "b", Finish.LENGTH)) == [{"generated_text": "ab"}]


def test_errors_have_the_status_and_words_of_lmi() -> None:
    for answer in ("", "tokens"):
        with pytest.raises(ServeError) as caught:
            LmiCall().read(body({"inputs": "x", "parameters": {"top_p": 7}}, answer), {})
        assert (caught.value.status, "top_p" in caught.value.message) == (424, True)
        call = LmiCall()
        call.read(body({"inputs": "x"}, answer), {})
        told = call.written(ResponsePart(error=ServeError(Code.INVALID, "too long")))
        assert told is not None
        assert told.error is not None
        assert (told.error.status, told.final) == (424, True)


def test_a_model_that_answers_bodies_is_passed_on() -> None:
    part = ResponsePart(Raw((RawPart(b"[]"),)), final=True)
    assert LmiCall().written(part) is part
