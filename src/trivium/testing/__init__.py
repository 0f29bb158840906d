"""Tests of handlers without a server: `with handler("models/x") as h: h.infer({"x": array})`, in this process.

A debugger stops in the handler, and what it gets and answers is converted as in a worker. The names load on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivium.testing.answers import TestAnswer
    from trivium.testing.calls import CallableModels
    from trivium.testing.handlers import LoadedHandler, handler

_HOMES = {
    "CallableModels": "calls",
    "LoadedHandler": "handlers",
    "TestAnswer": "answers",
    "handler": "handlers",
}
__all__ = ["CallableModels", "LoadedHandler", "TestAnswer", "handler"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
