"""NVIDIA's client examples `image_client`, `grpc_image_client`, `ensemble_image_client` and `grpc_client`, call by call
and claim by claim, in our words: what they read of a model before they ask it, and the classes that they print.
"""

import queue
from typing import Any

import numpy as np
import tritonclient.grpc as over_grpc
from tests.e2e.client_examples.models import LABELS
from tests.e2e.client_examples.wires import Wire
from tests.harness.server_process import SECONDS
from tests.harness.triton_tensors import Array

COLOURS = [(250, 10, 20), (5, 200, 30)]
BEST = [["RED", "BLUE"], ["GREEN", "BLUE"]]
"""Of each picture the two colours that there is most of."""


def pixels() -> Array:
    """Both pictures, a batch of 32 by 32 pixels."""
    return np.array([np.full((32, 32, 3), colour) for colour in COLOURS], np.float32)


def files() -> list[bytes]:
    """They, as portable pixmaps."""
    return [b"P6\n32 32\n255\n" + bytes(colour) * 32 * 32 for colour in COLOURS]


def classes(table: Array) -> list[list[str]]:
    """The labels of each row; score and index must agree with them."""
    rows = []
    for row in table:
        parts = [text.decode().split(":") for text in row]
        assert all(LABELS[int(index)] == label for _, index, label in parts), parts
        scores = [float(score) for score, _, _ in parts]
        assert scores == sorted(scores, reverse=True)
        rows.append([label for _, _, label in parts])
    return rows


def test_what_image_client_reads_of_a_model(wire: Wire) -> None:
    with wire.client() as client:
        metadata = wire.document(client.get_model_metadata("inception_graphdef"))
        config = wire.document(client.get_model_config("inception_graphdef"))
    config = config["config"] if wire.is_grpc else config
    (given,), (got,) = metadata["inputs"], metadata["outputs"]
    assert (given["name"], given["datatype"], [int(dim) for dim in given["shape"]]) == (
        "input",
        "FP32",
        [-1, 32, 32, 3],
    )
    assert (got["name"], got["datatype"], [int(dim) for dim in got["shape"]]) == ("softmax", "FP32", [-1, 3])
    assert config["max_batch_size"] == 8
    assert [entry["format"] for entry in config["input"]] == ["FORMAT_NHWC"]


def test_image_client(wire: Wire) -> None:
    inputs = [wire.given("input", pixels() / 127.5 - 1, "FP32")]
    outputs = [wire.wanted("softmax", class_count=2)]
    with wire.client(**({} if wire.is_grpc else {"concurrency": 2})) as client:
        found = [client.infer("inception_graphdef", inputs, outputs=outputs, request_id="1")]
        heard: queue.Queue[tuple[Any, Any]] = queue.Queue()

        def hear(result: Any, error: Any) -> None:
            heard.put((result, error))

        if wire.is_grpc:
            client.async_infer("inception_graphdef", inputs, hear, outputs=outputs)
            found.append(answer(heard))
            client.start_stream(hear)
            client.async_stream_infer("inception_graphdef", inputs, outputs=outputs, request_id="2")
            found.append(answer(heard))
            assert [each.get_response().id for each in found] == ["1", "", "2"]
        else:
            found.append(
                client.async_infer("inception_graphdef", inputs, outputs=outputs, request_id="2").get_result()
            )
            assert [each.get_response()["id"] for each in found] == ["1", "2"]
    assert [classes(each.as_numpy("softmax")) for each in found] == [BEST] * len(found)


def answer(heard: "queue.Queue[tuple[Any, Any]]") -> Any:
    """The next one, which is no error."""
    result, error = heard.get(timeout=SECONDS)
    assert error is None, error
    return result


def test_image_client_without_batches(wire: Wire) -> None:
    picture = np.zeros((3, 224, 224), np.float32)
    picture[1] = 1
    with wire.client() as client:
        inputs, outputs = [wire.given("data_0", picture, "FP32")], [wire.wanted("fc6_1", class_count=1)]
        result = client.infer("densenet_onnx", inputs, outputs=outputs)
    assert [text.decode() for text in result.as_numpy("fc6_1")] == ["1.000000:1:GREEN"]


def test_ensemble_image_client(wire: Wire) -> None:
    given = np.array([[file] for file in files()], object)
    with wire.client() as client:
        metadata = wire.document(client.get_model_metadata("preprocess_inception_ensemble"))
        names = [output["name"] for output in metadata["outputs"]]
        result = client.infer(
            "preprocess_inception_ensemble",
            [wire.given("INPUT", given, "BYTES")],
            outputs=[wire.wanted(name, class_count=2) for name in names],
        )
    # The labels are those of the model that makes the output: the ensemble has none.
    assert [classes(result.as_numpy(name)) for name in names] == [BEST]


def test_grpc_client(grpc: Wire) -> None:
    messages = over_grpc.service_pb2
    request = messages.ModelInferRequest(model_name="densenet_onnx", id="my request id")
    request.inputs.add(name="data_0", datatype="FP32", shape=[3, 224, 224])
    request.outputs.add(name="fc6_1")
    request.raw_input_contents.append(b"a" * 4 * 3 * 224 * 224)
    with grpc.client() as client:
        stub = client._client_stub
        assert stub.ServerLive(messages.ServerLiveRequest()).live
        assert stub.ServerReady(messages.ServerReadyRequest()).ready
        assert stub.ModelReady(messages.ModelReadyRequest(name="densenet_onnx")).ready
        assert stub.ServerMetadata(messages.ServerMetadataRequest()).name == "triton"
        assert stub.ModelMetadata(messages.ModelMetadataRequest(name="densenet_onnx")).name == "densenet_onnx"
        assert (
            stub.ModelConfig(messages.ModelConfigRequest(name="densenet_onnx")).config.name == "densenet_onnx"
        )
        response = stub.ModelInfer(request, timeout=SECONDS)
    assert response.id == "my request id"
    (scores,) = response.raw_output_contents
    np.testing.assert_allclose(np.frombuffer(scores, "<f4"), np.frombuffer(b"aaaa" * 3, "<f4"), rtol=1e-4)
