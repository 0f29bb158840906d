"""Models of eight kinds for one server, whose handlers answer whatever they are sent: what is described, and asked."""

import json
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness import djl_folders, handlers, language_models, table_models

TRITON = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        given = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]) for x in given]
"""
DJL = """
from djl_python import Output


def handle(inputs):
    return None if inputs.is_empty() else Output().add_as_json({"bytes": len(inputs.get_as_bytes())})
"""
TORCHSERVE = """
class Counts:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        return [{"parts": len(row)} for row in data]
"""
TYPED = """
class Words:
    def predict(self, text: str, most: int = 3) -> list[str]:
        return text.split()[: max(most, 0)]
"""


def write(root: Path) -> list[Path]:
    """Write them into a folder, and return the paths to serve."""
    repository = root / "repository"
    models.identity(repository, "echo", rows=4)
    models.add(repository, "add", rows=4)
    handlers.triton(repository, "python", TRITON)
    _scripted(repository / "scripted")
    djl_folders.make(root, "djl", "engine=Python", **{"model.py": DJL})
    table_models.write(root / "table" / "digits.json", "xgboost")
    archive = root / "torchserve"
    (archive / "MAR-INF").mkdir(parents=True)
    (archive / "handler.py").write_text(TORCHSERVE)
    model = {"modelName": "counts", "modelVersion": "1.0", "handler": "handler.py"}
    (archive / "MAR-INF" / "MANIFEST.json").write_text(json.dumps({"runtime": "python", "model": model}))
    (root / "app.py").write_text(TYPED)
    language_models.write(root / "chatty", "llama", max_position_embeddings=64)  # what it says is short
    return [
        *(repository, root / "djl", root / "table" / "digits.json", archive),
        *(Path(f"{root / 'app.py'}:Words"), root / "chatty"),
    ]


def _scripted(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    (folder / "1").mkdir(parents=True)
    torch.jit.script(torch.nn.Identity()).save(str(folder / "1" / "model.pt"))
    tensor = 'name: "{}__0" data_type: TYPE_FP32 dims: [ 2 ]'
    (folder / "config.pbtxt").write_text(
        f'backend: "pytorch"\nmax_batch_size: 4\ninput {{ {tensor.format("INPUT")} }}\n'
        f"output {{ {tensor.format('OUTPUT')} }}\n"
    )
