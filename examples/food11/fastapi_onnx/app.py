"""The baseline on ONNX Runtime: `uvicorn examples.food11.fastapi_onnx.app:app`. FOOD11_MODEL names the file."""

import os

import numpy as np
import onnxruntime
from examples.food11.endpoint import endpoint

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(os.environ.get("FOOD11_THREADS", "1"))
session = onnxruntime.InferenceSession(
    os.environ.get("FOOD11_MODEL", "food11.onnx"), options, providers=["CPUExecutionProvider"]
)


def scores(pictures: np.ndarray) -> np.ndarray:
    """See `endpoint.Scores`."""
    (found,) = session.run(["output"], {"input": pictures})
    return np.asarray(found)


app = endpoint("Food classifier (ONNX)", scores)
