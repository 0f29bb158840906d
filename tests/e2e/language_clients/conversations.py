"""litellm and llama-index in conversation with a server, in an environment of their own: `URL MODEL` are the arguments.

Prints one line of JSON: what each call came to. An answer is "said", an exception its class.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # asks no network

import litellm
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

URL, MODEL = sys.argv[1:]
LONG = "a b c " * 400
ASK = [{"role": "user", "content": "Why?"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
Messages = list[dict[str, str]]


def conversation(answer: Callable[[Messages], str | None]) -> None:
    """Five turns, each with all that was said before."""
    messages: Messages = []
    for turn in range(5):
        messages.append({"role": "user", "content": f"Turn {turn}?"})
        said = answer(messages)
        assert isinstance(said, str), said
        messages.append({"role": "assistant", "content": said})


def litellm_calls() -> dict[str, Callable[[], object]]:
    litellm.suppress_debug_info = True

    def common(model: str = f"openai/{MODEL}") -> dict[str, Any]:
        return {"model": model, "api_base": URL, "api_key": "none", "max_tokens": 8, "num_retries": 0}

    def whole(messages: Messages, **fields: Any) -> str:
        return litellm.completion(messages=messages, **{**common(), **fields}).choices[0].message.content

    def streamed(messages: Messages, **fields: Any) -> str:
        chunks = litellm.completion(messages=messages, stream=True, **{**common(), **fields})
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    def falls_back(first: str, messages: Messages, **fallbacks: Any) -> None:
        other = {**common(), "mock_response": "fell back"}
        rows = [("a", common(f"openai/{first}")), ("b", other)]
        models = [{"model_name": name, "litellm_params": given} for name, given in rows]
        router = litellm.Router(model_list=models, **fallbacks)
        assert router.completion(model="a", messages=messages).choices[0].message.content == "fell back"

    options = {"include_usage": True}
    long = [{"role": "user", "content": LONG}]
    vllm = {"model": f"hosted_vllm/{MODEL}"}
    return {
        "litellm, five turns": lambda: conversation(whole),
        "litellm, five turns streamed": lambda: conversation(streamed),
        "litellm as hosted_vllm, five turns": lambda: conversation(lambda said: whole(said, **vllm)),
        "litellm as hosted_vllm, streamed": lambda: conversation(lambda said: streamed(said, **vllm)),
        "litellm, usage": lambda: streamed(ASK, stream_options=options),
        "litellm, text": lambda: litellm.text_completion(prompt="x", **common()),
        "litellm, too long": lambda: whole(long),
        "litellm, too long streamed": lambda: streamed(long),
        "litellm as hosted_vllm, too long": lambda: whole(long, **vllm),
        "litellm, no such model": lambda: whole(ASK, model="openai/none"),
        "litellm, a wrong value": lambda: whole(ASK, temperature=9),
        "litellm, tools": lambda: whole(ASK, tools=[TOOL]),
        "litellm, json": lambda: whole(ASK, response_format={"type": "json_object"}),
        "litellm, falls back from a long prompt": lambda: falls_back(
            MODEL, long, context_window_fallbacks=[{"a": ["b"]}]
        ),
        "litellm, falls back from a model that is not there": lambda: falls_back(
            "none", ASK, fallbacks=[{"a": ["b"]}]
        ),
    }


def llama_index_calls() -> dict[str, Callable[[], object]]:
    def llm(**fields: Any) -> OpenAILike:
        given = {"is_chat_model": True, "context_window": 4096, "max_tokens": 8, "max_retries": 0, **fields}
        return OpenAILike(model=MODEL, api_base=URL, api_key="none", **given)

    def messages(said: Messages) -> list[ChatMessage]:
        return [ChatMessage(role=one["role"], content=one["content"]) for one in said]

    def streamed(said: Messages, **fields: Any) -> str:
        return "".join(part.delta or "" for part in llm(**fields).stream_chat(messages(said)))

    plain = {"is_chat_model": False}
    return {
        "llama-index, five turns": lambda: conversation(
            lambda said: llm().chat(messages(said)).message.content
        ),
        "llama-index, five turns streamed": lambda: conversation(streamed),
        "llama-index of completions, five turns": lambda: conversation(
            lambda said: llm(**plain).chat(messages(said)).message.content
        ),
        "llama-index of completions, streamed": lambda: conversation(lambda said: streamed(said, **plain)),
        "llama-index, text": lambda: llm().complete("Hello"),
        "llama-index, too long": lambda: llm().chat(messages([{"role": "user", "content": LONG}])),
    }


def come_to(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "said"


print(json.dumps({name: come_to(call) for name, call in {**litellm_calls(), **llama_index_calls()}.items()}))
