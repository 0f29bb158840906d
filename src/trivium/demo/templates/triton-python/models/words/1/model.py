"""A model of Triton's Python backend: counts the words of texts."""

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers one response for each request."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load a model here: its files lie in args["model_repository"]."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer a batch, whose requests may have several rows each."""
        return [self.answer(request) for request in requests]

    def answer(self, request: Any) -> Any:
        """Count the words of each row."""
        texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
        counts = [[len(text.decode().split())] for text in texts.ravel()]
        return pb_utils.InferenceResponse([pb_utils.Tensor("words", np.array(counts, np.int64))])
