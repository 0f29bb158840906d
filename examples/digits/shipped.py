"""Where, in the source tree, these scripts put what the package ships."""

from pathlib import Path

_DEMO = Path(__file__).resolve().parents[2] / "src" / "trivium" / "demo"

MODEL = _DEMO / "models" / "digits" / "1" / "model.onnx"
BARE_MODEL = _DEMO / "bare" / "digits-bare.onnx"
PICTURES = _DEMO / "pictures"
