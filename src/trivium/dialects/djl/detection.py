"""Which engine a folder is for, by the names in it, where nobody says so.

Source: spec sheet `djl`, section 2.5: the first rule that hits wins. Ours differs in one place: Python code goes
before a TorchScript file, since who adds a model.py wants it to run. Pure; judges names, opens nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from trivium.dialects.djl.keys import DjlEngine

FOREIGN_MARKS = ("config.pbtxt", "MAR-INF")
"""What makes a folder another format's, whatever else lies in it."""

_SKLEARN = (".skops", ".joblib", ".pkl", ".pickle", ".cloudpkl")


@dataclass(frozen=True, slots=True)
class Detected:
    """`engine` is DJL's name of it, `entry` the file that it opens; `rule` says by what it was recognised. `serves` is
    empty for an engine that is not served.
    """

    engine: str
    entry: str
    rule: str
    serves: DjlEngine | None = None
    built_in: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    engine: str
    suffixes: tuple[str, ...]
    serves: DjlEngine | None = None
    built_in: str = ""


_BY_FILE = (
    _Rule("Python", (".py",), DjlEngine.PYTHON),
    _Rule("PyTorch", (".pt",), DjlEngine.PYTORCH),
    _Rule("OnnxRuntime", (".onnx",), DjlEngine.ONNX),
    _Rule("XGBoost", (".json", ".xgb", ".bst")),
    _Rule("Python", _SKLEARN, DjlEngine.PYTHON, "djl_python.sklearn_handler"),
    _Rule("TensorRT", (".trt", ".uff")),
    _Rule("TFLite", (".tflite",)),
    _Rule("Llama", (".gguf",)),
)
_BY_NAME: Mapping[str, str] = {
    "saved_model.pb": "TensorFlow",
    "__model__": "PaddlePaddle",
    "inference.pdmodel": "PaddlePaddle",
}


def detect(names: Collection[str], prefixes: Sequence[str], has_model_id: bool = False) -> Detected | None:
    """The engine of a folder with these names; `prefixes` are the names that its files may begin with, beside
    `model`. None where nothing is recognised.
    """
    for rule in _BY_FILE:
        entry = find_file(names, prefixes, rule.suffixes)
        if entry:
            return Detected(rule.engine, entry, f"the file {entry}", rule.serves, rule.built_in)
    for name, engine in _BY_NAME.items():
        if name in names:
            return Detected(engine, name, f"the file {name}")
    if has_model_id or "config.json" in names:
        rule_text = "option.model_id" if has_model_id else "the file config.json"
        return Detected("Python", "", rule_text, DjlEngine.PYTHON, "djl_python.huggingface")
    for prefix in (*prefixes, "model"):
        for name in sorted(names):
            middle = name.removeprefix(f"{prefix}-").removesuffix(".params")
            if len(middle) == 4 and middle.isdecimal() and name == f"{prefix}-{middle}.params":
                return Detected("MXNet", name, f"the file {name}")
    return None


def find_file(names: Collection[str], prefixes: Sequence[str], suffixes: Sequence[str]) -> str:
    """The first of `<prefix><suffix>` and `model<suffix>` that is there; else empty."""
    for suffix in suffixes:
        for prefix in (*prefixes, "model"):
            if prefix + suffix in names:
                return prefix + suffix
    return ""
