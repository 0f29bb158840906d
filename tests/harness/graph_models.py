"""One small network for the digits that scikit-learn ships, in the files of libraries of graphs: rows of 64 numbers in,
the probabilities of ten digits out.
"""

import os
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.harness.table_models import ROWS, digits

from trivium.catalogue import CATALOGUE
from trivium.types.spec import Batching, ModelSpec

_PADDLE = """
import sys
import numpy as np
import paddle
weights = np.load(sys.argv[1])
net = paddle.nn.Sequential(
    paddle.nn.Linear(64, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 10), paddle.nn.Softmax(axis=1)
)
for layer, at in ((net[0], 0), (net[2], 1)):
    layer.weight.set_value(weights[f"w{at}"])
    layer.bias.set_value(weights[f"b{at}"])
net.eval()
paddle.jit.save(net, sys.argv[2], input_spec=[paddle.static.InputSpec([None, 64], "float32", "x")])
"""


@cache
def weights() -> dict[str, Any]:
    """Return those of two layers, w0 FP32[64, 32], b0, w1 FP32[32, 10] and b1, trained from one seed."""
    networks = pytest.importorskip("sklearn.neural_network")
    rows, wanted = digits()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that more rounds would make it better
        trained = networks.MLPClassifier((32,), random_state=0, max_iter=40).fit(rows, wanted)
    found: dict[str, Any] = {}
    for at, (weight, bias) in enumerate(zip(trained.coefs_, trained.intercepts_, strict=True)):
        found |= {f"w{at}": weight.astype(np.float32), f"b{at}": bias.astype(np.float32)}
    return found


def probabilities(rows: Any) -> Any:
    """Return what the network computes, by numpy alone."""
    own = weights()
    margins = np.maximum(rows @ own["w0"] + own["b0"], 0) @ own["w1"] + own["b1"]
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def onnx_model(rows: int | str = "rows") -> onnx.ModelProto:
    """Return the network as a model of ONNX, for so many rows."""
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w1", "b1"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"], axis=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, size])
        for name, size in (("x", 64), ("y", 10))
    ]
    held = [numpy_helper.from_array(array, name) for name, array in weights().items()]
    graph = helper.make_graph(nodes, "digits", ends[:1], ends[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_openvino(path: Path, rows: int | str = "rows") -> Path:
    """Write the network as OpenVINO's .xml and .bin, in full precision; return the former."""
    openvino = pytest.importorskip("openvino")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_suffix(".onnx")
    onnx.save(onnx_model(rows), file)
    openvino.save_model(openvino.convert_model(file), path, compress_to_fp16=False)
    file.unlink()
    return path


def write_paddle(stem: Path, is_old: bool = False) -> Path:
    """Write the network as Paddle's files, STEM.json or STEM.pdmodel with STEM.pdiparams, and return the first. It is
    made in a process of its own: Paddle bears no other library that the tests may have loaded.
    """
    pytest.importorskip("sklearn")
    stem.parent.mkdir(parents=True, exist_ok=True)
    held = stem.with_suffix(".npz")
    np.savez(held, **weights())
    flags = {"FLAGS_enable_pir_api": "0" if is_old else "1", "GLOG_minloglevel": "3"}
    done = subprocess.run(
        [sys.executable, "-c", _PADDLE, str(held), str(stem)],
        env=os.environ | flags,
        capture_output=True,
        text=True,
        check=False,
    )
    held.unlink()
    assert done.returncode == 0, done.stderr
    return stem.with_suffix(".pdmodel" if is_old else ".json")


def spec_of(path: Path, engine: str, batching: Batching = ROWS, **parameters: str) -> ModelSpec:
    """Return a spec of a file as it is, completed by what its engine says of it, with rows as its first dimension."""
    bare = ModelSpec("m", "1", path.parent, engine, path.name, parameters=parameters)
    facts = CATALOGUE.engines[engine].facts(bare)
    inputs, outputs = (
        [replace(one, dims=one.dims[1:]) for one in side] for side in (facts.inputs, facts.outputs)
    )
    return replace(bare, inputs=tuple(inputs), outputs=tuple(outputs), batching=batching)
