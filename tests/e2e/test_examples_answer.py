"""Every example answers: a field that it does not know, one of a wrong type, and a good request behind them.

An example is what people begin with: from one whose thread dies, and whose clients wait for the response time-out, they
would learn that.
"""

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from examples.food11 import stacks
from examples.food11.make_models import make
from examples.food11.pictures import as_text, sample
from examples.library import workload
from examples.library.manage import manage
from tests.e2e.test_llm_api import archived
from tests.harness.language_models import write
from tests.harness.server_process import COMMAND, ServerProcess, environment, started, until

import trivium
from trivium.demo import classify, places

ROOT = Path(__file__).parents[2]
LONGEST = 30
"""Seconds that an answer may take; a response time-out is 120."""

PICTURE = places.pictures()[7]
TENSOR = classify.to_tensor(PICTURE)
JSON, PNG = "application/json", "image/png"


@dataclass(frozen=True)
class Asked:
    """Three bodies for one path, and what the answer to the good one has."""

    path: str
    unknown: bytes
    wrong: bytes
    good: bytes
    kind: str
    has: str


def v2(name: str, datatype: str, shape: list[int], data: object) -> dict[str, object]:
    return {"inputs": [{"name": name, "datatype": datatype, "shape": shape, "data": data}]}


def with_tensor(model: str) -> Asked:
    """A model that takes an image as a tensor."""
    good = v2("image", "FP32", [1, 1, 8, 8], TENSOR.ravel().tolist())
    unknown = v2("picture", "FP32", [1, 1, 8, 8], TENSOR.ravel().tolist())
    wrong = v2("image", "BYTES", [1], ["seven"])
    bodies = [json.dumps(body).encode() for body in (unknown, wrong, good)]
    return Asked(f"/v2/models/{model}/infer", *bodies, JSON, '"name":"probabilities"')


def with_picture(model: str, has: str) -> Asked:
    """One whose handler or translator takes a picture."""
    unknown = json.dumps({"temperature": 0.5}).encode()
    wrong = json.dumps({"image": "seven"}).encode()
    return Asked(f"/predictions/{model}", unknown, wrong, PICTURE.read_bytes(), PNG, has)


DIGITS = [
    with_tensor("digits"),
    with_tensor("digits-bare"),
    with_picture("digits-python", '"data":[7]'),
    with_picture("digits_djl", '"digit":7'),
    with_picture("digits-torchserve", '"digit"'),
    with_picture("digits_picture", '"7"'),
    with_picture("digits_agree", "7"),
]


def post(url: str, body: bytes, kind: str) -> tuple[int, str]:
    """Status and text of an answer that comes in time."""
    request = urllib.request.Request(url, body, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=LONGEST) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def answers(url: str, asked: Asked) -> None:
    for body in (asked.unknown, asked.wrong):
        status, said = post(url + asked.path, body, JSON)
        assert 400 <= status < 600, said
        assert said
    status, said = post(url + asked.path, asked.good, asked.kind)
    assert status == 200, said
    assert asked.has in said


def serving(folder: Path, *words: str | Path, variables: Mapping[str, str] | None = None) -> Iterator[str]:
    log = folder / "log"
    command = (*COMMAND, "serve", "--http-port", "0", "--grpc-port", "0", *words)
    with started(log, *command, variables=variables or environment()) as process:
        server = ServerProcess(process, log)
        until(server.is_ready, server.said)
        yield server.url


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("digits")
    flow = places.workflow(folder / "flow")
    yield from serving(folder, places.models(), places.bare_model(), *places.handlers(), flow)


@pytest.mark.parametrize("asked", DIGITS, ids=lambda asked: asked.path)
def test_the_digits(digits: str, asked: Asked) -> None:
    answers(digits, asked)


@pytest.fixture(scope="module")
def llm_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("llm_api")
    for name in ("store", "model"):
        (folder / name).mkdir()
    archived(folder / "store")
    variables = {
        **environment(),
        "MODEL_PATH": str(write(folder / "model", "llama")),
        "DTYPE": "float32",
        "MAX_NEW_TOKENS": "64",
        "OMP_NUM_THREADS": "1",
    }
    yield from serving(folder, "--profile", "torchserve", folder / "store", variables=variables)


@pytest.mark.parametrize(
    ("unknown", "wrong"),
    [
        ({"text": "x", "temprature": 0.5}, {"text": "x", "temperature": "hot"}),
        ({"input_embeds": [[1.0]]}, {"inputs_embeds": "seven"}),
        ({"text": "x", "custom_generate": "a/b"}, {"text": "x", "max_new_tokens": "many"}),
        ({}, {"text": "x", "num_return_sequences": 2, "do_sample": True}),
        ({"prompt": "x"}, {"text": 7}),
        ({"text": "x", "streamer": "y"}, {"text": "x", "repetition_penalty": "many"}),
    ],
)
def test_the_llm_api(llm_api: str, unknown: object, wrong: object) -> None:
    good = json.dumps({"text": "The value", "max_new_tokens": 4}).encode()
    bodies = (json.dumps(unknown).encode(), json.dumps(wrong).encode(), good)
    answers(llm_api, Asked("/predictions/custom", *bodies, JSON, "<|endoftext|>"))


@pytest.fixture(scope="module")
def food11(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("food11")
    make(folder)
    return folder


def test_the_food_of_a_triton_repository(food11: Path) -> None:
    text = base64.b64encode(sample(3)).decode()
    with stacks.tritonserver(food11 / "repository") as address:
        good = v2("INPUT_IMAGE", "BYTES", [1, 1], [text])
        unknown, wrong = v2("PICTURE", "BYTES", [1, 1], [text]), v2("INPUT_IMAGE", "FP32", [1, 1], [0.5])
        bodies = [json.dumps(body).encode() for body in (unknown, wrong, good)]
        answers(f"http://{address}", Asked("/v2/models/food_classifier/infer", *bodies, JSON, "FOOD_LABEL"))


@pytest.mark.parametrize(("app", "file"), [("fastapi_torch", "food11.pth"), ("fastapi_onnx", "food11.onnx")])
def test_the_food_of_an_endpoint(food11: Path, app: str, file: str) -> None:
    unknown = {"picture": as_text(sample(3))}
    bodies = [json.dumps(body).encode() for body in (unknown, {"image": 7}, {"image": as_text(sample(3))})]
    with stacks.fastapi(app, food11 / file) as url:
        answers(url, Asked("/predict", *bodies, JSON, '"prediction"'))


def test_the_library(tmp_path: Path) -> None:
    async def scene() -> None:
        async with trivium.serving() as server:
            await server.register(places.bare_model(), name="image")
            place = workload.folder(tmp_path)
            await server.register(place)
            for model, tensors in (
                ("image", {"picture": TENSOR}),
                ("image", {"image": np.array(["seven"], object)}),
            ):
                with pytest.raises(trivium.ServeError):
                    async with asyncio.timeout(LONGEST):
                        await server.infer(model, tensors)
            async with asyncio.timeout(LONGEST):
                await server.infer("scale", {"unknown": np.array(["seven"], object)})  # takes any, and texts
                assert (await server.infer("image", {"image": TENSOR}))["probabilities"].argmax() == 7
                tensors = await server.infer("scale", {"x": np.array([1.0], np.float32)})
            assert tensors.items[0].array.tolist() == [2.0]
            await server.unregister("image")
            await server.unregister("scale")

    asyncio.run(scene())


def test_every_example_is_here() -> None:
    """A new one finds this list, and joins it."""
    found = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert found == {"digits", "food11", "library", "llm_api"}
    assert callable(manage)
