"""Marks a function of a model.py as the one that writes the answers of the engine, and has what such a function reads.

Source: spec sheet `djl`, section 11.6. The functions by names (`json`, `jsonlines`, ...) are the server's.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from djl_python.request_io import RequestOutput, Sequence, TextGenerationOutput, TextInput, Token
from djl_python.unsupported import stand_in

__all__ = ["RequestOutput", "Sequence", "TextGenerationOutput", "TextInput", "Token", "output_formatter"]
Function = TypeVar("Function", bound=Callable[..., Any])


def output_formatter(function: Function) -> Function:
    """Mark a function; DJL finds it by this."""
    function.is_output_formatter = True  # type: ignore[attr-defined]
    return function


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return stand_in(f"{__name__}.{name}")
