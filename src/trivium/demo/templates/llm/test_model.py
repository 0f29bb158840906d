"""The language model on a server of the test's own, asked by OpenAI's protocol."""

import json
import os
import urllib.request
from typing import Any

MODEL = os.environ.get("MODEL", "HuggingFaceTB/SmolLM2-135M-Instruct")
"""What is served: a name at the Hugging Face hub, or a folder."""


def asked(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def test_it_goes_on_with_a_text(trivium_server: Any) -> None:
    url = trivium_server(MODEL).url
    name = asked(f"{url}/v1/models")["data"][0]["id"]
    answer = asked(
        f"{url}/v1/completions", {"model": name, "prompt": "The capital of France is", "max_tokens": 4}
    )
    assert answer["usage"]["completion_tokens"] >= 1
