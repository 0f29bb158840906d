"""Models as people bring them, after reports in public trackers: each is served as it is, whoever asks.

One server for each group of scenes; the models are small ones of our own.
"""

import asyncio
import io
import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from onnx import TensorProto, helper
from tests.harness.commands import trivium as trivium_command
from tests.harness.raw_http import Answer, post
from tests.harness.server_process import SECONDS, ServerProcess, serve
from tests.harness.tritonserver import tritonserver
from tritonclient.utils import InferenceServerException, np_to_triton_dtype, triton_to_np_dtype

import trivium
from trivium import ndlist

NOT_TOLD = "INVALID"


SCRIPTED = ("two.pt", "choice.pt", "pictures.pt", "named.pt", "binary", "stacked")


def _write_scripted(root: Path) -> None:
    pytest.importorskip("torch")
    from tests.harness.scripted_modules import write_scripted

    write_scripted(root)


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, Path]]:
    root = tmp_path_factory.mktemp("scripted")
    _write_scripted(root)
    with serve(root / "log", *(root / name for name in SCRIPTED)) as server:
        yield server, root


def inputs_of(package: Any, **arrays: np.ndarray[Any, Any]) -> list[Any]:
    """Inputs for a client of NVIDIA's, of these names."""
    made = []
    for name, array in arrays.items():
        made.append(package.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        made[-1].set_data_from_numpy(array)
    return made


def predicted(server: ServerProcess, model: str, kind: str, body: bytes) -> Answer:
    return server.ask(
        post(
            f"/predictions/{model}", body, b"Content-Type: %s\r\nAccept: application/json\r\n" % kind.encode()
        )
    )


def data_of(answer: Answer) -> list[list[object]]:
    assert answer.status == 200, answer
    return [output["data"] for output in answer.document["outputs"]]


@pytest.mark.parametrize("package", [http_client, grpc_client], ids=["http", "grpc"])
def test_a_scripted_model_takes_whatever_the_request_says(package, scripted):
    server, _ = scripted
    address = server.address if package is http_client else server.grpc_address
    with package.InferenceServerClient(address) as client:
        for dtype, shape in ((np.float32, (2, 3)), (np.int64, (4,)), (np.float16, (1, 1, 2))):
            x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
            answer = client.infer("two", inputs_of(package, x=x, y=x[::-1].copy()))
            assert np.array_equal(answer.as_numpy("OUTPUT__0"), x + x[::-1])
            assert answer.as_numpy("OUTPUT__1").dtype == dtype
        x = np.ones(2, np.float32)
        wanted = [package.InferRequestedOutput("OUTPUT__1")]
        answer = client.infer("two", inputs_of(package, x=x, y=x), outputs=wanted)
        assert (answer.as_numpy("OUTPUT__0"), answer.as_numpy("OUTPUT__1").tolist()) == (None, [0, 0])
        with pytest.raises(InferenceServerException, match=r"OUTPUT__0.*OUTPUT__1"):
            client.infer("two", inputs_of(package, x=x, y=x), outputs=[package.InferRequestedOutput("no")])
        assert client.infer("choice", inputs_of(package, tokens=x)).as_numpy("OUTPUT__0").tolist() == [2, 2]
        both = inputs_of(package, tokens=x, mask=np.zeros(2, np.int64))
        assert client.infer("choice", both).as_numpy("OUTPUT__0").tolist() == [0, 0]
        some = inputs_of(package, one=x, two=np.ones((2, 2), np.float32), three=x)
        answer = client.infer("pictures", some)
        assert [float(answer.as_numpy(f"OUTPUT__{i}")) for i in range(3)] == [2, 4, 2]
        least = [package.InferRequestedOutput("least")]
        answer = client.infer("named", inputs_of(package, a=x, b=x * 3), outputs=least)
        assert answer.as_numpy("least").tolist() == [1, 1]
        with pytest.raises(InferenceServerException, match="no output 'most'; it answered least, total"):
            client.infer(
                "named", inputs_of(package, a=x, b=x), outputs=[package.InferRequestedOutput("most")]
            )


def test_metadata_says_that_datatype_and_shape_are_not_told(scripted):
    server, _ = scripted
    with http_client.InferenceServerClient(server.address) as client:
        told = client.get_model_metadata("two")
        assert [(one["name"], one["datatype"], one["shape"]) for one in told["inputs"]] == [
            ("x", NOT_TOLD, [-1]),
            ("y", NOT_TOLD, [-1]),
        ]
        assert [one["name"] for one in told["outputs"]] == ["OUTPUT__0", "OUTPUT__1"]
        assert triton_to_np_dtype(NOT_TOLD) is None, "a table of datatypes finds nothing, not something wrong"
        config = client.get_model_config("two")
        assert {one["data_type"] for one in config["input"]} == {"TYPE_INVALID"}
        assert config["max_batch_size"] == 0
    with grpc_client.InferenceServerClient(server.grpc_address) as client:
        assert client.get_model_metadata("choice").inputs[0].datatype == NOT_TOLD
        assert client.get_model_config("choice", as_json=True)["config"]["input"][0]["name"] == "tokens"
    assert "(any datatype and shape)" in server.said().replace("\n", "")


@pytest.mark.parametrize("model", ["binary", "stacked"])
def test_djl_clients_send_lists_archives_and_json(model, scripted):
    server, _ = scripted
    x = np.array([[1.5, 2.0]], np.float32)
    archive = io.BytesIO()
    np.savez(archive, x)
    for kind, body in (
        ("tensor/ndlist", ndlist.encode([x])),
        ("tensor/npz", archive.getvalue()),
        ("application/json", b"[[1.5, 2.0]]"),
        ("application/json", b'{"x": [[1.5, 2]]}'),
        ("application/json", b'{"inputs": [[1.5, 2e0]]}'),
    ):
        assert data_of(predicted(server, model, kind, body)) == [[3.0, 4.0]]
    whole = predicted(server, model, "application/json", b"[1, 2]").document["outputs"][0]
    assert (whole["datatype"], whole["data"]) == ("INT64", [2, 4]), (
        "whole numbers are INT64, as PyTorch takes them"
    )
    v2 = {"inputs": [{"name": "x", "datatype": "INT32", "shape": [2], "data": [1, 2]}]}
    answer = server.ask(post(f"/v2/models/{model}/infer", json.dumps(v2).encode()))
    assert answer.document["outputs"][0]["datatype"] == "INT32"


def test_lists_and_dictionaries_of_tensors_by_prediction(scripted):
    server, _ = scripted
    x = np.ones(2, np.float32)
    assert data_of(predicted(server, "pictures", "tensor/ndlist", ndlist.encode([x, x, x]))) == [
        [2],
        [2],
        [2],
    ]
    assert data_of(predicted(server, "named", "application/json", b'{"a": [1], "b": [2]}')) == [[1], [3]]
    assert data_of(predicted(server, "two", "application/json", b'{"x": [1.0], "y": [2.0]}')) == [[3], [-1]]


def test_what_a_scripted_model_cannot_take_is_said(scripted):
    server, _ = scripted
    answer = predicted(server, "two", "application/json", b'{"x": [1.0]}')
    assert answer.status == 400
    assert "no input 'y'; it takes 'x' (any datatype and shape), 'y' (any datatype and shape)" in str(
        answer.document
    )
    answer = predicted(server, "binary", "application/json", b'["a"]')
    assert answer.status == 415
    assert "numbers alone" in str(answer.document)
    answer = server.ask(post("/v2/models/two/infer", b"1234", b"Inference-Header-Content-Length: 0\r\n"))
    assert answer.status == 400


def test_unlike_requests_share_no_batch_unless_they_fit(scripted):
    server, _ = scripted
    bodies = [b"[1, 2]", b"[1.5]", b"[[1, 2, 3]]", b"[1, 2]"] * 6

    async def ask() -> list[Answer]:
        asked = (asyncio.to_thread(predicted, server, "stacked", "application/json", body) for body in bodies)
        return await asyncio.gather(*asked)

    for body, answer in zip(bodies, asyncio.run(ask()), strict=True):
        assert data_of(answer) == [(np.array(json.loads(body)) * 2).ravel().tolist()]


def test_the_library_serves_a_scripted_file(scripted):
    _, root = scripted

    async def scene() -> None:
        async with trivium.serving(root / "two.pt") as server:
            x = np.arange(3, dtype=np.int32)
            answer = await server.infer("two", {"x": x, "y": x})
            assert answer["OUTPUT__0"].tolist() == [0, 2, 4]

    asyncio.run(scene())


def test_a_scripted_file_whose_arguments_are_no_tensors_is_refused_by_name(tmp_path):
    _write_scripted(tmp_path)
    with serve(tmp_path / "log", tmp_path / "text.pt", tmp_path / "two.pt") as server:
        assert "forward takes x: Tensor, name: str" in server.said().replace("\n", " ")


def onnx_file(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> bytes:
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in side.items()]
        for side in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "g", *ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


HALVES = [helper.make_node("Add", ["x", "x"], ["y"])]
SCALED = [helper.make_node("Mul", ["x", "s"], ["y"]), helper.make_node("Add", ["s", "s"], ["t"])]
SCALAR = onnx_file(HALVES, {"x": []}, {"y": []})
ROW = onnx_file(HALVES, {"x": ["n"]}, {"y": ["n"]})
BESIDE = onnx_file(SCALED, {"x": ["n", 2], "s": []}, {"y": ["n", 2], "t": []})
PAIR = 'input { name: "x" data_type: TYPE_FP32 %s } output { name: "y" data_type: TYPE_FP32 %s }'
OTHERS = 'input { name: "s" data_type: TYPE_FP32 dims: 1 } output { name: "t" data_type: TYPE_FP32 dims: 1 }'
SCALARS: dict[str, tuple[bytes, str, tuple[int, ...]]] = {
    "untold": (SCALAR, "", (1,)),
    "one": (SCALAR, PAIR % ("dims: [ 1 ]", "dims: [ 1 ]"), (1,)),
    "two": (SCALAR, PAIR % ("dims: [ 1, 1 ]", "dims: [ 1, 1 ]"), (1, 1)),
    "reshaped": (SCALAR, PAIR % (("dims: [ 1 ] reshape: { shape: [ ] }",) * 2), (1,)),
    "to_one": (SCALAR, PAIR % (("dims: [ 1, 1 ] reshape: { shape: [ 1 ] }",) * 2), (1, 1)),
    "half": (SCALAR, "max_batch_size: 0 " + PAIR.partition(" output")[0] % "dims: [ 1 ]", (1,)),
    "batch": (ROW, "max_batch_size: 8 " + PAIR % (("dims: [ 1 ] reshape: { shape: [ ] }",) * 2), (1, 1)),
    "batch_untold": (ROW, "max_batch_size: 8 dynamic_batching { }", (1, 1)),
}


@pytest.fixture(scope="module")
def scalars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("scalars")
    beside = f"max_batch_size: 4 {PAIR % ('dims: 2', 'dims: 2')} {OTHERS} dynamic_batching {{ }}"
    for name, (data, config, _) in {**SCALARS, "beside": (BESIDE, beside, ())}.items():
        folder = root / "models" / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(data)
        if config:
            (folder.parent / "config.pbtxt").write_text(f'backend: "onnxruntime" {config}')
    with serve(root / "log", root / "models") as server:
        yield server


@pytest.mark.parametrize("package", [http_client, grpc_client], ids=["http", "grpc"])
@pytest.mark.parametrize("model", SCALARS)
def test_tensors_of_no_dimension_in_every_form_of_a_configuration(package, model, scalars):
    shape = SCALARS[model][2]
    address = scalars.address if package is http_client else scalars.grpc_address
    with package.InferenceServerClient(address) as client:
        for sent in (shape, shape[:-1] if model.startswith("batch") else ()):
            answer = client.infer(model, inputs_of(package, x=np.full(sent, 1.5, np.float32)))
            assert answer.as_numpy("y").shape == shape
            assert float(answer.as_numpy("y").item()) == 3
        with pytest.raises(InferenceServerException):
            client.infer(model, inputs_of(package, x=np.ones((*shape, 2), np.float32)))


def test_a_scalar_beside_a_batch_is_one_for_all_its_rows(scalars):
    x = np.ones((3, 2), np.float32)
    with http_client.InferenceServerClient(scalars.address) as client:
        answer = client.infer("beside", inputs_of(http_client, x=x, s=np.full((3, 1), 2, np.float32)))
        assert answer.as_numpy("y").tolist() == [[2, 2]] * 3
        assert answer.as_numpy("t").tolist() == [[4]] * 3
        unlike = np.arange(3, dtype=np.float32).reshape(3, 1)
        with pytest.raises(InferenceServerException, match="'s' has several values"):
            client.infer("beside", inputs_of(http_client, x=x, s=unlike))
        asked = [
            client.async_infer("beside", inputs_of(http_client, x=x, s=np.full((3, 1), i, np.float32)))
            for i in range(8)
        ]
        assert [one.get_result().as_numpy("y")[0, 0] for one in asked] == list(range(8))


def test_a_bare_file_of_a_scalar(tmp_path):
    (tmp_path / "bare.onnx").write_bytes(SCALAR)

    async def scene() -> None:
        async with trivium.serving(tmp_path / "bare.onnx") as server:
            assert (await server.infer("bare", {"x": np.float32(2)}))["y"].tolist() == 4

    asyncio.run(scene())


LEAVES_OUT = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            given = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            x, more = given["x"], given.get("more")
            sum = x if more is None else x + more
            tensors = [pb_utils.Tensor("sum", sum)]
            if x.flat[0] > 0:
                tensors.append(pb_utils.Tensor("more", x * 10))
            answers.append(pb_utils.InferenceResponse(tensors))
        return answers
"""
ADDS = """backend: "python" max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: 1 }, { name: "more" data_type: TYPE_FP32 dims: 1 optional: true } ]
output [ { name: "sum" data_type: TYPE_FP32 dims: 1 }, { name: "more" data_type: TYPE_FP32 dims: 1 } ]
"""
ENSEMBLE = """platform: "ensemble" model_transaction_policy { decoupled: %s }
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output [ { name: "OUT" data_type: TYPE_FP32 dims: 1 }, { name: "SIDE" data_type: TYPE_FP32 dims: 1 } ]
ensemble_scheduling {
  step { model_name: "adds" model_version: -1 input_map { key: "x" value: "IN" }
         output_map [ { key: "sum" value: "a" }, { key: "more" value: "b" } ] }
  step { model_name: "adds" model_version: -1
         input_map [ { key: "x" value: "a" }, { key: "more" value: "b" } ]
         output_map [ { key: "sum" value: "OUT" }, { key: "more" value: "SIDE" } ] }
}
"""


def test_what_a_step_of_an_ensemble_leaves_out(tmp_path):
    models = tmp_path / "models"
    for name, config in (("adds", ADDS), ("plain", ENSEMBLE % "false"), ("several", ENSEMBLE % "true")):
        (models / name / "1").mkdir(parents=True)
        (models / name / "config.pbtxt").write_text(config)
    (models / "adds" / "1" / "model.py").write_text(LEAVES_OUT)
    with serve(tmp_path / "log", models) as server:
        with http_client.InferenceServerClient(server.address) as client:
            assert client.get_model_config("several")["model_transaction_policy"] == {"decoupled": True}
            answer = client.infer("plain", inputs_of(http_client, IN=np.ones(1, np.float32)))
            assert (answer.as_numpy("OUT").tolist(), answer.as_numpy("SIDE").tolist()) == ([11], [10])
            answer = client.infer("plain", inputs_of(http_client, IN=-np.ones(1, np.float32)))
            assert (answer.as_numpy("OUT").tolist(), answer.as_numpy("SIDE")) == ([-1], None)
        with grpc_client.InferenceServerClient(server.grpc_address) as client:
            came: queue.Queue[Any] = queue.Queue()
            client.start_stream(lambda result, error: came.put(error or result))
            client.async_stream_infer("several", inputs_of(grpc_client, IN=np.ones(1, np.float32)))
            assert came.get(timeout=SECONDS).as_numpy("OUT").tolist() == [11]
            client.stop_stream()


def test_hints_about_an_ensemble_alone_fit(tmp_path):
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "config.pbtxt").write_text(ENSEMBLE % "false")
    said = " ".join(trivium_command("check", tmp_path / "alone").stdout.split())
    assert "Make the folder" in said
    assert "stays empty" in said
    (tmp_path / "alone" / "1").mkdir()
    said = " ".join(trivium_command("check", tmp_path / "alone").stdout.split())
    assert "the folder that holds both" in said


ANSWERS = """
import numpy as np, triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            kind = int(x.flat[0])
            y = {0: x * 2, 1: x.astype("f8"), 2: x[:1].repeat(3, 0), 3: x[0]}.get(kind)
            tensor = pb_utils.Tensor("y", x.astype("c8") if y is None else y)
            answers.append(pb_utils.InferenceResponse([tensor]))
        return answers
