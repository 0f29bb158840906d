"""The models of the soak, one of each kind: engines and handlers of Triton's format, a DJL folder, an archive."""

from pathlib import Path

import onnx
from bench import echo_handler, repository
from onnx import TensorProto, helper

REPEAT = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            for _ in range(8):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
VERBOSE = REPEAT.replace("range(8)", "range(300)").replace("as_numpy()", "as_numpy().repeat(256, 0)")
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
WIDE = repository.ECHO.replace("[ 16 ]", "[ -1 ]")
TWO_VERSIONS = """
platform: "onnxruntime_onnx"
max_batch_size: 16
input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]
version_policy { specific { versions: [ %d ] } }
"""


def lay_out(root: Path) -> tuple[Path, Path, Path]:
    """Write a repository, a DJL folder and an archive under `root`."""
    store = root / "repository"
    for name, config in {"echo": repository.ECHO + repository.BATCHED, "wide": WIDE}.items():
        _folder(store, name, config)
    handlers = {
        "handler": (repository.PYTHON + repository.BATCHED, echo_handler.ECHO),
        "comes_and_goes": (repository.PYTHON, echo_handler.ECHO),
        "repeat": (repository.PYTHON + DECOUPLED, REPEAT),
        "verbose": (repository.PYTHON + DECOUPLED, VERBOSE),
    }
    for name, (config, code) in handlers.items():
        (_folder(store, name, config) / "model.py").write_text(code)
    for version in (1, 2):
        _scaling(_folder(store, "scale", TWO_VERSIONS % 2, version) / "model.onnx", version)
    foreign = repository.make_foreign()
    return store, foreign["djl"], foreign["torchserve"]


def choose_version(store: Path, version: int) -> None:
    """Have the next load of `scale` serve this version."""
    (store / "scale" / "config.pbtxt").write_text(TWO_VERSIONS % version)


def _folder(store: Path, name: str, config: str, version: int = 1) -> Path:
    folder = store / name / str(version)
    folder.mkdir(parents=True)
    (store / name / "config.pbtxt").write_text(config)
    return folder


def _scaling(path: Path, factor: int) -> None:
    """Write a graph that answers `y` = `x` times a factor, FP32[rows,16]."""
    weight = helper.make_tensor("factor", TensorProto.FLOAT, [], [float(factor)])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 16]) for name in ("x", "y")]
    node = helper.make_node("Mul", ["x", "factor"], ["y"])
    graph = helper.make_graph([node], "scale", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
