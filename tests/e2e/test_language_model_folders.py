"""One tiny language model in every dress that a folder can have, and damaged ones beside it, in the real server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.harness import language_models
from tests.harness.server_process import COMMAND, ServerProcess, environment, serve

PARAMETERS = "hf.threads=1,hf.slots=2,hf.max_context=128"
ASKED = {"prompt": "The statement", "max_tokens": 8, "temperature": 0}
DRESSES = ("bare", "djl", "torchserve")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return language_models.write(tmp_path_factory.mktemp("weights") / "bare", "llama")


def _cut(weights: Path, into: Path, name: str, share: float) -> None:
    """Copy the folder, with one file cut off."""
    into.mkdir()
    for file in weights.iterdir():
        data = file.read_bytes()
        (into / file.name).write_bytes(data[: int(len(data) * share)] if file.name == name else data)


@pytest.fixture(scope="module")
def server(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    djl = folder / "djl"
    djl.mkdir()
    lines = ("option.rolling_batch=vllm", f"option.model_id={weights}", "option.max_rolling_batch_size=2")
    (djl / "serving.properties").write_text("\n".join((*lines, "option.max_model_len=128\n")))
    marker = folder / "torchserve" / "MAR-INF"
    marker.mkdir(parents=True)
    model = {"modelName": "torchserve", "modelVersion": "1.0", "handler": "llm_api", "configFile": "c.yaml"}
    (marker / "MANIFEST.json").write_text(json.dumps({"runtime": "python", "model": model}))
    settings = (
        f"model_path: {weights}",
        "slots: 2",
        "max_input_tokens: 100",
        "max_new_tokens: 28",
        "threads: 1",
    )
    (marker.parent / "c.yaml").write_text("handler:\n" + "".join(f"  {line}\n" for line in settings))
    damaged = folder / "damaged"
    damaged.mkdir()
    _cut(weights, damaged / "cut", "model.safetensors", 0.9)
    _cut(weights, damaged / "tokens", "tokenizer.json", 0.5)
    (damaged / "noise.gguf").write_bytes(b"GGUF" + bytes(range(256)) * 40)
    words = ("--engine-parameters", PARAMETERS, "--ready-despite-failures")
    with serve(folder / "log", weights, djl, marker.parent, damaged, *words, models_raise=True) as served:
        yield served


def asked(server: ServerProcess, model: str) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/completions", json={**ASKED, "model": model}, timeout=60)


def test_the_same_tokens_in_every_dress(server: ServerProcess) -> None:
    answers = {dress: asked(server, dress) for dress in DRESSES}
    texts = {dress: answer.json()["choices"][0]["text"] for dress, answer in answers.items()}
    assert texts["bare"]
    assert set(texts.values()) == {texts["bare"]}, texts


@pytest.mark.parametrize("model", ["cut", "tokens", "noise"])
def test_a_damaged_one_fails_by_itself(server: ServerProcess, model: str) -> None:
    answer = asked(server, model)
    assert answer.status_code in (404, 503), answer.text
    assert f"{model} " in server.said()
    assert server.has_ended() is False


def test_check_says_what_the_model_is_and_takes(weights: Path) -> None:
    command = (*COMMAND, "check", weights, "--engine-parameters", PARAMETERS)
    variables = {**environment(), "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120, check=True)
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("  ")}
    expected = {
        "architecture": ("LlamaForCausalLM", "(architectures)"),
        "slots": ("2", "--engine-parameters of the server"),
        "context": ("128 tokens per slot", "--engine-parameters of the server"),
        "trained_context": ("512", "(max_position_embeddings)"),
        "dtype": ("fp32", "the checkpoint's"),
        "memory": ("GB: weights", "an estimate"),
    }
    for name, words in expected.items():
        assert [word for word in words if word not in rows[name]] == []
