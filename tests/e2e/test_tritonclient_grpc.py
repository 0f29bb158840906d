"""NVIDIA's own client over gRPC against the whole server. Each model answers what a test can compute by itself."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from google.protobuf.json_format import MessageToDict
from tests.fixtures.models import KINDS
from tests.harness.server_process import ServerProcess, serve, until
from tests.harness.triton_grpc import ONE_ROW, calling, given
from tests.harness.triton_tensors import NOT_TEXT, TEXTS, A, Array, B, objects
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from trivium.catalogue import CATALOGUE


@pytest.fixture
def client(serving: ServerProcess) -> Iterator[triton.InferenceServerClient]:
    with calling(serving.grpc_address) as client:
        yield client


def two(a: Array, b: Array, datatype: str = "FP32") -> list[triton.InferInput]:
    return [given("a", a, datatype), given("b", b, datatype)]


# -- reading -----------------------------------------------------------------------------------------------


def test_health(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("add")
    assert client.is_model_ready("add", "1")
    assert not client.is_model_ready("add", "2")
    assert not client.is_model_ready("nobody")
    assert not client.is_model_ready("")


def test_metadata(client: triton.InferenceServerClient) -> None:
    server = client.get_server_metadata()
    assert (server.name, server.version) == ("trivium", CATALOGUE.version)
    assert "statistics" in server.extensions
    model = client.get_model_metadata("add_batched", as_json=True)
    assert model == {
        "name": "add_batched",
        "versions": ["1"],
        "platform": "onnxruntime_onnx",
        "inputs": [{"name": name, "datatype": "FP32", "shape": ["-1", "4"]} for name in ("a", "b")],
        "outputs": [{"name": "sum", "datatype": "FP32", "shape": ["-1", "4"]}],
    }


def test_config(client: triton.InferenceServerClient) -> None:
    config = client.get_model_config("add_batched").config
    assert (config.name, config.max_batch_size, len(config.input)) == ("add_batched", 16, 2)
    assert config.HasField("dynamic_batching")
    assert not client.get_model_config("add", "1").config.HasField("dynamic_batching")


def test_statistics_count(client: triton.InferenceServerClient) -> None:
    def counts() -> dict[str, int]:
        (version,) = client.get_inference_statistics("add", "1").model_stats
        stats = version.inference_stats
        return {
            "inferences": version.inference_count,
            "executions": version.execution_count,
            "batches of 1": sum(batch.compute_infer.count for batch in version.batch_stats),
            **{part: getattr(stats, part).count for part in ("success", "fail", "queue", "compute_infer")},
        }

    before = counts()
    for _ in range(3):
        client.infer("add", two(A, B))
    with pytest.raises(InferenceServerException):
        client.infer("add", two(A[:3], B[:3]))
    grown = {part: count - before[part] for part, count in counts().items()}
    assert grown == {part: 1 if part == "fail" else 3 for part in grown}
    assert {v.name for v in client.get_inference_statistics().model_stats} >= {"add", "text", "echo"}


def test_the_index(client: triton.InferenceServerClient) -> None:
    rows = client.get_model_repository_index().models
    assert {(row.name, row.version, row.state) for row in rows} >= {("add", "1", "READY")}


# -- inference ---------------------------------------------------------------------------------------------


def test_sums(client: triton.InferenceServerClient) -> None:
    result = client.infer("add", two(A, B), request_id="a request")
    np.testing.assert_array_equal(result.as_numpy("sum"), A + B)
    response = result.get_response()
    assert (response.model_name, response.model_version, response.id) == ("add", "1", "a request")
    assert not response.outputs[0].HasField("contents")


def test_only_the_outputs_asked_for(client: triton.InferenceServerClient) -> None:
    a, b = np.arange(4, dtype=np.int32), np.ones(4, np.int32)
    asked = [triton.InferRequestedOutput("difference")]
    result = client.infer("sum_and_difference", two(a, b, "INT32"), outputs=asked)
    assert [output.name for output in result.get_response().outputs] == ["difference"]
    np.testing.assert_array_equal(result.as_numpy("difference"), a - b)
    result = client.infer("sum_and_difference", two(a, b, "INT32"))
    assert [output.name for output in result.get_response().outputs] == ["sum", "difference"]


def sample(kind: str) -> Array:
    dtype = np.dtype(triton_to_np_dtype(kind))
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.array([[bounds.min, 0, 1], [bounds.max, 2, 3]], dtype)
    if dtype.kind == "b":
        return np.array([[True, False, True], [False, True, True]])
    return np.array([[0.5, -1, np.inf], [-np.inf, 0, 65504]], dtype)


def test_every_datatype_raw(client: triton.InferenceServerClient) -> None:
    samples = {kind: sample(kind) for kind in KINDS}
    result = client.infer("kinds", [given(f"in_{kind}", array, kind) for kind, array in samples.items()])
    for kind, array in samples.items():
        got = result.as_numpy(f"out_{kind}")
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)


def contents_of(kind: str, array: Array) -> dict[str, Any]:
    fields = {
        "BOOL": "bool_contents",
        "INT64": "int64_contents",
        "UINT64": "uint64_contents",
        "FP16": "fp32_contents",
        "FP32": "fp32_contents",
        "FP64": "fp64_contents",
    }
    field = fields.get(kind, "uint_contents" if kind.startswith("U") else "int_contents")
    return {field: array.ravel().tolist()}


def request_in_contents(arrays: dict[str, Array]) -> Any:
    pb2 = triton.service_pb2
    return pb2.ModelInferRequest(
        model_name="kinds",
        inputs=[
            pb2.ModelInferRequest().InferInputTensor(
                name=f"in_{kind}", datatype=kind, shape=array.shape, contents=contents_of(kind, array)
            )
            for kind, array in arrays.items()
        ],
    )


def test_every_datatype_in_contents(client: triton.InferenceServerClient) -> None:
    """But FP16, for which there are none: the refusal says how to send it."""
    samples = {kind: sample(kind) for kind in KINDS}
    with pytest.raises(Exception, match=r"'in_FP16' is FP16, .* raw_input_contents"):
        client._client_stub.ModelInfer(request_in_contents(samples))


def test_texts(client: triton.InferenceServerClient) -> None:
    result = client.infer("bytes", [given("x", objects(TEXTS + NOT_TEXT), "BYTES")])
    assert result.as_numpy("y").tolist() == TEXTS + NOT_TEXT


def test_texts_in_contents(client: triton.InferenceServerClient) -> None:
    pb2 = triton.service_pb2
    request = pb2.ModelInferRequest(model_name="bytes")
    entry = request.inputs.add(name="x", datatype="BYTES", shape=[3])
    entry.contents.bytes_contents.extend([b"", b"plain", b"\xff\x00"])
    result = triton.InferResult(client._client_stub.ModelInfer(request))
    assert result.as_numpy("y").tolist() == [b"", b"plain", b"\xff\x00"]


def test_numbers_in_contents(client: triton.InferenceServerClient) -> None:
    pb2 = triton.service_pb2
    request = pb2.ModelInferRequest(model_name="echo", id="7")
    entry = request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    entry.contents.fp32_contents.extend([1.5, -2, 0, 4])
    result = triton.InferResult(client._client_stub.ModelInfer(request))
    np.testing.assert_array_equal(result.as_numpy("y"), np.array([[1.5, -2, 0, 4]], np.float32))


@pytest.mark.parametrize("compression", ["gzip", "deflate"])
def test_compressed_requests(client: triton.InferenceServerClient, compression: str) -> None:
    result = client.infer("echo", [given("x", ONE_ROW)], compression_algorithm=compression)
    np.testing.assert_array_equal(result.as_numpy("y"), ONE_ROW)


def test_batches_are_made_of_concurrent_requests(client: triton.InferenceServerClient) -> None:
    def ask(turn: int) -> float:
        result = client.infer("slow_batched", [given("x", np.full((1, 4), turn, np.float32))])
        return float(result.as_numpy("y")[0, 0])

    with ThreadPoolExecutor(32) as threads:
        assert list(threads.map(ask, range(64))) == list(range(64))
    (version,) = client.get_inference_statistics("slow_batched").model_stats
    assert version.inference_count == 64
    assert version.execution_count < 40


def test_async_infer(client: triton.InferenceServerClient) -> None:
    with ThreadPoolExecutor(1) as _:
        results: list[Any] = []
        for turn in range(20):
            row = np.full((1, 4), turn, np.float32)
            client.async_infer(
                "echo", [given("x", row)], lambda result, error: results.append((result, error))
            )
        for _ in range(300):
            if len(results) == 20:
                break
            client.is_server_live()
    assert sorted(result.as_numpy("y")[0, 0] for result, error in results) == list(range(20))


# -- refusals ----------------------------------------------------------------------------------------------


def refusal(client: triton.InferenceServerClient, model: str, *inputs: triton.InferInput, **how: Any) -> Any:
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, list(inputs), **how)
    return caught.value.status(), caught.value.message()


def test_unknown_names(client: triton.InferenceServerClient) -> None:
    status, text = refusal(client, "nobody", given("x", ONE_ROW))
    assert status == "StatusCode.NOT_FOUND"
    assert "no model 'nobody'" in text
    status, text = refusal(client, "echo", given("x", ONE_ROW), model_version="9")
    assert status == "StatusCode.NOT_FOUND"
    assert "no version 9; it has: 1" in text
    status, text = refusal(client, "echo", given("nothing", ONE_ROW))
    assert status == "StatusCode.INVALID_ARGUMENT"
    assert "no input 'nothing'" in text
    for read in (client.get_model_metadata, client.get_model_config, client.get_inference_statistics):
        with pytest.raises(InferenceServerException, match="no model 'nobody'"):
            read("nobody")


def test_bad_shapes_and_datatypes(client: triton.InferenceServerClient) -> None:
    status, text = refusal(client, "add", *two(A[:3], B))
    assert status == "StatusCode.INVALID_ARGUMENT"
    assert "got shape [3] for input 'a'" in text
    status, text = refusal(client, "add", *two(A.astype("f8"), B.astype("f8"), "FP64"))
    assert status == "StatusCode.INVALID_ARGUMENT"
    assert "datatype FP64" in text
    status, text = refusal(client, "echo", given("x", np.zeros((17, 4), np.float32)))
    assert "at most 16" in text


def test_shared_memory_is_off_by_default(client: triton.InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException, match="--client-shared-memory") as caught:
        client.get_system_shared_memory_status()
    assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
    assert not client.get_cuda_shared_memory_status().regions


def test_shared_memory_both_ways(repository: Path, tmp_path: Path) -> None:
    memory = SharedMemory(create=True, size=32)
    memory.buf[:16] = ONE_ROW.tobytes()
    try:
        with serve(tmp_path / "log", "--client-shared-memory", repository) as server:
            with calling(server.grpc_address) as client:
                client.register_system_shared_memory("both", memory.name, 32)
                assert client.get_system_shared_memory_status().regions["both"].byte_size == 32
                given_there = triton.InferInput("x", [1, 4], "FP32")
                given_there.set_shared_memory("both", 16)
                wanted_there = triton.InferRequestedOutput("y")
                wanted_there.set_shared_memory("both", 16, offset=16)
                client.infer("echo", [given_there], outputs=[wanted_there])
                assert bytes(memory.buf[16:32]) == ONE_ROW.tobytes()
                client.unregister_system_shared_memory()
                assert not client.get_system_shared_memory_status().regions
    finally:
        memory.close()
        memory.unlink()


def test_classification(client: triton.InferenceServerClient) -> None:
    asked = [triton.InferRequestedOutput("sum", class_count=2)]
    result = client.infer("add", two(A, B), outputs=asked)
    order = np.argsort(-(A + B))
    classes = [text.decode().split(":") for text in result.as_numpy("sum").ravel()]
    assert [int(found[1]) for found in classes] == order[:2].tolist()
    assert float(classes[0][0]) == float((A + B)[order[0]])


def test_settings(client: triton.InferenceServerClient) -> None:
    assert client.get_log_settings().settings["log_error"].bool_param
    assert len(client.get_trace_settings().settings) == 6
    changed = client.update_log_settings({"log_verbose_level": 1})
    assert changed.settings["log_verbose_level"].uint32_param == 1
    client.update_log_settings({"log_verbose_level": 0, "log_info": False})
    with pytest.raises(InferenceServerException, match="--trace-file"):
        client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})


def test_loading_and_unloading(client: triton.InferenceServerClient) -> None:
    client.unload_model("text")
    until(lambda: not client.is_model_ready("text"), lambda: "it serves on")
    client.load_model("text")
    assert client.is_model_ready("text")
    config = client.get_model_config("echo", as_json=True)["config"] | {"max_batch_size": "8"}
    client.load_model("echo", config=json.dumps(config))
    assert client.get_model_config("echo").config.max_batch_size == 8
    client.load_model("echo")
    assert client.get_model_config("echo").config.max_batch_size == 16
    with pytest.raises(InferenceServerException, match="nobody"):
        client.load_model("nobody")


def test_answers_as_json(client: triton.InferenceServerClient) -> None:
    result = client.infer("echo", [given("x", ONE_ROW)])
    document = MessageToDict(result.get_response(), preserving_proto_field_name=True)
    assert document["outputs"] == [{"name": "y", "datatype": "FP32", "shape": ["1", "4"]}]
