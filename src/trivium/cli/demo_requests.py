"""Requests to paste for the language model of `trivium demo --llm`: one in each way in which clients ask for text.

Presentation only: pure, but for printing.
"""

import json
from collections.abc import Sequence

from rich.console import Console

from trivium.types.spec import ModelSpec

QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."
_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
PROMPT = f"<|im_start|>system\n{_SYSTEM}<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
"""The question as the model's own template writes it, for clients that send a text as it is."""

_MOST = 32


def requests(url: str, model: str, profile: str) -> list[tuple[str, str]]:
    """Return a title and a command for each way in which this profile is asked for text."""
    messages = [{"role": "user", "content": QUESTION}]
    chat: dict[str, object] = {"model": model, "messages": messages, "max_tokens": _MOST, "temperature": 0}
    lmi = {"inputs": PROMPT, "parameters": {"max_new_tokens": _MOST}}
    told = {"text_input": PROMPT, "max_tokens": _MOST, "temperature": 0, "exclude_input_in_output": True}
    fields = {"text": PROMPT, "max_new_tokens": _MOST}
    form = " ".join(f"--data-urlencode {_quoted(f'{key}={value}')}" for key, value in fields.items())
    openai = [
        ("OpenAI's chat", _posted(f"{url}/v1/chat/completions", chat)),
        ("the same, streamed", _posted(f"{url}/v1/chat/completions", {**chat, "stream": True}, "-N ")),
    ]
    triton = [("Triton's generate", _posted(f"{url}/v2/models/{model}/generate", told))]
    djl = [("DJL's LMI", _posted(f"{url}/predictions/{model}", lmi))]
    llm_api = [("the LLM-API of TorchServe", f"curl -sN {url}/predictions/{model} {form}")]
    return {
        "native": [*openai, *djl, *triton],
        "djl": [*openai, *djl],
        "torchserve": [*openai, *llm_api],
        "torchserve-command": [*openai, *llm_api],
        "triton": triton,
    }[profile]


def print_language_model(console: Console, url: str, specs: Sequence[ModelSpec], profile: str) -> None:
    """Print them for the model that is served."""
    for spec in specs:
        for title, command in requests(url, spec.name, profile):
            console.print(f"\nBy {title}:\n", soft_wrap=True, markup=False)
            console.print(command, soft_wrap=True, markup=False, highlight=False)
    console.print(f"\nEach answers: {ANSWER}\n", soft_wrap=True, markup=False)


def _posted(url: str, body: object, flags: str = "") -> str:
    return f"curl -s {flags}{url} -H 'Content-Type: application/json' -d {_quoted(json.dumps(body))}"


def _quoted(text: str) -> str:
    """Return a text as a shell takes it, in one line: newlines stand as they are in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"
