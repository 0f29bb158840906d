"""The entry point of a TorchServe handler: a function, or `handle` of the only class in its module.

Source: spec sheet `torchserve`, section 8.1. User code is loaded and initialised here, and what it raises fails the
load.
"""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from trivium_worker.wire.values import Failure

EntryPoint = Callable[[Any, Any], Any]
DEFAULT = "handle"


def entry_point(root: str, entry: str, function: str, context: Any, loop: Any = None) -> EntryPoint:
    """Return the function that is called with `(data, context)` for each batch. `entry` is a file below `root`, or
    the name of a handler that `ts.torch_handler` has. On a `loop` it may be a coroutine function, and else not.
    """
    module = _module(root, entry)
    name = function or DEFAULT
    found = getattr(module, name, None)
    if callable(found) and not inspect.isclass(found):
        if loop is None:
            _refuse_coroutine(found, f"{module.__name__}.{name}")
        made = found(None, context)  # once at load: it may prepare itself
        if loop is not None and inspect.isawaitable(made):
            loop.run_until_complete(made)
        handle: EntryPoint = found
        return handle
    return _method(module, name, context, loop)


def _method(module: ModuleType, wanted: str, context: Any, loop: Any) -> EntryPoint:
    from ts.utils.util import list_classes_from_module

    classes = list_classes_from_module(module)
    if len(classes) != 1:
        names = ", ".join(found.__name__ for found in classes) or "none"
        raise Failure(
            (
                f"{getattr(module, '__file__', module.__name__)}: found no function {wanted}(data, "
                f"context), and these classes: {names}. Expected that function, or exactly one class "
                "with a method handle; move others into a module of their own."
            ),
            "load failed",
        )
    service = classes[0]()
    handle = getattr(service, DEFAULT, None)
    if not callable(handle):
        raise Failure(f"{classes[0].__name__} has no method handle(self, data, context).", "load failed")
    if loop is None:
        _refuse_coroutine(handle, f"{classes[0].__name__}.handle")
    initialize = getattr(service, "initialize", None)
    if initialize is not None:
        initialize(context)
    bound: EntryPoint = handle
    return bound


def _module(root: str, entry: str) -> ModuleType:
    path = os.path.join(root, entry)
    if not os.path.isfile(path):
        return importlib.import_module("ts.torch_handler." + entry)
    name = os.path.splitext(os.path.basename(path))[0]
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Failure(f"{path} is no Python file.", "load failed")
    module = importlib.util.module_from_spec(spec)
    if known is None:  # a handler called like a module of Python's own does not take its place
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _refuse_coroutine(function: Any, name: str) -> None:
    if inspect.iscoroutinefunction(function):
        raise Failure(
            f"{name} is `async def`: write asyncCommunication: true into model-config.yaml, or make it a plain `def`.",
            "load failed",
        )
