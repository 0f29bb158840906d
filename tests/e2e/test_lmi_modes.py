"""A tiny model under the defaults of LMI releases in the real server: OpenAI's form, LMI's, and all formatters."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import openai
import pytest
from tests.harness.language_models import sentence_pieces, write
from tests.harness.server_process import ServerProcess, serve

SIZES = ("option.max_rolling_batch_size=2", "option.max_model_len=128", "option.generation_config=vllm")
FOLDERS: Mapping[str, tuple[str, ...]] = {
    "today": (
        "engine=Python",
        "option.rolling_batch=disable",
        "option.async_mode=true",
        "option.entryPoint=djl_python.lmi_vllm.vllm_async_service",
        "option.tensor_parallel_degree=max",
        "option.served_model_name=mine",
    ),
    "tensorrt": ("engine=Python", "option.rolling_batch=trtllm", "option.mpi_mode=true"),
    "scheduled": ("engine=MPI", "option.rolling_batch=scheduler", "option.output_formatter=jsonlines_chat"),
}
GREEDY = {"max_tokens": 6, "temperature": 0, "ignore_eos": True}
LMI = {"max_new_tokens": 6, "ignore_eos_token": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    made = sentence_pieces()
    weights = write(
        folder / "weights", "llama", made=made, vocab_size=len(made), bos_token_id=1, eos_token_id=2
    )
    places = []
    for name, lines in FOLDERS.items():
        place = folder / name
        place.mkdir()
        text = "\n".join((*lines, f"option.model_id={weights}", *SIZES))
        (place / "serving.properties").write_text(text + "\n")
        places.append(place)
    with serve(folder / "log", *places, "--engine-parameters", "hf.threads=1", "--profile", "djl") as served:
        yield served


def predict(server: ServerProcess, name: str, **body: Any) -> httpx.Response:
    answer = httpx.post(f"{server.url}/predictions/{name}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer


def test_the_default_of_today_is_asked_as_openai_is(server: ServerProcess) -> None:
    whole = predict(server, "today", prompt="Once upon a", **GREEDY).json()
    assert (whole["object"], whole["model"]) == ("text_completion", "mine")
    text = whole["choices"][0]["text"]
    assert (whole["choices"][0]["finish_reason"], whole["usage"]["completion_tokens"]) == ("length", 6)
    streamed = predict(server, "today", prompt="Once upon a", stream=True, model="any", **GREEDY)
    assert streamed.headers["content-type"] == "application/jsonlines"
    chunks = [json.loads(line) for line in streamed.text.splitlines()]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == text
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        same = client.completions.create(
            model="today",
            prompt="Once upon a",
            max_tokens=6,
            temperature=0,
            extra_body={"ignore_eos": True},
        )
    assert same.choices[0].text == text
    own = predict(
        server, "today", inputs="Once upon a", parameters={**LMI, "do_sample": False, "details": True}
    )
    assert own.json()["generated_text"] == text
    assert own.json()["details"]["finish_reason"] == "length"
    refused = httpx.post(f"{server.url}/predictions/today", json={"text": "x"}, timeout=60)
    assert (refused.status_code, "neither 'inputs' nor 'prompt'" in refused.text) == (424, True)


def test_a_runtime_that_is_not_run_answers_in_lmis_form_and_is_told_once(server: ServerProcess) -> None:
    details = predict(server, "tensorrt", inputs="Once", parameters={**LMI, "details": True}).json()
    assert details["details"]["finish_reason"] == "length"
    assert len(details["details"]["tokens"]) == 6
    said = server.said()
    assert said.count("in place of TensorRT-LLM") == 1
    assert said.count("the sequence scheduler was removed upstream in 0.33.0") == 1
    assert said.count("in place of vLLM") == 1


def test_every_formatter_says_the_same_text(server: ServerProcess) -> None:
    def asked(formatter: str) -> httpx.Response:
        return predict(server, "tensorrt", inputs="Once", parameters={**LMI, "output_formatter": formatter})

    text = asked("json").json()["generated_text"]
    assert asked("none").text == text
    assert asked("3p").json()["body"]["generation"] == text
    lines = [json.loads(line) for line in asked("3p_stream").text.splitlines()]
    assert "".join(line["body"]["generation"] for line in lines) == text
    assert lines[-1]["metering"]["outputTokenCount"] == 6
    assert asked("json_chat").json()["choices"][0]["message"]["content"] == text
    assert asked("sse_chat").text.endswith("data: [DONE]\n\n")
    own = predict(server, "scheduled", inputs="Once", parameters=LMI)
    chunks = [json.loads(line)["choices"][0]["delta"] for line in own.text.splitlines()]
    assert "".join(chunk.get("content", "") for chunk in chunks) == text
