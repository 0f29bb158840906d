"""Names of files by which a Hugging Face folder is recognised, and those that make it another system's.

Pure; judges names, opens nothing. Source: spec sheet `llm`, and the names that `save_pretrained` writes.
"""

import re
from collections.abc import Collection

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
GGUF = ".gguf"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
OPENVINO = "openvino_model.xml"
"""The graph of a language model that was exported for OpenVINO; its weights lie beside it, in a .bin of that name."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "tekken.json", "vocab.txt")
"""A folder with none of them cannot make tokens of a text."""

MARKS = frozenset(
    [
        *("serving.properties", "model.py", "model.pt", "model.onnx", "workflow.json", "workflow.yaml"),
        *("workflow.yml", "config.pbtxt", "MAR-INF"),
    ]
)
"""What makes a folder another format's, whatever else lies in it."""

_OTHERS_SUFFIXES = (".py", ".pt", ".onnx")
_PICKLED = re.compile(r"(?:pytorch_model|consolidated|model).*\.(?:bin|pth|ckpt)(?:\.index\.json)?")
_FOREIGN_WEIGHTS = frozenset({"tf_model.h5", "flax_model.msgpack"})
_PIECE = re.compile(r"-[0-9]{5}-of-[0-9]{5}\.gguf$", re.IGNORECASE)
_PROJECTOR = "mmproj"


def is_folder(names: Collection[str], title: str) -> bool:
    """Tell whether these are the names of a Hugging Face folder: a config.json and weights of whatever kind. `title` is
    the folder's own name, after which other formats name their files.
    """
    has_weights = OPENVINO in names or has_safetensors(names) or bool(pickled(names))
    return CONFIG in names and not is_marked(names, title) and has_weights


def is_marked(names: Collection[str], title: str) -> bool:
    """Tell whether a folder with these names is another format's."""
    return any(name in MARKS for name in names) or any(
        f"{title}{suffix}" in names for suffix in _OTHERS_SUFFIXES
    )


def has_safetensors(names: Collection[str]) -> bool:
    """Tell whether weights lie there that hold nothing but numbers."""
    return any(name.endswith(".safetensors") or name == INDEX for name in names)


def pickled(names: Collection[str]) -> list[str]:
    """List the files whose weights are pickled, or another library's."""
    return sorted(name for name in names if _PICKLED.fullmatch(name) or name in _FOREIGN_WEIGHTS)


def gguf_files(names: Collection[str]) -> list[str]:
    """List the models in GGUF; what only projects pictures for one is none."""
    return sorted(
        name for name in names if name.lower().endswith(GGUF) and not name.lower().startswith(_PROJECTOR)
    )


def is_piece(name: str) -> bool:
    """Tell whether a GGUF file is one of several that hold a model together."""
    return bool(_PIECE.search(name))
