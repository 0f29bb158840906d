"""Imports PyTorch and transformers when they are first needed, and keeps the latter quiet and off the network."""

from collections.abc import Mapping, Sequence
from importlib import metadata, util
from typing import Any

from trivium.machine.extras import install_command, lacking
from trivium.types.errors import Code, ServeError

_LEAST = 5
"""Of transformers: the first version of which all has the interface for attention that the engine implements."""


def require_libraries(
    needed: Sequence[str] = ("torch", "transformers"), what: str = "Language models", extra: str = "llm"
) -> None:
    """Raise UNSUPPORTED with the install command where a library is missing, or too old. Imports none of them."""
    for name in needed:
        if util.find_spec(name) is None:
            missing = ModuleNotFoundError(f"No module named '{name}'", name=name)
            raise lacking(what, missing, extra)
    _judge_version(metadata.version("transformers"), extra)


def libraries() -> tuple[Any, Any]:
    """Return torch and transformers. UNSUPPORTED with the install command where one is missing."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise lacking("Language models", error, "llm") from error
    _judge_version(transformers.__version__)
    words: Any = transformers.logging
    words.set_verbosity_error()
    words.disable_progress_bar()
    return torch, transformers


def gguf_library() -> Any:
    """Return the library that reads GGUF. UNSUPPORTED with the install command where it is missing."""
    try:
        import accelerate  # noqa: F401 - transformers asks for it when it reads such a file
        import gguf
    except ImportError as error:
        raise lacking("GGUF files", error, "llm") from error
    return gguf


def gguf_blocks(extra: str = "llm") -> Mapping[int, tuple[int, int]]:
    """Return the numbers and the bytes of a block, for each type of tensor. UNSUPPORTED without the library."""
    try:
        from gguf.constants import GGML_QUANT_SIZES
    except ImportError as error:
        raise lacking("GGUF files", error, extra) from error
    return {int(kind): size for kind, size in GGML_QUANT_SIZES.items()}


def _judge_version(version: str, extra: str = "llm") -> None:
    if int(version.partition(".")[0]) < _LEAST:  # looking for a class would import all of it
        raise ServeError(
            Code.UNSUPPORTED,
            f"Language models need transformers 5.24, and {version} is installed. Install "
            f"it with: {install_command(extra)}",
        )
