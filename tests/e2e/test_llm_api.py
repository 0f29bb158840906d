"""The LLM-API on TorchServe, by the example's handler and by the engine: the same text, up to the end token."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import openai
import pytest
import torch
import transformers
from tests.harness.language_models import write
from tests.harness.server_process import COMMAND, ServerProcess, environment, started, until

from trivium.codecs.protobuf_schema import classes_of

HANDLER = Path(__file__).parents[2] / "examples" / "llm_api" / "custom_handler.py"
END = "<|end|>"
PROMPT, COUNT = "The value of an expression", 12
MESSAGES = classes_of(
    "clients.llm_api",
    {
        "Request": "1 string model_name\n2 string model_version\n3 map<string,bytes> input",
        "Response": "1 bytes prediction",
    },
)
REQUEST = MESSAGES["Request"]
CODECS = (REQUEST.SerializeToString, MESSAGES["Response"].FromString)
SERVICE = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("model"), "llama")


@pytest.fixture(scope="module")
def expected(model: Path) -> str:
    """What transformers itself answers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    ids = tokenizer(PROMPT, return_tensors="pt")
    made = loaded.generate(**ids, max_new_tokens=COUNT, do_sample=False)[0][ids["input_ids"].shape[1] :]
    return str(tokenizer.decode(made, skip_special_tokens=True))


def archived(store: Path) -> None:
    """Pack the example with the real archiver, as its guide does."""
    command = [
        Path(sys.executable).parent / "torch-model-archiver",
        "--model-name",
        "custom",
        "--version",
        "1.0",
    ]
    command += ["--handler", str(HANDLER), "--archive-format", "no-archive", "--export-path", str(store)]
    subprocess.run(command, check=True, capture_output=True)


def built_in(store: Path, model: Path) -> None:
    manifest = {
        "runtime": "python",
        "model": {"modelName": "built", "modelVersion": "1.0", "handler": "llm_api"},
    }
    place = store / "built" / "MAR-INF"
    place.mkdir(parents=True)
    (place / "MANIFEST.json").write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    store, log = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("log") / "log"
    archived(store)
    built_in(store, model)
    variables = {
        **environment(),
        "MODEL_PATH": str(model),
        "DTYPE": "float32",
        "MAX_NEW_TOKENS": "64",
        "MAX_INPUT_TOKENS": "256",
        "END_OF_STREAM_TOKEN": END,
        "OMP_NUM_THREADS": "1",
    }
    words = (*COMMAND, "serve", "--http-port", "0", "--grpc-port", "0", "--profile", "torchserve", store)
    with started(log, *words, variables=variables) as process:
        serving = ServerProcess(process, log)
        until(serving.is_ready, serving.said)
        yield serving
        serving.terminate()
        assert serving.wait() == 0, serving.said()


async def answer(url: str, **body: object) -> tuple[int, list[bytes]]:
    """The pieces of one answer, as they come."""
    async with aiohttp.ClientSession() as session, session.post(url, **body) as response:
        return response.status, [piece async for piece, _ in response.content.iter_chunks() if piece]


@pytest.mark.parametrize("name", ["custom", "built"])
@pytest.mark.parametrize("form", ["form", "json"])
def test_text_to_the_end_token(server: ServerProcess, expected: str, name: str, form: str) -> None:
    fields = {"text": PROMPT, "max_new_tokens": COUNT}
    body = (
        {"json": fields} if form == "json" else {"data": {key: str(value) for key, value in fields.items()}}
    )
    status, pieces = asyncio.run(answer(f"{server.url}/predictions/{name}", **body))
    assert status == 200
    assert b"".join(pieces).decode() == expected + END
    assert len(pieces) > 2


@pytest.mark.parametrize("name", ["custom", "built"])
def test_text_over_grpc(server: ServerProcess, expected: str, name: str) -> None:
    fields = {"text": PROMPT.encode(), "max_new_tokens": str(COUNT).encode()}
    with grpc.insecure_channel(server.grpc_address) as channel:
        stream = channel.unary_stream(f"{SERVICE}StreamPredictions", *CODECS)
        pieces = [
            each.prediction.decode() for each in stream(REQUEST(model_name=name, input=fields), timeout=120)
        ]
        assert "".join(pieces) == expected + END
        assert len(pieces) > 2
        whole = channel.unary_unary(f"{SERVICE}Predictions", *CODECS)
        text = whole(REQUEST(model_name=name, input=fields), timeout=120).prediction.decode()
        # Of a handler's parts the original answers the first alone.
        assert text == (expected + END if name == "built" else pieces[0])


@pytest.mark.parametrize("name", ["custom", "built"])
def test_embeddings_in_place_of_text(server: ServerProcess, model: Path, expected: str, name: str) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    ids = tokenizer(PROMPT, return_tensors="pt")["input_ids"]
    embeds = loaded.get_input_embeddings()(ids)[0].tolist()
    fields = {"inputs_embeds": json.dumps(embeds), "max_new_tokens": str(COUNT)}
    status, pieces = asyncio.run(answer(f"{server.url}/predictions/{name}", data=fields))
    assert (status, b"".join(pieces).decode()) == (200, expected + END)


def test_a_model_of_vllm_handler_answers_openais_client(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    config = "handler:\n  vllm_engine_config:\n    max_num_seqs: 2\n    max_model_len: 100\n"
    config += f"    served_model_name: llama3-8b\n    gpu_memory_utilization: 0.5\n  model_path: {model}\n"
    manifest = {"modelName": "chat", "handler": "vllm_handler", "configFile": "model-config.yaml"}
    (store / "chat" / "MAR-INF").mkdir(parents=True)
    text = json.dumps({"runtime": "python", "model": {**manifest, "modelVersion": "1.0"}})
    (store / "chat" / "MAR-INF" / "MANIFEST.json").write_text(text)
    (store / "chat" / "model-config.yaml").write_text(config)
    log = tmp_path / "log"
    words = ("serve", store, "--profile", "torchserve", "--http-port", "0", "--grpc-port", "0")
    with started(log, *COMMAND, *words, variables=environment()) as process:
        server = ServerProcess(process, log)
        with openai.OpenAI(
            base_url=f"{server.url}/predictions/chat/1.0/v1", api_key="none", max_retries=0
        ) as client:
            asked: dict[str, Any] = {
                "model": "llama3-8b",
                "prompt": PROMPT,
                "max_tokens": COUNT,
                "temperature": 0,
            }
            whole = client.completions.create(**asked)
            parts = client.completions.create(**asked, stream=True)
            assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text
            chat: Any = [{"role": "user", "content": "hi"}]
            answer = client.chat.completions.create(model="llama3-8b", messages=chat, max_tokens=2)
            assert answer.usage is not None
            assert answer.usage.completion_tokens == 2
            with pytest.raises(openai.BadRequestError, match="maximum context length is 100"):
                client.completions.create(**{**asked, "prompt": PROMPT * 100})
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            assert client.completions.create(**asked).choices[0].text == whole.choices[0].text
            assert {one.id for one in client.models.list()} == {"chat", "llama3-8b"}
        server.terminate()
        assert server.wait() == 0, server.said()
