"""Tokenizers of models that people run: a prompt and its continuation are what all tokens say at once, by the token and
over the wires, whole and streamed, and cut wherever a stop text begins.
"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness.continuations import BROKEN, check_stops, check_wherever_a_prompt_ends, reading
from tests.harness.language_models import TEMPLATE, write
from tests.harness.real_tokenizers import LARGE, ROOT, SMALL
from tests.harness.server_process import ServerProcess, serve

TEXTS = (
    "Once upon a time, there was a naïve café; 你好 👩‍👩‍👧 end.  Two blanks",
    "def f(x):\n    return  x*2\t# ünï\n\n\n    if a : b ,c .d !",
    "مرحبا بالعالم، हिन्दी में लिखा ภาษาไทย 日本語のテキスト 한국어 🏳️‍🌈🧑🏽‍🚀 𝕏 ﷽",
    "  leading blanks\r\n and ▁ marks Ġ there's 's n't <|x|> </s> don ' t 12345 ...",
)
COUNT = 24

kinds = pytest.mark.parametrize(
    "kind", [*SMALL, *(pytest.param(kind, marks=pytest.mark.soak) for kind in LARGE)]
)


@cache
def tokenizer(kind: str) -> Any:
    assert ROOT.exists(), "run `make .venv-tokenizers/.made`, and `make tokenizers` for those of npm"
    return {**SMALL, **LARGE}[kind]()


@kinds
@pytest.mark.parametrize("text", TEXTS)
def test_what_follows_a_prompt_wherever_it_ends(kind: str, text: str) -> None:
    made = tokenizer(kind)
    read = reading(made)
    for adds in (True, False):
        ids = made(text, add_special_tokens=adds)["input_ids"]
        check_wherever_a_prompt_ends(read.decode, ids, read.hidden)
        check_wherever_a_prompt_ends(read.decode_all, ids)


@kinds
def test_a_stop_text_is_cut_at_every_place(kind: str) -> None:
    made = tokenizer(kind)
    read = reading(made)
    for text in TEXTS:
        ids = made(text, add_special_tokens=False)["input_ids"]
        for cut in (1, len(ids) // 2):
            if not read.decode(ids[:cut]).endswith(BROKEN):
                for size in (1, 2, 3):
                    check_stops(read, ids, cut, size)


@kinds
def test_no_two_tokens_have_one_name(kind: str) -> None:
    made = tokenizer(kind)
    read = reading(made)
    chosen = random.Random(5).sample(range(len(made)), 5000)
    names = [read.name(token) for token in chosen]
    assert all(names)
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    assert twice <= (
        set("!,.?") if kind == "bert" else set()
    )  # word pieces are written without a blank there


# -- over the wires ----------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path, kind: str) -> Iterator[ServerProcess]:
    """A server of a tiny model with a kind of tokenizer."""
    made = tokenizer(kind)
    made.chat_template = made.chat_template or TEMPLATE
    ends = {"bos_token_id": made.bos_token_id, "eos_token_id": made.eos_token_id}
    model = write(folder / "m", "llama", made=made, vocab_size=len(made), **ends)
    words = ("--engine-parameters", "hf.threads=1,hf.slots=2,hf.max_context=256", "--profile", "djl")
    with serve(folder / "log", model, *words) as server:
        yield server


class Dialects:
    """Asks one model for one continuation in four dialects."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        self._url = server.url
        self._name = name
        self._own = {"model": name, "max_tokens": COUNT, "temperature": 0, "ignore_eos": True}

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        answer = httpx.post(f"{self._url}{path}", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer

    def ids(self, prompt: str) -> tuple[list[int], list[int]]:
        """The tokens of the prompt, and of its continuation."""
        body = {**self._own, "prompt": prompt, "return_token_ids": True}
        (choice,) = self.post("/v1/completions", body).json()["choices"]
        return choice["prompt_token_ids"], choice["token_ids"]

    def chat(self, text: str, **fields: Any) -> dict[str, Any]:
        body = {**self._own, "messages": [{"role": "user", "content": text}], **fields}
        return dict(self.post("/v1/chat/completions", body).json())

    def streamed_chat(self, text: str) -> str:
        body = {**self._own, "messages": [{"role": "user", "content": text}], "stream": True}
        choices = [
            choice for event in events(self.post("/v1/chat/completions", body)) for choice in event["choices"]
        ]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    def completed(self, prompt: str, **fields: Any) -> str:
        answer = self.post("/v1/completions", {**self._own, "prompt": prompt, **fields})
        told = events(answer) if fields.get("stream") else [answer.json()]
        return "".join(choice["text"] for event in told for choice in event["choices"])

    def predicted(self, prompt: str, streams: bool) -> str:
        given = {"max_new_tokens": COUNT, "ignore_eos_token": True}
        body = {"inputs": prompt, "parameters": given, "stream": streams}
        answer = self.post(f"/predictions/{self._name}", body)
        if not streams:
            return str(answer.json()["generated_text"])
        return "".join(json.loads(line)["token"]["text"] for line in answer.text.splitlines())

    def generated(self, prompt: str, streams: bool) -> str:
        body = {"text_input": prompt, **self._own, "stream": streams, "exclude_input_in_output": True}
        del body["model"]
        route = f"/v2/models/{self._name}/generate" + ("_stream" if streams else "")
        answer = self.post(route, body)
        told = events(answer) if streams else [answer.json()]
        return "".join(one["text_output"] for one in told)


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(event[6:]) for event in answer.text.split("\n\n") if event.startswith("data: {")]


def check_dialects(ask: Dialects, made: Any) -> None:
    read = reading(made)
    for prompt in ("Once upon a", "你好 👩", "x ="):
        before, after = ask.ids(prompt)
        said = read.decode(before)
        expected = read.decode([*before, *after])[len(said) :]
        for streams in (False, True):
            assert ask.completed(prompt, stream=streams) == expected
            assert ask.completed(prompt, stream=streams, echo=True) == prompt + expected
            assert ask.predicted(prompt, streams) == expected
            assert ask.generated(prompt, streams) == expected
        whole = ask.chat(prompt, return_token_ids=True)
        asked = whole["prompt_token_ids"]
        (choice,) = whole["choices"]
        expected_chat = read.decode([*asked, *choice["token_ids"]])[len(read.decode(asked)) :]
        assert choice["message"]["content"] == ask.streamed_chat(prompt) == expected_chat
        for start in range(0, len(expected) - 2, max(1, len(expected) // 8)):
            stop = expected[start : start + 2]
            if BROKEN not in stop:
                cut = expected[: expected.index(stop)]
                assert (
                    ask.completed(prompt, stop=stop) == ask.completed(prompt, stop=stop, stream=True) == cut
                )


@pytest.mark.soak
@pytest.mark.parametrize("kind", [*SMALL, *LARGE])
def test_every_dialect_says_the_same(kind: str, tmp_path: Path) -> None:
    with served(tmp_path, kind) as server:
        check_dialects(Dialects(server, "m"), tokenizer(kind))
