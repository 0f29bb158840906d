"""Repositories through `trivium tritonserver` and NVIDIA's client: completed by the model's own code, with shapes that
clients see otherwise, with requests that differ, and with programs of torch.export.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import tritonclient.http as triton
from onnx import TensorProto, helper
from tests.harness.triton_tensors import given
from tests.harness.tritonserver import tritonserver
from tritonclient.utils import InferenceServerException

OWN = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy() * 2)]) for r in requests
        ]
"""
SHAPED = OWN.replace("        config.set_max_batch_size(8)\n", "").replace("auto_complete_config", "unasked")
SQUARE = """max_batch_size: 4
input { name: "IN" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 2 ] } }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 2 ] } }
"""
RAGGED = """backend: "onnxruntime" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
output { name: "y" data_type: TYPE_FP32 dims: -1 }
output { name: "c" data_type: TYPE_INT32 dims: 1 reshape { } }
batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_INT32 source_input: "x" }
batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }
dynamic_batching { max_queue_delay_microseconds: 100000 }
instance_group { kind: KIND_CPU count: 1 }
"""
EXPORTED = """platform: "torch_aoti" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 2 }
output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 2 }
"""


def write(root: Path, name: str, config: str, file: str, data: bytes) -> None:
    (root / name / "1").mkdir(parents=True)
    (root / name / "1" / file).write_bytes(data)
    if config:
        (root / name / "config.pbtxt").write_text(config)


def ragged_model() -> bytes:
    """y = x + x over all elements of a batch; c = n, one for each request."""
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Identity", ["n"], ["c"])]
    ends = [
        [helper.make_tensor_value_info(name, kind, ["any"]) for name, kind in side]
        for side in (
            [("x", TensorProto.FLOAT), ("n", TensorProto.INT32)],
            [("y", TensorProto.FLOAT), ("c", TensorProto.INT32)],
        )
    ]
    graph = helper.make_graph(nodes, "g", *ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def exported_model(path: Path) -> bytes:
    torch = pytest.importorskip("torch")

    class Twice(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * 2

    shapes = ({0: torch.export.Dim("rows", max=64)},)
    torch.export.save(torch.export.export(Twice(), (torch.ones(2, 2),), dynamic_shapes=shapes), str(path))
    return path.read_bytes()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[triton.InferenceServerClient]:
    folder = tmp_path_factory.mktemp("completion")
    root = folder / "models"
    write(root, "own", "", "model.py", OWN.encode())
    write(root, "shaped", SQUARE, "model.py", SHAPED.encode())
    write(root, "ragged", RAGGED, "model.onnx", ragged_model())
    write(root, "exported", EXPORTED, "model.pt2", exported_model(folder / "model.pt2"))
    write(root, "bad", "", "model.py", OWN.replace("return config\n", "return None\n").encode())
    words = ("--model-control-mode=explicit", "--exit-on-error=false", "--load-model=*")
    with tritonserver(folder / "log", "--model-repository", root, *words) as server:
        with triton.InferenceServerClient(server.address("http"), concurrency=8) as client:
            yield client


def test_a_model_that_completed_itself(client: triton.InferenceServerClient) -> None:
    config = client.get_model_config("own")
    assert (config["max_batch_size"], config["dynamic_batching"]["preferred_batch_size"]) == (8, [8])
    assert client.get_model_metadata("own")["inputs"] == [
        {"name": "IN", "datatype": "FP32", "shape": [-1, 4]}
    ]
    found = client.infer("own", [given("IN", np.ones((3, 4), np.float32), "FP32")]).as_numpy("OUT")
    assert found.tolist() == [[2.0] * 4] * 3


def test_a_model_that_did_not(client: triton.InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException) as error:
        client.load_model("bad")
    text = "auto_complete_config function in model 'bad' must return a valid pb.ModelConfig object."
    told = f"load failed for model 'bad': version 1 is at UNAVAILABLE state: Internal: {text};\n"
    assert (error.value.status(), error.value.message()) == ("400", told)


def test_clients_see_one_shape_and_the_model_another(client: triton.InferenceServerClient) -> None:
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert (
        client.infer("shaped", [given("IN", values, "FP32")]).as_numpy("OUT").tolist()
        == (values * 2).tolist()
    )
    with pytest.raises(InferenceServerException, match=r"Expected \[-1,4\], got \[2,2,2\]"):
        client.infer("shaped", [given("IN", values.reshape(2, 2, 2), "FP32")])


def test_requests_that_differ_run_together(client: triton.InferenceServerClient) -> None:
    sizes = [1, 2, 3, 5]
    inputs = [given("x", np.full((1, size), size, np.float32), "FP32") for size in sizes]
    asked = [client.async_infer("ragged", [each]) for each in inputs]
    answers = [each.get_result() for each in asked]
    assert [answer.as_numpy("y").tolist() for answer in answers] == [[[2.0 * size] * size] for size in sizes]
    assert [answer.as_numpy("c").tolist() for answer in answers] == [[[size]] for size in sizes]
    (statistics,) = client.get_inference_statistics("ragged")["model_stats"]
    assert statistics["inference_count"] == len(sizes)
    assert statistics["execution_count"] < len(sizes)


def test_a_program_of_torch_export(client: triton.InferenceServerClient) -> None:
    found = client.infer("exported", [given("x", np.ones((3, 2), np.float32), "FP32")]).as_numpy("OUTPUT__0")
    assert found.tolist() == [[2.0, 2.0]] * 3
    assert client.get_model_metadata("exported")["platform"] == "torch_aoti"
