"""Imports PyTorch and transformers when they are first needed, and keeps the latter quiet and off the network."""

from typing import Any

from trivium.machine.extras import install_command, lacking
from trivium.types.errors import Code, ServeError

_LEAST = 5
"""Of transformers: the first version of which all has the interface for attention that the engine implements."""


def libraries() -> tuple[Any, Any]:
    """Return torch and transformers. UNSUPPORTED with the install command where one is missing."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise lacking("Language models", error, "llm") from error
    if int(transformers.__version__.partition(".")[0]) < _LEAST:  # looking for a class would import all of it
        raise ServeError(
            Code.UNSUPPORTED,
            f"Language models need transformers 5.24, and {transformers.__version__} is installed. Install "
            f"it with: {install_command('llm')}",
        )
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
