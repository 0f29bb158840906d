"""The real server with models of the engine `vllm`, by a stand-in for vLLM: wires, streams, metrics, death, check."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.harness.language_models import write
from tests.harness.lora_folders import write_adapter
from tests.harness.server_process import COMMAND, ServerProcess, environment, running, until
from tests.harness.vllm_models import with_stand_in

FAILS, DIES, WAITS = 761, 762, 764


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models")
    weights = write(place / "weights", "llama")
    djl = place / "djl" / "lmi"
    djl.mkdir(parents=True)
    lines = ("option.rolling_batch=vllm", f"option.model_id={weights}", "option.max_rolling_batch_size=2")
    (djl / "serving.properties").write_text("\n".join((*lines, "option.gpu_memory_utilization=0.5\n")))
    version = place / "triton" / "v" / "1"
    version.mkdir(parents=True)
    told = {"model": str(weights), "max_num_seqs": 4, "disable_log_requests": True, "enable_lora": True}
    (version / "model.json").write_text(json.dumps(told))
    (version / "multi_lora.json").write_text(json.dumps({"eng": str(write_adapter(place / "eng", weights))}))
    (version.parent / "config.pbtxt").write_text('backend: "vllm"\ninstance_group [{ kind: KIND_MODEL }]\n')
    return place


WORDS = ("--text-engine", "vllm", "--engine-parameters", "vllm.slots=4,vllm.kv_bytes=64M")


@pytest.fixture(scope="module")
def server(folders: Path) -> Iterator[ServerProcess]:
    places = (folders / "weights", folders / "djl", folders / "triton")
    variables = with_stand_in(environment())
    with running(
        folders / "log", "serve", *places, *WORDS, "--metrics-vllm", variables=variables, models_raise=True
    ) as served:
        yield served


def asked(server: ServerProcess, model: str = "weights", **fields: object) -> httpx.Response:
    body = {"model": model, "prompt": [5, 6, 7], "max_tokens": 6, "temperature": 0} | fields
    return httpx.post(f"{server.url}/v1/completions", json=body, timeout=60)


def text_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["choices"][0]["text"]
    return text


def test_every_wire_gets_the_same_text(server: ServerProcess) -> None:
    expected = text_of(asked(server))
    assert expected
    assert text_of(asked(server, "v")) == text_of(asked(server, "lmi")) == expected
    ids = {"input_ids": [5, 6, 7], "max_tokens": 6, "temperature": 0}
    for model in ("weights", "v"):
        answer = httpx.post(f"{server.url}/v2/models/{model}/generate", json=ids, timeout=60)
        assert answer.json()["text_output"] == expected, answer.text
        asks = {**ids, "stream": True}
        with httpx.stream("POST", f"{server.url}/v2/models/{model}/generate_stream", json=asks) as stream:
            events = [json.loads(line[5:]) for line in stream.iter_lines() if line.startswith("data:")]
        assert "".join(event["text_output"] for event in events) == expected
        assert len(events) > 1
    config = httpx.get(f"{server.url}/v2/models/v/config").json()
    assert (config["backend"], config["max_batch_size"]) == ("vllm", 0)
    assert "text_input" in [one["name"] for one in config["input"]]


def test_a_chat_is_streamed_and_counted(server: ServerProcess) -> None:
    body = {
        "model": "weights",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 8,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=body, timeout=60) as stream:
        lines = [line[6:] for line in stream.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    assert json.loads(lines[-2])["usage"]["completion_tokens"] == 8
    text = httpx.get(f"{server.url}/metrics").text
    for name in (
        "trivium_generated_tokens_total",
        "trivium_prompt_tokens_total",
        "trivium_first_token_seconds",
    ):
        assert f'{name}_count{{model="weights"' in text or f'{name}{{model="weights"' in text, name
    assert 'vllm:generation_tokens_total{engine="0",model_name="weights"}' in text.replace(
        'model_name="weights",engine="0"', 'engine="0",model_name="weights"'
    )


def test_an_adapter_is_named_as_the_model(server: ServerProcess) -> None:
    assert text_of(asked(server, "eng")) != text_of(asked(server, "v"))
    fields = {"input_ids": [5, 6, 7], "max_tokens": 6, "temperature": 0, "lora_name": "eng"}
    answer = httpx.post(f"{server.url}/v2/models/v/generate", json=fields, timeout=60)
    assert answer.json()["text_output"] == text_of(asked(server, "eng"))


def test_what_one_request_asks_for_fails_that_one(server: ServerProcess) -> None:
    refused = asked(server, presence_penalty=2.0, temperature=1.0, typical_p=0.5)
    assert refused.status_code == 400, refused.text
    failed = asked(server, prompt=[5, FAILS])
    assert failed.status_code == 500, failed.text
    assert "a kernel of this request failed" in failed.text
    assert text_of(asked(server))


def test_who_leaves_makes_room(server: ServerProcess) -> None:
    for _ in range(8):
        with pytest.raises(httpx.TimeoutException):
            httpx.post(
                f"{server.url}/v1/completions",
                json={"model": "lmi", "prompt": [5, WAITS]},
                timeout=httpx.Timeout(0.3, connect=10),
            )
    until(lambda: asked(server, "lmi").status_code == 200, server.said, 30)


def test_the_engine_dies_and_is_replaced(server: ServerProcess) -> None:
    assert asked(server, prompt=[5, DIES]).status_code >= 500
    until(lambda: asked(server).status_code == 200, server.said, 60)
    assert "vLLM's engine has ended" in server.said()


def check(*words: str | Path) -> tuple[int, str]:
    variables = with_stand_in(environment())
    done = subprocess.run(
        [*map(str, (*COMMAND, "check", *words))], env=variables, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def test_check_says_who_serves_and_what_vllm_gets(folders: Path) -> None:
    status, said = check(folders / "djl" / "lmi")
    assert status == 0, said
    assert "vllm" in said
    assert "gpu_memory_utilization=0.5, max_num_seqs=2" in " ".join(said.split())
    status, said = check(
        folders / "weights", "--text-engine", "vllm", "--engine-parameters", "vllm.max_modl_len=5"
    )
    assert status != 0, said
    assert "did you mean 'max_model_len'" in " ".join(said.split())
