"""Clients of language models, as people run them: openai's, langchain's and huggingface_hub's, what litellm and
llama-index were recorded to send, and bodies with the fields of editors and chat applications, which are not run here.
`make clients` has the recorded ones talk again.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import BadRequestError, HfHubHTTPError
from langchain_openai import ChatOpenAI
from tests.e2e.language_clients.record import AS_LONG, CONTEXT, LONG, MODEL, RECORD
from tests.harness.language_models import write
from tests.harness.server_process import ServerProcess, serve

CHATS, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
ASK = {"role": "user", "content": "Why?"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    bare, model = write(folder / "bare", "llama"), folder / MODEL
    model.mkdir()
    lines = (f"option.model_id={bare}", "option.rolling_batch=auto", "option.max_rolling_batch_size=2")
    own = (f"option.max_model_len={CONTEXT}", "option.tgi_compat=true\n")
    (model / "serving.properties").write_text("\n".join((*lines, *own)))
    words = ("--engine-parameters", "hf.threads=1", "--profile", "djl")
    with serve(folder / "log", model, *words) as served:
        yield served


def conversation(answer: Callable[[list[dict[str, str]]], str]) -> list[dict[str, str]]:
    """Five turns, each with all that was said before."""
    messages: list[dict[str, str]] = []
    for turn in range(5):
        messages.append({"role": "user", "content": f"Turn {turn}?"})
        messages.append({"role": "assistant", "content": answer(messages)})
    return messages


def test_openai_and_langchain_say_the_same_whole_and_streamed(server: ServerProcess) -> None:
    own = {"model": MODEL, "max_tokens": 8, "temperature": 0}
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    chat = ChatOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, **own)
    create = client.chat.completions.create
    ways: dict[str, Callable[[list[dict[str, str]]], str]] = {
        "openai": lambda said: create(messages=said, **own).choices[0].message.content,
        "openai, streamed": lambda said: "".join(
            chunk.choices[0].delta.content or "" for chunk in create(messages=said, stream=True, **own)
        ),
        "langchain": lambda said: chat.invoke(said).content,
        "langchain, streamed": lambda said: "".join(chunk.content for chunk in chat.stream(said)),
    }
    told: dict[str, list[dict[str, str]]] = {name: conversation(answer) for name, answer in ways.items()}
    assert all(messages == told["openai"] for messages in told.values())
    client.close()


# -- huggingface_hub ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["", "/v1"])
def test_the_hub_s_client_chats(server: ServerProcess, base: str) -> None:
    client = InferenceClient(base_url=server.url + base, api_key="none")
    fields = {"model": MODEL, "max_tokens": 8, "temperature": 0.0}

    def whole(messages: list[dict[str, str]]) -> str:
        return str(client.chat_completion(messages, **fields).choices[0].message.content)

    def streamed(messages: list[dict[str, str]]) -> str:
        chunks = client.chat_completion(messages, stream=True, **fields)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    assert conversation(streamed) == conversation(whole)


def test_errors_that_the_hub_s_client_raises(server: ServerProcess) -> None:
    client = InferenceClient(base_url=server.url, api_key="none")
    with pytest.raises(BadRequestError, match="maximum context length is 256 tokens"):
        client.chat_completion([{"role": "user", "content": LONG}], model=MODEL)
    with pytest.raises(BadRequestError, match="tool_choice none"):
        client.chat_completion([ASK], model=MODEL, tools=[TOOL])
    with pytest.raises(
        HfHubHTTPError, match="There is no model 'dummy'"
    ):  # what it sends where none is named
        client.chat_completion([ASK])
    with pytest.raises(HfHubHTTPError, match="404"):  # it asks TGI's own route, at the base itself
        client.text_generation("Why?")


def test_the_hub_s_client_continues_texts_of_a_model_that_answers_as_tgi(server: ServerProcess) -> None:
    client = InferenceClient(base_url=f"{server.url}/predictions/{MODEL}", api_key="none")
    whole = client.text_generation("Why?", max_new_tokens=6)
    assert "".join(client.text_generation("Why?", max_new_tokens=6, stream=True)) == whole
    detailed = client.text_generation("Why?", max_new_tokens=6, details=True)
    assert (detailed.generated_text, detailed.details.generated_tokens) == (whole, 6)
    parts = list(client.text_generation("Why?", max_new_tokens=6, details=True, stream=True))
    assert [part.token.id for part in parts] == [token.id for token in detailed.details.tokens]
    assert [part.token.logprob for part in parts] == [token.logprob for token in detailed.details.tokens]
    assert parts[-1].generated_text == whole
    with pytest.raises(HfHubHTTPError, match=r"parameters\.grammar"):
        client.text_generation("Why?", grammar={"type": "json", "value": {}})


# -- litellm and llama-index -------------------------------------------------------------------------------


def recorded() -> list[Any]:
    found = json.loads(Path(RECORD).read_text())
    return [pytest.param(one, id=f"{at}-{one['agent']}-{one['status']}") for at, one in enumerate(found)]


@pytest.mark.parametrize("one", recorded())
def test_what_litellm_and_llama_index_send(server: ServerProcess, one: dict[str, Any]) -> None:
    """The same status and code as then, at which litellm raised the exceptions that `record.py` expects."""
    body = json.loads(json.dumps(one["body"]).replace(AS_LONG, LONG))
    answer = httpx.post(server.url + one["path"], json=body, timeout=60)
    assert answer.status_code == one["status"], answer.text
    if answer.status_code == 200:
        assert "trivium-ignored" not in answer.headers
    else:
        error = answer.json()["error"]
        assert error["code"] == one["code"]
        is_long = one["code"] == "context_length_exceeded"
        assert (
            "This model's maximum context length is" in error["message"]
        ) == is_long  # litellm reads the text


# -- fields of applications ---------------------------------------------------------------------------------

PART = {"type": "text", "text": "Why?"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALL = {"id": "1", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{}"}}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
OPEN_WEBUI = (
    *("chat_id", "session_id", "id", "features", "variables", "tool_ids", "tool_servers", "files", "params"),
    *("background_tasks", "filter_ids", "model_item"),
)
TAKEN: dict[str, tuple[dict[str, Any], set[str]]] = {
    "Open WebUI's chat": ({**dict.fromkeys(OPEN_WEBUI, "x"), **USAGE}, set(OPEN_WEBUI)),
    "Open WebUI's settings for Ollama": (
        {"keep_alive": "30m", "num_ctx": 4096, "mirostat": 1, "repeat_penalty": 1.1, "stop": []},
        {"keep_alive", "num_ctx", "mirostat", "repeat_penalty"},
    ),
    "Open WebUI's title": (
        {"stream": False, "max_completion_tokens": 100, "metadata": {"task": "title"}},
        {"metadata"},
    ),
    "Open WebUI's answer that was thought about": (
        {"messages": [ASK, {"role": "assistant", "content": "x", "reasoning_content": "y"}, ASK]},
        set(),
    ),
    "Continue's chat": (
        {
            "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [PART, PART]}],
            **USAGE,
        },
        set(),
    ),
    "Continue's completion, with a stop text for each keyword": (
        {"prompt": "def f(", "temperature": 0.01, "stop": [f"\nword{i}" for i in range(19)], "stream": True},
        set(),
    ),
    "Continue's edit": (
        {"prediction": {"type": "content", "content": "x"}, "parallel_tool_calls": False},
        {"prediction", "parallel_tool_calls"},
    ),
    "CodeCompanion's messages": (
        {"messages": [{**ASK, "id": 7, "opts": {"visible": True}, "cycle": 1}], "stream": True},
        {"messages.id", "messages.opts", "messages.cycle"},
    ),
    "Cline's": (
        {"messages": [{"role": "developer", "content": "d"}, {"role": "user", "content": [PART]}], **USAGE},
        set(),
    ),
    "LibreChat's": ({"user": "u", "top_p": 1, "presence_penalty": 0, **USAGE}, {"user"}),
    "n8n's": ({"n": 1, "frequency_penalty": 0, "logit_bias": {}, "stop": None, "stream": False}, set()),
    "LM Studio's": ({"temperature": 0.7, "max_tokens": -1, "stop": list("aeiou "), "stream": False}, set()),
    "Dify's": ({"user": "u", "enable_thinking": False, "stream": True}, {"user", "enable_thinking"}),
    "Flowise's": ({"extra_body": {"chat_template_kwargs": {}}}, {"extra_body"}),
    "parts that are to be cached": (
        {"messages": [{"role": "user", "content": [{**PART, "cache_control": {"type": "ephemeral"}}]}]},
        {"messages.content.cache_control"},
    ),
    "what a tool said earlier": (
        {
            "messages": [
                ASK,
                {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
                {"role": "tool", "tool_call_id": "1", "name": "f", "content": "r"},
            ]
        },
        set(),
    ),
}
"""Whose -> the fields of a body beside the model, and which of them have no effect."""

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "Continue's agent": ({"tools": [TOOL], "tool_choice": "auto"}, "tools", "tool_choice none"),
    "Continue's completion in the middle": ({"prompt": "a", "suffix": "b"}, "suffix", "Leave it out"),
    "a picture of Open WebUI's": (
        {"messages": [{"role": "user", "content": [PART, PICTURE]}]},
        "messages[0].content[1].type",
        "parts of type text alone",
    ),
    "Open WebUI's JSON": (
        {"response_format": {"type": "json_object"}},
        "response_format",
        "Say in a message which form you want",
    ),
}
"""Whose -> the fields, that which would change what the answer means, and the way out."""


def posted(server: ServerProcess, fields: dict[str, Any]) -> httpx.Response:
    path, own = (COMPLETIONS, {}) if "prompt" in fields else (CHATS, {"messages": [ASK]})
    most = "max_tokens" if "max_completion_tokens" not in fields else "max_completion_tokens"
    body = {"model": MODEL, most: 4, "ignore_eos": True, **own, **fields}
    return httpx.post(server.url + path, json=body, timeout=60)


@pytest.mark.parametrize("whose", TAKEN)
def test_a_posted_body_is_answered(server: ServerProcess, whose: str) -> None:
    fields, ignored = TAKEN[whose]
    answer = posted(server, fields)
    assert answer.status_code == 200, answer.text
    assert set(filter(None, answer.headers.get("trivium-ignored", "").split(", "))) == ignored
    if fields.get("stream"):
        assert answer.text.rstrip().endswith("data: [DONE]")
    said = server.said()
    assert all(f"'{name}'" in said for name in ignored)


@pytest.mark.parametrize("whose", REFUSED)
def test_a_posted_body_that_asks_for_more_is_refused(server: ServerProcess, whose: str) -> None:
    fields, field, way_out = REFUSED[whose]
    answer = posted(server, fields)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "unsupported_parameter", field)
    assert way_out in error["message"]