"""
DECLARED = """backend: "python" max_batch_size: 8 dynamic_batching { }
input { name: "x" data_type: TYPE_FP32 dims: 2 } output { name: "y" data_type: TYPE_FP32 dims: 2 }
"""
WRONG = {
    1: "answered output 'y' as FP64; it is declared as FP32",
    2: r"output 'y' with the shape \[3, 2\] to a request of 1 rows",
    3: r"output 'y' with the shape \[2\] to a request of 1 rows",
}


def write_answering(root: Path) -> Path:
    (root / "models" / "m" / "1").mkdir(parents=True)
    (root / "models" / "m" / "1" / "model.py").write_text(ANSWERS)
    (root / "models" / "m" / "config.pbtxt").write_text(DECLARED)
    return root / "models"


def test_what_a_python_model_answers_is_held_against_what_is_declared(tmp_path):
    with serve(tmp_path / "log", write_answering(tmp_path), models_raise=True) as server:
        with http_client.InferenceServerClient(server.address, concurrency=8) as client:
            inputs = {kind: inputs_of(http_client, x=np.full((1, 2), kind, np.float32)) for kind in range(5)}
            asked = [client.async_infer("m", inputs[i % 2]) for i in range(8)]
            assert [one.get_result().as_numpy("y").tolist() for one in asked[::2]] == [[[0, 0]]] * 4
            for kind, words in WRONG.items():
                with pytest.raises(InferenceServerException, match=words):
                    client.infer("m", inputs[kind])
            with pytest.raises(InferenceServerException, match="'y' has the dtype complex64"):
                client.infer("m", inputs[4])


def test_under_tritons_profile_it_is_passed_on_and_reported_once(tmp_path):
    with tritonserver(tmp_path / "log", f"--model-repository={write_answering(tmp_path)}") as server:
        with http_client.InferenceServerClient(server.address("http")) as client:
            for _ in range(3):
                answer = client.infer("m", inputs_of(http_client, x=np.ones((1, 2), np.float32)))
                assert answer.as_numpy("y").dtype == np.float64
        assert server.said().count("answered output 'y' as FP64; it is declared as FP32") == 1
