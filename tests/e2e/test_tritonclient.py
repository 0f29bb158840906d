"""NVIDIA's own client against the whole server.

Each model answers what a test can compute by itself. What the client cannot be made to send is in
`test_withstand`.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from tests.fixtures.models import KINDS
from tests.harness.server_process import ServerProcess
from tests.harness.triton_tensors import NOT_TEXT, TEXTS, A, Array, B, encoded, given, objects, two, wanted
from tritonclient.utils import InferenceServerException

from trivium.catalogue import CATALOGUE

DOUBLE = A.astype("f8")


@pytest.fixture
def client(serving: ServerProcess) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(serving.address, network_timeout=120, connection_timeout=120) as client:
        yield client


# -- reading -----------------------------------------------------------------------------------------------


def test_health(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("add")
    assert client.is_model_ready("add", "1")
    assert not client.is_model_ready("add", "2")
    assert not client.is_model_ready("nobody")


def test_server_metadata(client: triton.InferenceServerClient) -> None:
    document = client.get_server_metadata()
    assert (document["name"], document["version"]) == ("trivium", CATALOGUE.version)
    assert {"binary_tensor_data", "statistics", "model_configuration"} <= set(document["extensions"])


def test_model_metadata(client: triton.InferenceServerClient) -> None:
    assert client.get_model_metadata("add_batched") == {
        "name": "add_batched",
        "versions": ["1"],
        "platform": "onnxruntime_onnx",
        "inputs": [{"name": name, "datatype": "FP32", "shape": [-1, 4]} for name in ("a", "b")],
        "outputs": [{"name": "sum", "datatype": "FP32", "shape": [-1, 4]}],
    }
    assert client.get_model_metadata("add", "1")["inputs"][0]["shape"] == [4]


def test_model_config(client: triton.InferenceServerClient) -> None:
    config = client.get_model_config("add_batched")
    assert (config["name"], config["max_batch_size"]) == ("add_batched", 16)
    assert config["input"][0] | {"name": "a", "data_type": "TYPE_FP32", "dims": [4]} == config["input"][0]
    assert config["instance_group"][0]["kind"] == "KIND_CPU"
    assert "dynamic_batching" in config
    assert "dynamic_batching" not in client.get_model_config("add", "1")


def statistics(client: triton.InferenceServerClient, model: str) -> dict[str, Any]:
    (version,) = client.get_inference_statistics(model, "1")["model_stats"]
    assert (version["name"], version["version"]) == (model, "1")
    return dict(version)


def test_statistics_count(client: triton.InferenceServerClient) -> None:
    before = statistics(client, "add")
    for _ in range(3):
        client.infer("add", two(A, B))
    with pytest.raises(InferenceServerException):
        client.infer("add", two(A[:3], B[:3]))
    after = statistics(client, "add")

    def grown(*keys: str) -> int:
        old: Any = before
        new: Any = after
        for key in keys:
            old, new = old[key], new[key]
        return int(new - old)

    assert grown("inference_count") == grown("execution_count") == 3
    assert grown("inference_stats", "success", "count") == 3
    assert grown("inference_stats", "fail", "count") == 1
    for phase in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert grown("inference_stats", phase, "count") == 3
    parts = sum(grown("inference_stats", phase, "ns") for phase in ("compute_input", "compute_infer"))
    assert 0 < parts <= grown("inference_stats", "success", "ns")
    names = {version["name"] for version in client.get_inference_statistics()["model_stats"]}
    assert {"add", "text", "echo"} <= names


# -- inference ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output_is_binary", [True, False])
@pytest.mark.parametrize("b_is_binary", [True, False])
@pytest.mark.parametrize("a_is_binary", [True, False])
def test_binary_data_on_and_off(
    client: triton.InferenceServerClient, a_is_binary: bool, b_is_binary: bool, output_is_binary: bool
) -> None:
    inputs = [given("a", A, "FP32", a_is_binary), given("b", B, "FP32", b_is_binary)]
    result = client.infer("add", inputs, outputs=[wanted("sum", output_is_binary)])
    np.testing.assert_array_equal(result.as_numpy("sum"), A + B)
    assert ("data" in result.get_output("sum")) is not output_is_binary
    assert result.get_response()["model_name"] == "add"
    assert result.get_response()["model_version"] == "1"


def test_outputs_in_different_forms(client: triton.InferenceServerClient) -> None:
    a, b = np.arange(4, dtype=np.int32), np.array([7, 7, -7, 2**30], np.int32)
    outputs = [wanted("difference", False), wanted("sum", True)]
    result = client.infer("sum_and_difference", two(a, b, "INT32"), outputs=outputs)
    np.testing.assert_array_equal(result.as_numpy("sum"), a + b)
    np.testing.assert_array_equal(result.as_numpy("difference"), a - b)
    assert "data" in result.get_output("difference")
    assert "data" not in result.get_output("sum")


def test_only_the_outputs_asked_for(client: triton.InferenceServerClient) -> None:
    a, b = np.arange(4, dtype=np.int32), np.ones(4, np.int32)
    result = client.infer("sum_and_difference", two(a, b, "INT32"), outputs=[wanted("difference")])
    assert [output["name"] for output in result.get_response()["outputs"]] == ["difference"]
    np.testing.assert_array_equal(result.as_numpy("difference"), a - b)
    result = client.infer("sum_and_difference", two(a, b, "INT32"))
    assert [output["name"] for output in result.get_response()["outputs"]] == ["sum", "difference"]


def test_every_datatype_by_binary(client: triton.InferenceServerClient) -> None:
    def sample(kind: str) -> Array:
        dtype = np.dtype(triton_dtype(kind))
        if dtype.kind in "iu":
            bounds = np.iinfo(dtype)
            return np.array([[bounds.min, 0, 1], [2, 100, bounds.max]], dtype)
        return np.array(
            [[0, 1, 0], [1, 1, 0]] if kind == "BOOL" else [[-1.5, 0, np.inf], [65504, 1, 2]], dtype
        )

    sent = {kind: sample(kind) for kind in KINDS}
    result = client.infer("kinds", [given(f"in_{kind}", array, kind) for kind, array in sent.items()])
    for kind, array in sent.items():
        back = result.as_numpy(f"out_{kind}")
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)


def triton_dtype(kind: str) -> type:
    dtype = triton.triton_to_np_dtype(kind)
    assert isinstance(dtype, type)
    return dtype


@pytest.mark.parametrize("is_binary", [True, False])
def test_texts_through_onnx(client: triton.InferenceServerClient, is_binary: bool) -> None:
    sent = objects(TEXTS).reshape(2, 3)
    outputs = [wanted("same", is_binary)]
    result = client.infer("text", [given("text", sent, "BYTES", is_binary)], outputs=outputs)
    assert encoded(result.as_numpy("same")) == TEXTS
    assert result.as_numpy("same").shape == (2, 3)


def test_bytes_that_are_no_text(client: triton.InferenceServerClient) -> None:
    sent = objects(TEXTS + NOT_TEXT)
    result = client.infer("bytes", [given("x", sent, "BYTES")])
    assert encoded(result.as_numpy("y")) == TEXTS + NOT_TEXT
    with pytest.raises(InferenceServerException, match=r"Element 6 of tensor 'y' is not UTF-8.*binary_data"):
        client.infer("bytes", [given("x", sent, "BYTES")], outputs=[wanted("y", False)])
    with pytest.raises(InferenceServerException, match=r"not UTF-8 text"):
        client.infer("text", [given("text", objects(NOT_TEXT).reshape(2, 1), "BYTES")])


def test_no_elements_at_all(client: triton.InferenceServerClient) -> None:
    result = client.infer("bytes", [given("x", objects([]), "BYTES")])
    assert result.as_numpy("y").shape == (0,)


def test_a_clients_own_batch(client: triton.InferenceServerClient) -> None:
    a = np.arange(24, dtype=np.float32).reshape(6, 4)
    result = client.infer("add_batched", two(a, a * 10))
    np.testing.assert_array_equal(result.as_numpy("sum"), a * 11)


def test_concurrent_clients_share_executions(
    serving: ServerProcess, client: triton.InferenceServerClient
) -> None:
    before = statistics(client, "slow_batched")

    def live(number: int) -> None:
        with triton.InferenceServerClient(serving.address) as own:
            for turn in range(5):
                rows = np.full((1 + number % 2, 4), number * 100 + turn, np.float32)
                result = own.infer("slow_batched", [given("x", rows, "FP32")])
                np.testing.assert_array_equal(result.as_numpy("y"), rows)

    with ThreadPoolExecutor(8) as threads:
        for life in [threads.submit(live, number) for number in range(8)]:
            life.result(120)
    after = statistics(client, "slow_batched")
    rows = after["inference_count"] - before["inference_count"]
    executions = after["execution_count"] - before["execution_count"]
    assert rows == 5 * (4 * 1 + 4 * 2)
    assert executions < rows / 2
    assert (
        sum(batch["batch_size"] * batch["compute_infer"]["count"] for batch in after["batch_stats"])
        == after["inference_count"]
    )


def test_request_ids_come_back(client: triton.InferenceServerClient) -> None:
    result = client.infer("add", two(A, B), request_id="my id / Grüße")
    assert result.get_response()["id"] == "my id / Grüße"
    assert "id" not in client.infer("add", two(A, B)).get_response()


def test_priority_and_time_out_are_taken(client: triton.InferenceServerClient) -> None:
    result = client.infer(
        "add", two(A, B), priority=3, timeout=5_000_000, parameters={"own": "word", "number": 3, "flag": True}
    )
    np.testing.assert_array_equal(result.as_numpy("sum"), A + B)


def test_async_infer(serving: ServerProcess) -> None:
    with triton.InferenceServerClient(serving.address, concurrency=4) as client:
        waiting = [client.async_infer("add", two(A + turn, B)) for turn in range(12)]
        for turn, request in enumerate(waiting):
            np.testing.assert_array_equal(request.get_result().as_numpy("sum"), A + turn + B)
        refused = client.async_infer("nobody", two(A, B))
        with pytest.raises(InferenceServerException, match="There is no model 'nobody'"):
            refused.get_result()


# -- refusals ----------------------------------------------------------------------------------------------

Ask = Callable[[triton.InferenceServerClient], object]
REFUSALS: dict[str, tuple[Ask, str, str]] = {
    "model": (lambda c: c.infer("ad", two(A, B)), "404", r"no model 'ad'.*add"),
    "version": (lambda c: c.infer("add", two(A, B), "7"), "404", r"no version 7; it has: 1"),
    "metadata": (lambda c: c.get_model_metadata("nobody"), "404", r"no model 'nobody'"),
    "config": (lambda c: c.get_model_config("nobody"), "404", r"no model 'nobody'"),
    "statistics": (lambda c: c.get_inference_statistics("nobody"), "404", r"no model 'nobody'"),
    "shape": (lambda c: c.infer("add", two(A[:3], B)), "400", r"got shape \[3\] for input 'a'.*\[4\]"),
    "datatype": (lambda c: c.infer("add", two(DOUBLE, DOUBLE, "FP64")), "400", r"got datatype FP64.*FP32"),
    "missing": (lambda c: c.infer("add", two(A, B)[:1]), "400", r"no input 'b'"),
    "unknown": (lambda c: c.infer("add", [given("c", A)]), "400", r"has no input 'c'.*'a' FP32"),
    "output": (lambda c: c.infer("add", two(A, B), outputs=[wanted("s")]), "400", r"no output 's'.*'sum'"),
    "rows": (lambda c: c.infer("echo", [given("x", np.ones((17, 4), "f4"))]), "400", r"17 rows.*most 16"),
}


@pytest.mark.parametrize(("ask", "status", "words"), REFUSALS.values(), ids=REFUSALS)
def test_refusals_teach(client: triton.InferenceServerClient, ask: Ask, status: str, words: str) -> None:
    with pytest.raises(InferenceServerException, match=words) as refusal:
        ask(client)
    assert refusal.value.status() == status
    assert client.is_server_ready()
