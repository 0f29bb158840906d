"""The handlers of `examples/` give in `trivium.testing` what they give on the server: a language model, pictures."""

import asyncio
import json
from pathlib import Path
from shutil import copy

import numpy as np
import pytest
from examples.food11.make_models import make
from examples.food11.pictures import as_text, sample
from tests.e2e.test_testing import Asked, answered, seen
from tests.harness.language_models import write

import trivium
from trivium.testing import handler
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw

LLM = Path(__file__).parents[2] / "examples" / "llm_api" / "custom_handler.py"
MANIFEST = {
    "model": {
        "modelName": "chatty",
        "handler": LLM.name,
        "modelVersion": "1.0",
        "configFile": "model-config.yaml",
    },
    "runtime": "python",
}
CONFIG = """
handler:
  MODEL_PATH: {model}
  DTYPE: float32
  DEVICE_MAP: cpu
  MAX_NEW_TOKENS: 16
"""


def write_language_model(root: Path) -> tuple[Path, list[Asked]]:
    """The handler of `examples/llm_api` in a folder of its own, and what it is asked, one wrong field among it."""
    model, folder = write(root / "weights", "llama"), root / "chatty"
    (folder / "MAR-INF").mkdir(parents=True)
    copy(LLM, folder)
    (folder / "MAR-INF" / "MANIFEST.json").write_text(json.dumps(MANIFEST))
    (folder / "model-config.yaml").write_text(CONFIG.format(model=model))
    bodies = [
        {"text": "The value of", "max_new_tokens": 6},
        {"text": "The value", "no_such_field": 1},
        {"max_new_tokens": 6},
    ]
    return folder, [Asked("chatty", json.dumps(body).encode()) for body in bodies]


def write_pictures(root: Path) -> tuple[Path, list[Asked]]:
    """The Python model of `examples/food11`, and pictures for it, a broken one among them."""
    make(root)
    texts = [as_text(sample(1)), as_text(sample(2)), "no picture"]
    arrays = [np.array([[text.encode()]], object) for text in texts]
    return root / "repository" / "food_classifier", [
        Asked("food_classifier", arrays={"INPUT_IMAGE": array}) for array in arrays
    ]


@pytest.mark.parametrize("example", [write_language_model, write_pictures])
def test_an_example_gives_the_same_without_a_server(example: object, tmp_path: Path) -> None:
    path, questions = example(tmp_path)  # type: ignore[operator]

    async def ask() -> list[list[ResponsePart]]:
        async with trivium.serving(str(path)) as server:
            return [await answered(server, one) for one in questions]

    served = asyncio.run(ask())
    with handler(str(path)) as tested:
        found = [list(tested.run([one.operation()])[0].parts) for one in questions]
    assert [seen(parts) for parts in found] == [seen(parts) for parts in served]
    assert served[0][0].error is None
    last = served[-1][-1]
    assert last.error is not None or (isinstance(last.payload, Raw) and last.payload.status == 400)
