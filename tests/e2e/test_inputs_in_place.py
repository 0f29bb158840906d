"""A large input over the wire: a Triton model gets the memory that it was received in, aligned, whatever the length of
the JSON before it.
"""

import json
import struct

import numpy as np
import pytest
from tests.harness.handlers import triton
from tests.harness.raw_http import ask, post
from tests.harness.server_process import ServerProcess, serve_handlers
from tritonclient import grpc

MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", self.about(request))]) for request in requests]

    def about(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        address = x.__array_interface__["data"][0]
        is_copy = x.base.__class__ is bytearray
        said = np.array([[address % 64, is_copy, x.mean(), x.flags.writeable]], "<f4")
        x[:] = 77  # for whoever gets the same memory next
        return np.repeat(said, len(x), axis=0)
"""
ROWS, WIDTH = 9_000, 4


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    triton(folder, "m", MODEL, rows=ROWS)
    with serve_handlers(tmp_path_factory.mktemp("log") / "log", folder) as serving:
        yield serving


def body(array: np.ndarray, padding: int) -> tuple[bytes, int]:
    """A v2 body with one binary tensor, behind a JSON with so many blanks in it; how long the JSON is."""
    x = {
        "name": "x",
        "shape": [ROWS, WIDTH],
        "datatype": "FP32",
        "parameters": {"binary_data_size": array.nbytes},
    }
    text = json.dumps({"inputs": [x], "parameters": {"binary_data_output": True}}) + " " * padding
    return text.encode() + array.tobytes(), len(text)


def test_over_http_behind_a_head_of_any_length(server: ServerProcess):
    lengths = set()
    for padding in range(66):
        whole, length = body(np.full((ROWS, WIDTH), padding, "<f4"), padding)
        answer = ask(
            server.port,
            post("/v2/models/m/infer", whole, b"Inference-Header-Content-Length: %d\r\n" % length),
        )
        assert answer.status == 200, answer
        assert struct.unpack("<4f", answer.body[-16:]) == (0, False, padding, True)
        lengths.add(length % 64)
    assert len(lengths) == 64


def test_over_grpc_from_the_copy_that_was_made_there(server: ServerProcess):
    with grpc.InferenceServerClient(server.grpc_address) as client:
        for value in range(5):
            x = grpc.InferInput("x", [ROWS, WIDTH], "FP32")
            x.set_data_from_numpy(np.full((ROWS, WIDTH), value, "<f4"))
            said = client.infer("m", [x]).as_numpy("y")
            assert (said == [0, 0, value, 1]).all()
