"""A tiny model in three dialects: continuations say what all tokens say at once, fields without effect are named in the
answer, and errors are those that the libraries of clients branch on.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI
from tests.harness.language_models import sentence_pieces, write
from tests.harness.server_process import ServerProcess, serve

PROMPT = "Once upon a"
COUNT = 24


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    made = sentence_pieces()
    bare = write(folder / "bare", "llama", made=made, vocab_size=len(made), bos_token_id=1, eos_token_id=2)
    djl = folder / "djl"
    djl.mkdir()
    lines = ("option.rolling_batch=auto", f"option.model_id={bare}", "option.max_rolling_batch_size=2")
    (djl / "serving.properties").write_text("\n".join((*lines, "option.max_model_len=128\n")))
    words = ("--engine-parameters", "hf.threads=1,hf.slots=2,hf.max_context=128", "--profile", "djl")
    with serve(folder / "log", bare, djl, *words) as served:
        yield served


def post(server: ServerProcess, path: str, body: dict[str, Any]) -> httpx.Response:
    answer = httpx.post(f"{server.url}{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer


def completed(server: ServerProcess, **fields: Any) -> str:
    body = {"model": "bare", "prompt": PROMPT, "max_tokens": COUNT, "temperature": 0, "ignore_eos": True}
    answer = post(server, "/v1/completions", {**body, **fields})
    if not fields.get("stream"):
        return str(answer.json()["choices"][0]["text"])
    events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: {")]
    return "".join(choice["text"] for event in events for choice in event["choices"])


def predicted(server: ServerProcess, **fields: Any) -> httpx.Response:
    given = {"max_new_tokens": COUNT, "ignore_eos_token": True, **fields}
    stream = given.pop("stream", False)
    return post(server, "/predictions/djl", {"inputs": PROMPT, "parameters": given, "stream": stream})


@pytest.fixture(scope="module")
def expected(server: ServerProcess) -> str:
    tokens = predicted(server, details=True).json()["details"]["tokens"]
    made = sentence_pieces()
    ids = made(PROMPT)["input_ids"]
    whole = made.decode([*ids, *(token["id"] for token in tokens)], skip_special_tokens=True)
    before = made.decode(ids, skip_special_tokens=True)
    assert whole.startswith(before)
    return str(whole[len(before) :])


def test_every_dialect_says_it_whole_and_streamed(server: ServerProcess, expected: str) -> None:
    assert " " in expected
    assert completed(server) == completed(server, stream=True) == expected
    assert completed(server, echo=True) == PROMPT + expected
    assert predicted(server).json()["generated_text"] == expected
    lines = [json.loads(line) for line in predicted(server, stream=True).text.splitlines()]
    assert "".join(line["token"]["text"] for line in lines) == lines[-1]["generated_text"] == expected
    given = {"text_input": PROMPT, "max_tokens": COUNT, "temperature": 0, "ignore_eos": True}
    excluded = {**given, "exclude_input_in_output": True}
    assert post(server, "/v2/models/bare/generate", excluded).json()["text_output"] == expected
    assert post(server, "/v2/models/bare/generate", given).json()["text_output"] == PROMPT + expected
    events = post(server, "/v2/models/bare/generate_stream", {**given, "stream": True}).text.split("\n\n")
    parts = [json.loads(event[6:])["text_output"] for event in events if event.startswith("data: ")]
    assert "".join(parts) == expected


def test_a_stop_text_is_cut_wherever_it_begins(server: ServerProcess, expected: str) -> None:
    for start in range(0, len(expected) - 2, 3):
        stop = expected[start : start + 2]
        cut = expected[: expected.index(stop)]
        assert completed(server, stop=stop) == cut
        assert completed(server, stop=stop, stream=True) == cut


def test_fields_without_effect_are_named_in_every_dialect(server: ServerProcess) -> None:
    body = {"model": "bare", "prompt": PROMPT, "max_tokens": 2, "chat_id": "1", "keep_alive": "5m"}
    assert post(server, "/v1/completions", body).headers["trivium-ignored"] == "keep_alive, chat_id"
    streamed = post(server, "/v1/completions", {**body, "stream": True})
    assert streamed.headers["trivium-ignored"] == "keep_alive, chat_id"
    given = {"max_new_tokens": 2, "use_lru_kv_cache": True, "mood": 1}
    answer = post(server, "/predictions/djl", {"inputs": PROMPT, "parameters": given, "id": 1})
    assert set(answer.headers["trivium-ignored"].split(", ")) == {
        "parameters.use_lru_kv_cache",
        "parameters.mood",
        "id",
    }
    given = {"text_input": PROMPT, "max_tokens": 2, "mood": 1}
    for route in ("generate", "generate_stream"):
        answer = post(server, f"/v2/models/bare/{route}", {**given, "stream": route != "generate"})
        assert answer.headers["trivium-ignored"] == "mood"
    assert (
        "trivium-ignored"
        not in post(server, "/v1/completions", {**body, "chat_id": None, "keep_alive": None}).headers
    )
    said = server.said()
    assert said.count("the field 'keep_alive' of a request has no effect here, and is ignored.") == 1
    assert said.count("the field 'mood' of a request is not known here") == 1


def test_a_prompt_that_is_too_long_is_an_error_that_clients_know(server: ServerProcess) -> None:
    long = "a b c " * 200
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError, match="maximum context length is 128 tokens") as caught:
            client.completions.create(model="bare", prompt=long)
        assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "prompt")
        assert "'truncate_prompt_tokens'" in caught.value.message
        with pytest.raises(openai.BadRequestError, match="'top_p' is 0") as caught:
            client.completions.create(model="bare", prompt="a", top_p=0)
        assert caught.value.param == "top_p"
    chat = ChatOpenAI(model="bare", base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    with pytest.raises(ContextOverflowError):
        chat.invoke(long)
    with pytest.raises(ContextOverflowError):
        list(chat.stream(long))
    answer = httpx.post(f"{server.url}/predictions/djl", json={"inputs": long}, timeout=60)
    assert ("'inputs' has" in answer.text, "'truncate'" in answer.text) == (True, True), answer.text
    answer = httpx.post(f"{server.url}/v2/models/bare/generate", json={"text_input": long}, timeout=60)
    assert ("'text_input' has" in answer.text, "'truncate_prompt_tokens'" in answer.text) == (True, True), (
        answer.text
    )


# -- what clients of vLLM ask ------------------------------------------------------------------------------


def test_tokens_of_texts_and_texts_of_tokens(server: ServerProcess) -> None:
    made = sentence_pieces()
    for words in (
        {"prompt": PROMPT},
        {"prompt": PROMPT, "add_special_tokens": False},
        {"prompt": PROMPT * 200},
    ):
        told = post(server, "/tokenize", {"model": "bare", **words}).json()
        special = words.get("add_special_tokens", True)
        assert told["tokens"] == made(words["prompt"], add_special_tokens=special)["input_ids"]
        assert (told["count"], told["max_model_len"]) == (len(told["tokens"]), 128)
        back = post(server, "/detokenize", {"model": "bare", "tokens": told["tokens"]}).json()
        assert back == {"prompt": made.decode(told["tokens"])}
    chat = post(
        server, "/tokenize", {"model": "bare", "messages": [{"role": "user", "content": "hi"}]}
    ).json()
    asked = {"model": "bare", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    assert post(server, "/v1/chat/completions", asked).json()["usage"]["prompt_tokens"] == chat["count"]
    refused = httpx.post(f"{server.url}/detokenize", json={"model": "bare", "tokens": [2**30]})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tokens")


def test_how_likely_a_text_is(server: ServerProcess) -> None:
    """As lm-eval asks: prompts as ids, echoed with the log probabilities of their tokens, and one token more."""
    made = sentence_pieces()
    prompts = [made(words)["input_ids"] for words in (PROMPT, "One", f"{PROMPT} {PROMPT}")]
    body = {
        "model": "bare",
        "prompt": prompts,
        "temperature": 0,
        "max_tokens": 1,
        "logprobs": 1,
        "seed": 1234,
    }
    choices = post(server, "/v1/completions", {**body, "echo": True}).json()["choices"]
    for choice, ids in zip(choices, prompts, strict=True):
        told = choice["logprobs"]
        assert {len(told[key]) for key in told} == {len(ids) + 1}
        assert told["token_logprobs"][0] is told["top_logprobs"][0] is None
        pairs = zip(told["token_logprobs"][1:], told["top_logprobs"][1:], strict=True)
        assert all(one <= max(top.values()) for one, top in pairs)
    alone = {**body, "prompt": prompts[0], "max_tokens": 0, "echo": True, "return_token_ids": True}
    (choice,) = post(server, "/v1/completions", alone).json()["choices"]
    assert choice["logprobs"]["token_logprobs"][1:] == pytest.approx(
        choices[0]["logprobs"]["token_logprobs"][1:-1], abs=1e-4
    )
    assert (choice["token_ids"], choice["prompt_token_ids"]) == ([], prompts[0])
    next_token = post(server, "/v1/completions", {**body, "prompt": prompts[0][:-1], "logprobs": 5}).json()
    assert next_token["choices"][0]["logprobs"]["token_logprobs"][0] == pytest.approx(
        max(choices[0]["logprobs"]["top_logprobs"][-2].values()), abs=1e-4
    )


def test_models_are_listed_with_their_context_and_their_other_names(server: ServerProcess) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        found = {model.id: model.model_dump() for model in client.models.list()}
        assert found.keys() == {"bare", "djl", "lmi"}
        assert {model["max_model_len"] for model in found.values()} == {128}
        assert found["lmi"]["root"] == "djl"
        messages = [{"role": "user", "content": "hi"}]
        answer = client.chat.completions.create(model="lmi", messages=messages, max_tokens=1)  # type: ignore[arg-type]
        assert answer.model == "lmi"
        with pytest.raises(openai.BadRequestError, match="names no model, and there is not just one"):
            client.chat.completions.create(model="", messages=messages)  # type: ignore[arg-type]


def test_probes_and_metrics_have_the_names_that_gateways_look_for(server: ServerProcess) -> None:
    assert httpx.get(f"{server.url}/health").status_code == 200
    assert httpx.get(f"{server.url}/version").json().keys() == {"version"}
    assert "vllm:" not in httpx.get(f"{server.url}/metrics").text


def test_usage_is_told_as_it_goes(server: ServerProcess) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = {"model": "bare", "prompt": PROMPT, "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    answer = post(server, "/v1/completions", {**body, "stream": True, "stream_options": options})
    events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: {")]
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == 4
    assert len(set(counts)) > 1 or len(events) == 2
