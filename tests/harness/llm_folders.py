"""Made-up folders of language models: names and heads as real ones have them, and no weights."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

LLAMA: Mapping[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}
EMPTY_WEIGHTS = struct.pack("<Q", 2) + b"{}"


def checkpoint(folder: Path, config: object = LLAMA, *left_out: str, **files: bytes | str | object) -> Path:
    """Lay out a Hugging Face folder; of further `files` a name's `__` is a point. What is no text or bytes is JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {"config.json": config, "model.safetensors": EMPTY_WEIGHTS, "tokenizer.json": {}}
    own |= {name.replace("__", "."): content for name, content in files.items()}
    for name, content in own.items():
        if name not in left_out:
            write(folder / name, content)
    return folder


def write(path: Path, content: object) -> None:
    """Write bytes and text as they are, anything else as JSON."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(*pairs: tuple[str, object], version: int = 3, tensors: int = 0, keys: int | None = None) -> bytes:
    """Write the head of a GGUF file with these metadata: texts, whole numbers, and lists of texts."""
    made = b"GGUF" + struct.pack("<IQQ", version, tensors, len(pairs) if keys is None else keys)
    for key, value in pairs:
        made += _text(key)
        if isinstance(value, str):
            made += struct.pack("<I", 8) + _text(value)
        elif isinstance(value, list):
            made += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
        elif isinstance(value, bytes):
            made += value
        else:
            made += struct.pack("<II", 4, value)
    return made


GGUF = gguf(
    ("general.architecture", "llama"),
    ("general.name", "Tiny"),
    ("tokenizer.ggml.tokens", ["a", "b"]),
    ("llama.context_length", 512),
)
