"""What serving.properties asks of a server, from outside: batches of tensors, memory, libraries of operators."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime_extensions
from onnx import helper
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.onnx_models import FLOAT, TEXT, tensor
from tests.harness.raw_http import Answer

from trivium import ndlist
from trivium.codecs.ndlist import decode, encode
from trivium.types.payload import Tensors

LARGEST = 2**20


def folder(root: Path, name: str, nodes: list[object], x: object, y: object, *lines: str) -> Path:
    """A model of these nodes, with these lines in serving.properties."""
    place = root / name
    place.mkdir()
    graph = helper.make_graph(nodes, "g", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(place / "model.onnx"))
    (place / "serving.properties").write_text("\n".join(lines) + "\n")
    return place


def summing(root: Path, name: str, *lines: str) -> Path:
    """y is the sum of each row of x, which has any length."""
    nodes = [
        helper.make_node("Constant", [], ["axes"], value_ints=[1]),
        helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0),
    ]
    lines = ("engine=OnnxRuntime", "batch_size=2", "max_batch_delay=20000", "maxWorkers=1", *lines)
    return folder(root, name, nodes, tensor("x", FLOAT, "n", "m"), tensor("y", FLOAT, "n"), *lines)


def at_once(server: DjlServing, model: str, *lengths: int) -> list[Answer]:
    """Answers to vectors of ones, all of them sent at once."""
    bodies = [encode(Tensors.of({"x": np.ones(length, "f4")}).items) for length in lengths]
    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(lambda body: server.infer("POST", f"/predictions/{model}", body), bodies))


def test_requests_that_share_a_run(tmp_path: Path) -> None:
    stack, pad = summing(tmp_path, "stack"), summing(tmp_path, "pad", "batchifier=padding")
    with djl_serving(tmp_path / "log", "-m", stack, pad) as server:
        for model, lengths in (("stack", (3, 3)), ("pad", (2, 5))):
            for length, answer in zip(lengths, at_once(server, model, *lengths), strict=True):
                assert answer.status == 200, answer
                (found,) = decode(answer.body, LARGEST)
                assert (found.shape, found.array.tolist()) == ((), length)
        answers = at_once(server, "stack", 2, 3)
        assert [answer.status for answer in answers] == [400, 400]
        assert all("has the shapes [" in answer.document["message"] for answer in answers)


def test_a_load_without_enough_memory_is_refused_in_djls_words(tmp_path: Path) -> None:
    model = tmp_path / "m"
    model.mkdir()
    (model / "model.py").write_text("def handle(inputs):\n    return None\n")
    (model / "serving.properties").write_text("required_memory_mb=2000000000\n")
    with djl_serving(tmp_path / "log", variables={"SERVING_LOAD_MODELS": "NONE"}) as server:
        answer = server.manage("POST", f"/models?url=file://{model}")
        assert answer.status == 507
        assert answer.document["type"] == "WlmOutOfMemoryException"
        assert answer.document["message"] == "No enough memory to load the model."
        assert server.manage("GET", "/models").document["models"] == []


def test_a_library_of_operators_is_served(tmp_path: Path) -> None:
    node = helper.make_node("StringUpper", ["x"], ["y"], domain="ai.onnx.contrib")
    library = f"option.customOpLibrary={onnxruntime_extensions.get_library_path()}"
    model = folder(tmp_path, "upper", [node], tensor("x", TEXT, "n"), tensor("y", TEXT, "n"), library)
    with djl_serving(tmp_path / "log", "-m", model) as server:
        answer = server.infer("POST", "/predictions/upper", b"in capitals")
        (found,) = ndlist.decode(answer.body)
        assert (answer.status, found.tolist()) == (200, [b"IN CAPITALS"])


THREADS = """
import os
from djl_python import Output
def handle(inputs):
    return None if inputs.is_empty() else Output().add(os.environ.get("OMP_NUM_THREADS", "none"))
"""


def test_threads_of_a_worker_and_metrics_in_the_log(tmp_path: Path) -> None:
    model = tmp_path / "m"
    model.mkdir()
    (model / "model.py").write_text(THREADS)
    (model / "serving.properties").write_text("log_model_metric=true\nmetrics_aggregation=2\n")
    with djl_serving(tmp_path / "one", "-m", model, variables={"OMP_NUM_THREADS": ""}) as server:
        assert server.infer("POST", "/predictions/m", b"x").body == b"1"
        server.infer("POST", "/predictions/m", b"x")
        server.await_line(
            re.compile(r"Inference_p50\.Microseconds:[\d.]+\|#Model:m,Version:1,Host:[^|]+\|\d+\|g")
        )
    variables = {"OMP_NUM_THREADS": "", "NO_OMP_NUM_THREADS": "1"}
    with djl_serving(tmp_path / "two", "-m", model, variables=variables) as server:
        assert server.infer("POST", "/predictions/m", b"x").body == b""
        groups = server.manage("GET", "/models/m").document[0]["models"][0]["workerGroups"]
        assert groups[0]["maxWorkers"] == 2
