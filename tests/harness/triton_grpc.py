"""NVIDIA's client over gRPC: inputs, clients and streams as the tests use them, and a model that answers in parts."""

import contextlib
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from tests.harness.server_process import SECONDS
from tests.harness.triton_tensors import Array

ONE_ROW = np.array([[1, 2, 3, 4]], np.float32)

REPEAT = '''
import json
import pathlib
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers `count` times, `pause` seconds apart, until nobody wants any more; tells a file how it went."""

    def initialize(self, args):
        self.diary = pathlib.Path(args["model_repository"]) / "diary"

    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(request,)).start()
        return None

    def answer(self, request):
        sender = request.get_response_sender()
        count, pause, size = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy()[0] for name in ("count", "pause", "size")
        )
        sent = 0
        for index in range(int(count)):
            if request.is_cancelled():
                break
            parts = [pb_utils.Tensor("index", np.array([index], np.int32))]
            parts.append(pb_utils.Tensor("padding", np.zeros(int(size), np.uint8)))
            is_last = index == int(count) - 1 and size == 1
            flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if is_last else 0
            sender.send(pb_utils.InferenceResponse(parts), flags=flags)
            sent += 1
            if is_last:
                break
            time.sleep(float(pause))
        else:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        if request.is_cancelled():
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        with self.diary.open("a") as diary:
            diary.write(json.dumps({"id": request.request_id(), "sent": sent}) + "\\n")
'''

CONFIG = """
backend: "python"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [
  { name: "count" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "pause" data_type: TYPE_FP32 dims: [ 1 ] },
  { name: "size" data_type: TYPE_INT32 dims: [ 1 ] }
]
output [
  { name: "index" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "padding" data_type: TYPE_UINT8 dims: [ -1 ] }
]
instance_group { count: 1 kind: KIND_CPU }
"""


def write_repeat(root: Path) -> Path:
    """The model `repeat`. With a `size` of 1 its last response is its end; else an empty one follows."""
    folder = root / "repeat"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(CONFIG)
    (folder / "1" / "model.py").write_text(REPEAT)
    return folder


def given(name: str, array: Array, datatype: str = "FP32") -> triton.InferInput:
    """An input."""
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array)
    return tensor


def repeating(count: int, pause: float = 0.0, size: int = 0) -> list[triton.InferInput]:
    """The inputs of the model `repeat`."""
    return [
        given("count", np.array([count], np.int32), "INT32"),
        given("pause", np.array([pause], np.float32), "FP32"),
        given("size", np.array([size], np.int32), "INT32"),
    ]


@contextlib.contextmanager
def calling(address: str) -> Iterator[triton.InferenceServerClient]:
    """A client."""
    client = triton.InferenceServerClient(address)
    try:
        yield client
    finally:
        client.close()


class Conversation:
    """An open stream of a client. Responses are results or errors, in the order in which they came."""

    def __init__(self, client: triton.InferenceServerClient, **options: Any) -> None:
        self.client = client
        self._said: queue.Queue[tuple[Any, Any]] = queue.Queue()
        client.start_stream(lambda result, error: self._said.put((result, error)), **options)

    def ask(self, model: str, inputs: list[triton.InferInput], **options: Any) -> None:
        """Send one request."""
        self.client.async_stream_infer(model, inputs, **options)

    def hear(self) -> Any:
        """The next response or error."""
        result, error = self._said.get(timeout=SECONDS)
        return result if error is None else error

    def indices(self, count: int) -> list[int]:
        """What the next responses of `repeat` hold."""
        return [int(self.hear().as_numpy("index")[0]) for _ in range(count)]

    def is_silent(self) -> bool:
        """Has everything been heard?"""
        return self._said.empty()

    def close(self, cancel: bool = False) -> None:
        """Say goodbye, or leave at once."""
        self.client.stop_stream(cancel_requests=cancel)


def is_final(result: triton.InferResult) -> bool:
    """As the response says itself."""
    return bool(result.get_response().parameters["triton_final_response"].bool_param)
