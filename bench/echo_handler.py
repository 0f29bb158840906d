"""The handlers of the bench, as text: `model.py` of a Triton repository or a DJL folder, `handler.py` of an archive."""

ECHO = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
        return answers
"""

MOBILENET = """
import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        path = args["model_repository"] + "/1/model.onnx"
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        answers = []
        for request in requests:
            picture = pb_utils.get_input_tensor_by_name(request, "input").as_numpy()
            (scores,) = self.session.run(["output"], {"input": picture})
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("output", scores)]))
        return answers
"""

BUSY = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for _ in range(400_000):  # some 20 ms of pure Python
            pass
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())]
            )
            for request in requests
        ]
"""

DJL_ECHO = """
from djl_python import Output


def handle(inputs):
    if inputs.is_empty():
        return None
    return Output().add(inputs.get_as_bytes())
"""

TORCHSERVE_ECHO = """
def handle(data, context):
    if data is None:
        return None
    return [bytes(row["body"]) for row in data]
"""

TORCHSERVE_PARTS = """
from ts.handler_utils.utils import send_intermediate_predict_response


def handle(data, context):
    if data is None:
        return None
    for _ in range({parts} - 1):
        send_intermediate_predict_response([b"x" * 16], context.request_ids, "", 200, context)
    return [b"x" * 16]
"""
"""Sends an answer of so many parts, 16 bytes each."""
