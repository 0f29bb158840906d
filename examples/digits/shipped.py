"""Where, in the source tree, these scripts put what the package ships."""

from pathlib import Path

_DEMO = Path(__file__).resolve().parents[2] / "src" / "trivium" / "demo"

MODEL = _DEMO / "models" / "digits" / "1" / "model.onnx"
BARE_MODEL = _DEMO / "bare" / "digits-bare.onnx"
TRITON_HANDLER_MODEL = _DEMO / "handlers" / "triton" / "digits-python" / "1" / "model.onnx"
DJL_MODEL = _DEMO / "handlers" / "djl" / "digits-djl" / "network.onnx"
NETWORKS = (MODEL, BARE_MODEL, TRITON_HANDLER_MODEL, DJL_MODEL)
"""The same bytes in every dress."""

ARCHIVE = _DEMO / "handlers" / "torchserve" / "digits-torchserve.mar"
PICTURES = _DEMO / "pictures"
