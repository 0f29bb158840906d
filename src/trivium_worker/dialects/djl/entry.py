"""Finds the function that a DJL model names: in a file of the model's folder, or in a module.

Source: spec sheet `djl`, section 8.2. What user code raises while it is imported passes.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from trivium_worker.dialects import run_file
from trivium_worker.wire.values import Failure


def load_entry(root: str, entry: str) -> ModuleType:
    """Load the entry's module; Failure (code "load failed") where it is not there."""
    return _of_entry(os.path.join(root, entry)) if entry.endswith(".py") else importlib.import_module(entry)


def function_of(
    module: ModuleType, entry: str, name: str, is_asynchronous: bool = False
) -> Callable[[Any], Any]:
    """Return the function `name` of the entry. Raises Failure (code "load failed") where it is not there, cannot be
    called, or is an async function that nobody would wait for.
    """
    function = getattr(module, name, None)
    if function is None or not callable(function):
        there = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise Failure(
            (
                f"{entry} has no function {name}; it defines: "
                f"{', '.join(there[:20]) or 'no functions'}. Define it, or name another in "
                "option.handler."
            ),
            "load failed",
        )
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if is_async and not is_asynchronous:
        raise Failure(
            f"{name} in {entry} is an async function. Set option.async_mode=true, or define it without async.",
            "load failed",
        )
    found: Callable[[Any], Any] = function
    return found


def load_file(path: str, name: str) -> ModuleType:
    """Run a file as the module `name`, which stays among the modules unless it raises."""
    if not path.endswith(".py") or not os.path.isfile(path):
        raise Failure(f"There is no file {path}. Name it in option.entryPoint.", "load failed")
    return run_file(path, name)


def _of_entry(path: str) -> ModuleType:
    """The module of a file under its own name, so that what it defines can be pickled and imported again."""
    name = os.path.splitext(os.path.basename(path))[0]
    return load_file(path, "djl_entry_" + name if name in sys.modules else name)
