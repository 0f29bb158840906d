"""A small network that names digits, trained by scikit-learn, in the files of OpenVINO and of Paddle.

Paddle is used in processes of its own alone, whose program this file is: it does not bear every library beside it.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.table_models import ROWS, answers, digits
from tests.harness.virtual_models import make_spec

from trivium.catalogue import CATALOGUE
from trivium.types.errors import ServeError
from trivium.types.spec import Batching, ModelSpec

PICTURES = 20
WIDE, TIMES = 1500, 10
"""Width of the matrices of the slow program, and how often it multiplies them."""

NEWER, OLDER = "inference.json", "inference.pdmodel"
"""The program of a Paddle model, in both of its forms."""


@cache
def network() -> Any:
    """Return the network as scikit-learn has it."""
    neural = pytest.importorskip("sklearn.neural_network")
    rows, wanted = digits()
    return neural.MLPClassifier((32,), random_state=38, max_iter=1000, tol=0.01).fit(rows / 16, wanted)


def pictures() -> Any:
    """Return pictures as the network takes them, FP32[20, 64]."""
    return digits()[0][:PICTURES] / np.float32(16)


def chances() -> Any:
    """Return what scikit-learn says of these pictures."""
    return network().predict_proba(pictures())


def write_openvino(path: Path, rows: int = -1) -> Path:
    """Write the network as model.xml and model.bin, for so many rows, and return the first."""
    openvino = pytest.importorskip("openvino")
    ops = openvino.opset13
    rows_given = ops.parameter([rows, 64], openvino.Type.f32, name="x")
    last: Any = rows_given
    for place, (weights, bias) in enumerate(zip(network().coefs_, network().intercepts_, strict=True)):
        last = ops.relu(last) if place else last
        last = ops.add(ops.matmul(last, _constant(ops, weights), False, False), _constant(ops, bias))
    last = ops.softmax(last, 1)
    rows_given.output(0).set_names({"x"})
    last.output(0).set_names({"scores", "another"})
    path.parent.mkdir(parents=True, exist_ok=True)
    openvino.save_model(openvino.Model([last], [rows_given], "digits"), path, compress_to_fp16=False)
    return path


def write_onnx(path: Path) -> Path:
    """Write the network as a file of ONNX, and return it."""
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    arrays = {
        name: np.asarray(one, np.float32)
        for name, one in zip(("v", "c", "w", "b"), (*network().coefs_, *network().intercepts_), strict=True)
    }
    nodes = [
        make.make_node("Gemm", ["x", "v", "w"], ["a"]),
        make.make_node("Relu", ["a"], ["r"]),
        make.make_node("Gemm", ["r", "c", "b"], ["s"]),
        make.make_node("Softmax", ["s"], ["scores"]),
    ]
    ends = [
        [make.make_tensor_value_info(name, 1, ["rows", width])] for name, width in (("x", 64), ("scores", 10))
    ]
    kept = [onnx.numpy_helper.from_array(one, name) for name, one in arrays.items()]
    graph = make.make_graph(nodes, "digits", *ends, kept)
    made = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.SerializeToString())
    return path


def _constant(ops: Any, values: Any) -> Any:
    return ops.constant(np.asarray(values, np.float32))


def write_paddle(folder: Path, program: str = NEWER) -> Path:
    """Write the network as a program of Paddle with its parameters into a folder, and return the program."""
    if find_spec("paddle") is None:
        pytest.skip("PaddlePaddle is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    arrays = [*network().coefs_, *network().intercepts_]
    np.savez(folder / "weights.npz", *[np.asarray(one, np.float32) for one in arrays])
    run("save", folder, environment={"FLAGS_enable_pir_api": str(int(program == NEWER))})
    (folder / "weights.npz").unlink()
    return folder / program


def write_slow_paddle(folder: Path) -> Path:
    """Write a program of Paddle that computes for about a second whatever it is given, FP32[n, 64] to FP32[n, 1]."""
    if find_spec("paddle") is None:
        pytest.skip("PaddlePaddle is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    run("save_slow", folder)
    return folder / NEWER


def run(*words: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run this file with these words in a process of its own; it must end well."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.digit_networks", *map(str, words)],
        env={**os.environ, "GLOG_minloglevel": "3", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def completed(path: Path, engine: str, parameters: dict[str, str], batching: Batching = ROWS) -> ModelSpec:
    """Return a spec of a file, completed by what its engine says of it; its first dimension is the batch's."""
    bare = replace(
        make_spec(batching, inputs=(), outputs=()),
        root=path.parent,
        entry=path.name,
        engine=engine,
        parameters=parameters,
    )
    facts = CATALOGUE.engines[engine].facts(bare)
    inputs, outputs = (
        tuple(replace(one, dims=one.dims[1:]) for one in tensors) for tensors in (facts.inputs, facts.outputs)
    )
    return replace(bare, inputs=inputs, outputs=outputs)


def _save(folder: str) -> None:
    import paddle

    kept = np.load(f"{folder}/weights.npz")
    first, second, bias, last = (kept[name] for name in kept.files)
    layers = [paddle.nn.Linear(64, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 10), paddle.nn.Softmax()]
    for layer, values in ((layers[0], (first, bias)), (layers[2], (second, last))):
        layer.weight.set_value(values[0])
        layer.bias.set_value(values[1])
    made = paddle.nn.Sequential(*layers)
    made.eval()
    taken = paddle.static.InputSpec([None, 64], "float32", "x")
    paddle.jit.save(made, f"{folder}/inference", input_spec=[taken])


def _save_slow(folder: str) -> None:
    import paddle

    class Slow(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.last = paddle.nn.Linear(64, 1)

        def forward(self, rows: Any) -> Any:
            wide = paddle.ones([WIDE, WIDE]) * rows.mean()
            for _ in range(TIMES):
                wide = paddle.matmul(wide, wide) / WIDE
            return self.last(rows) + wide[0, 0]

    taken = paddle.static.InputSpec([None, 64], "float32", "x")
    paddle.jit.save(Slow(), f"{folder}/inference", input_spec=[taken])


def _bare(program: str, parameters: str) -> None:
    """Print what Paddle itself answers."""
    import paddle.inference

    predictor = paddle.inference.create_predictor(paddle.inference.Config(program, parameters))
    predictor.get_input_handle("x").copy_from_cpu(pictures())
    predictor.run()
    (name,) = predictor.get_output_names()
    print(json.dumps(predictor.get_output_handle(name).copy_to_cpu().tolist()))


def _ask(engine: str, path: str, *parameters: str) -> None:
    """Print what our engine makes of a file, or why it does not."""
    try:
        spec = completed(Path(path), engine, dict(one.split("=", 1) for one in parameters))
        rows = pictures()
        outcomes = answers(spec, rows[:1], rows[1:8], rows[8:])
    except ServeError as error:
        print(json.dumps({"refused": error.message}))
        return
    told = [[one.name, one.datatype.wire, list(one.dims)] for one in (*spec.inputs, *spec.outputs)]
    name = spec.outputs[0].name
    found = [one.message if isinstance(one, ServeError) else one[name].tolist() for one in outcomes]
    print(json.dumps({"tensors": told, "outcomes": found}))


if __name__ == "__main__":
    {"save": _save, "save_slow": _save_slow, "bare": _bare, "ask": _ask}[sys.argv[1]](*sys.argv[2:])
