"""Recognises the digit in a picture: a handler of Triton's Python backend over the shipped network."""

import base64
import io
import os
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from PIL import Image

BASE64_PNG = b"iVBORw0KGgo"


class TritonPythonModel:
    """Takes `image`, light ink on dark paper in [rows, 1, 8, 8], or `picture`, a PNG in each row."""

    def initialize(self, args: dict[str, str]) -> None:
        """Open the network, which lies next to this file."""
        network = os.path.join(os.path.dirname(__file__), "model.onnx")
        self.session: Any = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])

    def execute(self, requests: list[Any]) -> list[Any]:
        """A response for each request; one whose picture cannot be read fails alone."""
        return [self.answer(request) for request in requests]

    def answer(self, request: Any) -> Any:
        """The digit and ten probabilities, for every row."""
        image = pb_utils.get_input_tensor_by_name(request, "image")
        picture = pb_utils.get_input_tensor_by_name(request, "picture")
        try:
            if image is not None:
                tensor = image.as_numpy()
            elif picture is not None:
                tensor = np.stack([to_tensor(data) for data in picture.as_numpy().ravel()])
            else:
                raise ValueError("send the input image or the input picture")
        except (OSError, ValueError) as error:
            failure = pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=failure)
        (probabilities,) = self.session.run(["probabilities"], {"image": tensor})
        digits = probabilities.argmax(axis=1).astype(np.int64).reshape(-1, 1)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("digit", digits), pb_utils.Tensor("probabilities", probabilities)]
        )


def to_tensor(data: bytes) -> Any:
    """A picture, or its base64 text, as [1, 8, 8], 0 (paper) to 1 (ink), whichever of the two is dark."""
    if data.startswith(BASE64_PNG):
        data = base64.b64decode(data)
    with Image.open(io.BytesIO(data)) as picture:
        grey = picture.convert("L").resize((8, 8), Image.Resampling.BOX)
    levels = np.asarray(grey, np.float32) / 255
    return (1 - levels if np.median(levels) > 0.5 else levels).reshape(1, 8, 8)
