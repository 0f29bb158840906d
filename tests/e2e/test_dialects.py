"""One language model, asked in every dialect at once: the same settings give the same text, streamed and whole."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness import language_models
from tests.harness.server_process import ServerProcess, running

PROMPT = "The standard library of the language"
TOKENS = 24


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return language_models.write(tmp_path_factory.mktemp("models") / "tiny", "llama")


@pytest.fixture(scope="module", params=("native", "djl", "torchserve"))
def server(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    log = tmp_path_factory.mktemp(request.param) / "log"
    words = ("--http-port", "0", "--grpc-port", "0", "--profile", request.param, model)
    with running(log, "serve", *words) as server:
        yield server


Ask = Callable[[httpx.AsyncClient], Awaitable[str]]


def whole(path: str, body: dict[str, Any], *keys: str | int) -> Ask:
    """The text under these keys of the answer."""

    async def ask(client: httpx.AsyncClient) -> str:
        answer = await client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        for key in keys:
            found = found[key]
        return str(found)

    return ask


def streamed(path: str, body: dict[str, Any], *keys: str | int) -> Ask:
    """The texts under these keys of all events or lines, joined."""

    async def ask(client: httpx.AsyncClient) -> str:
        text = ""
        async with client.stream("POST", path, json=body) as answer:
            async for line in answer.aiter_lines():
                line = line.removeprefix("data: ")
                if line and line != "[DONE]":
                    found = json.loads(line)
                    for key in keys:
                        found = found.get(key, "") if isinstance(found, dict) else found[key]
                    text += found
        return text

    return ask


def as_text(path: str, body: dict[str, Any]) -> Ask:
    """The whole body without the end token."""

    async def ask(client: httpx.AsyncClient) -> str:
        answer = await client.post(path, data=body)
        assert answer.status_code == 200, answer.text
        return answer.text.removesuffix("<|endoftext|>")

    return ask


def dialects(profile: str) -> dict[str, Ask]:
    """Every way to ask for the same."""
    plain = {"model": "tiny", "prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}
    named = {"text_input": PROMPT, "temperature": 0, "max_tokens": TOKENS, "exclude_input_in_output": True}
    found = {
        "openai": whole("/v1/completions", plain, "choices", 0, "text"),
        "openai, streamed": streamed("/v1/completions", {**plain, "stream": True}, "choices", 0, "text"),
        "generate": whole("/v2/models/tiny/generate", named, "text_output"),
        "generate_stream": streamed(
            "/v2/models/tiny/generate_stream", {**named, "stream": True}, "text_output"
        ),
    }
    if profile == "torchserve":
        form = {"text": PROMPT, "max_new_tokens": str(TOKENS)}
        return {**found, "llm-api": as_text("/predictions/tiny", form)}
    lmi = {"inputs": PROMPT, "parameters": {"max_new_tokens": TOKENS}}
    return {
        **found,
        "lmi": whole("/predictions/tiny", lmi, "generated_text"),
        "lmi, streamed": streamed("/invocations?model_name=tiny", {**lmi, "stream": True}, "token", "text"),
    }


def test_all_at_once_and_one_after_the_other(server: ServerProcess) -> None:
    profile = next(name for name in ("torchserve", "djl", "native") if f"({name} profile)" in server.said())
    asks = dialects(profile)

    async def story() -> None:
        async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
            together = await asyncio.gather(*(ask(client) for ask in asks.values()))
            alone = [await ask(client) for ask in asks.values()]
        told = dict(zip(asks, together, strict=True))
        assert set(told.values()) == {told["openai"]}, told
        assert alone == together
        assert told["openai"]

    asyncio.run(story())


def test_chats_at_once(server: ServerProcess) -> None:
    messages = [{"role": "user", "content": PROMPT}]
    chat = {"model": "tiny", "messages": messages, "temperature": 0, "max_tokens": TOKENS}
    asks = [
        whole("/v1/chat/completions", chat, "choices", 0, "message", "content"),
        streamed("/v1/chat/completions", {**chat, "stream": True}, "choices", 0, "delta", "content"),
    ]
    if "(torchserve profile)" not in server.said():
        asks.append(whole("/invocations?model_name=tiny", chat, "choices", 0, "message", "content"))

    async def story() -> list[str]:
        async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
            return list(await asyncio.gather(*(ask(client) for ask in asks)))

    assert len(set(asyncio.run(story()))) == 1


def test_what_the_model_refuses_is_refused_before_the_stream(server: ServerProcess) -> None:
    with httpx.Client(base_url=server.url, timeout=120) as client:
        long = {"model": "tiny", "prompt": [5] * 600, "stream": True}
        refused = client.post("/v1/completions", json=long)
        assert (refused.status_code, "at most 511" in refused.json()["error"]["message"]) == (400, True)
        raised = client.post(
            "/v1/completions", json={"model": "tiny", "prompt": [10**6], "logit_bias": {"3": 1}}
        )
        assert (raised.status_code, "prompt" in raised.json()["error"]["message"]) == (400, True)
