"""The matrix of engines, as it must be: each engine's digits in every dress, by every body, written before it was run.

A cell is `20/20` where twenty pictures were asked in one request, each was told right, and the probabilities are within
1e-5 of the bare library's (of the graph's, where a graph was written from the same weights).
"""

BODIES = ("v2 JSON", "v2 binary", "v2 gRPC", "NDList", "npz", "JSON", "MLflow", "TorchServe")
"""What a client sends: the v2 protocol three times, DJL's three bodies, a scoring body at `/invocations`, and the JSON
of TorchServe's `/predictions` under its own profile."""

DRESSES = {
    "onnx": ("bare", "DJL", "Triton", "MLflow"),
    "torch": ("bare", "DJL", "Triton"),
    "tensorflow": ("bare", "DJL", "Triton"),
    "openvino": ("bare", "Triton"),
    "paddle": ("bare", "DJL"),
    "xgboost": ("bare", "DJL", "Triton (FIL)", "MLflow"),
    "lightgbm": ("bare", "DJL", "Triton (FIL)", "MLflow"),
    "sklearn": ("bare", "DJL", "MLflow"),
}

APART = {"mxnet": ("bare", "DJL")}
"""Engines of an environment of their own, whose cells `test_mxnet` asks."""

RIGHT = "20/20"
EXCEPTIONS: dict[tuple[str, str, str], str] = {}
"""Cells that are answered otherwise: the status, as the table of payloads has it."""


def cell(engine: str, dress: str, body: str) -> str:
    """Return what a cell must be."""
    return EXCEPTIONS.get((engine, dress, body), RIGHT)
