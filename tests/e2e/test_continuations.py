"""A model whose tokenizer drops the first blank continues a prompt in every dialect as all tokens say it at once."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
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
