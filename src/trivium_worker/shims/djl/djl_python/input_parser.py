"""Marks functions of a model.py by what they do for DJL's own services, and reads a request as the engine would.

Source: spec sheet `djl`, section 11.6.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from djl_python.encode_decode import decode
from djl_python.inputs import Input
from djl_python.request_io import RequestInput, TextInput
from djl_python.unsupported import stand_in

__all__ = [
    "RequestInput",
    "TextInput",
    "format_input",
    "init_handler",
    "input_formatter",
    "prediction_handler",
]
Function = TypeVar("Function", bound=Callable[..., Any])


def input_formatter(function: Function) -> Function:
    """Mark the function that reads requests."""
    function.is_input_formatter = True  # type: ignore[attr-defined]
    return function


def prediction_handler(function: Function) -> Function:
    """Mark the function that predicts, of a service without a language model."""
    function.is_prediction_handler = True  # type: ignore[attr-defined]
    return function


def init_handler(function: Function) -> Function:
    """Mark the function that loads the model, of a service without a language model."""
    function.is_init_handler = True  # type: ignore[attr-defined]
    return function


def format_input(input_item: Input, **kwargs: Any) -> TextInput:
    """Return what a request asks for: `inputs` and `parameters` of its JSON. ValueError for what is no such request."""
    document = decode(input_item, input_item.get_property("Content-Type"))
    if not isinstance(document, dict):
        raise ValueError(f"the request is {type(document).__name__}, and no object with 'inputs'")
    parameters = document.pop("parameters", None) or {}
    if not isinstance(parameters, dict):
        raise ValueError("'parameters' is no object")
    if "stream" in document:
        parameters["stream"] = document["stream"]
    return TextInput(input_text=document.get("inputs", document), parameters=parameters)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return stand_in(f"{__name__}.{name}")
