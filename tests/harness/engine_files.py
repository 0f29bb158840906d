"""One model of digits in each engine's own file: what a server serves that has them all, and what measures them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.harness.digit_networks import network, write_onnx, write_openvino, write_paddle
from tests.harness.saved_models import process, save_digits
from tests.harness.table_models import TREE, digits, write

PARAMETERS = ("--engine-parameters", f"sklearn.skops_trusted_types={TREE}")
"""What a server has to be told to serve all of them."""

ROWS = 20


@dataclass(frozen=True, slots=True)
class EngineFile:
    """A model of an engine. `scale` is what a picture is divided by, `digit` the output that tells, and whether it is
    a score for each digit.
    """

    engine: str
    path: Path
    tensor: str
    scale: float = 1.0
    digit: str = "predict"
    is_scores: bool = False

    @property
    def is_tree(self) -> bool:
        """Return whether it is a forest, which each library grows by itself; all others are one network."""
        return self.scale == 1.0 and self.engine != "tensorflow"

    @property
    def name(self) -> str:
        """Return what the server calls it."""
        return self.path.stem

    def rows(self, first: int = 0, count: int = ROWS) -> np.ndarray:
        """Return pictures as it takes them, FP32[count, 64]."""
        return np.asarray(digits()[0][first : first + count] / np.float32(self.scale), np.float32)

    def found(self, values: np.ndarray) -> list[int]:
        """Return the digits that an answer names."""
        told = values.argmax(axis=1) if self.is_scores else values
        return [int(one) for one in told.ravel()]


def write_scripted(path: Path) -> Path:
    """Write the network as a TorchScript file, and return its path."""
    torch = pytest.importorskip("torch")
    layers = []
    for weight, bias in zip(network().coefs_, network().intercepts_, strict=True):
        layer = torch.nn.Linear(*weight.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(weight.T))
            layer.bias.copy_(torch.tensor(bias))
        layers.append(layer)
    module = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.Softmax(1))
    torch.jit.trace(module, torch.zeros(1, 64)).save(str(path))
    return path


def write_all(root: Path) -> list[EngineFile]:
    """Write one model for each engine that opens files of its own."""
    with process() as ask:
        ask(save_digits, root / "saved")
    scripted = write_scripted(root / "scripted.pt")
    paddle = write_paddle(root / "program")
    return [
        EngineFile("onnx", write_onnx(root / "graph.onnx"), "x", 16, "scores", True),
        EngineFile("torch", scripted, "", 16, "", True),
        EngineFile("openvino", write_openvino(root / "inter.xml"), "x", 16, "scores", True),
        EngineFile("paddle", paddle, "x", 16, "", True),
        EngineFile("tensorflow", root / "saved", "pixels", 1, "scores", True),
        EngineFile("xgboost", write(root / "boosted.json", "xgboost"), "input-0"),
        EngineFile("lightgbm", write(root / "light.txt", "lightgbm"), "input-0"),
        EngineFile("sklearn", write(root / "forest.skops", "sklearn"), "input-0"),
    ]
