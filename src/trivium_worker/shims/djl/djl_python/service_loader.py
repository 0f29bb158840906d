"""Loads the module of a model and calls the functions in it, for tests of handlers and for handlers of several parts.

The worker itself loads its handler by `trivium_worker.dialects.djl.entry`, whose files are loaded here, too.
"""

import hashlib
import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from trivium_worker.dialects.djl.entry import load_file


class ModelService:
    """A module that holds handlers, and the folder of its model."""

    def __init__(self, module: ModuleType, model_dir: str | None) -> None:
        self.module = module
        self.model_dir = model_dir

    def invoke_handler(self, function_name: str, inputs: Any) -> Any:
        """Call a function of the module, which finds the model's folder among the request's properties."""
        inputs.properties["model_dir"] = self.model_dir
        return getattr(self.module, function_name)(inputs)

    async def invoke_handler_async(self, function_name: str, inputs: Any) -> Any:
        """Call a function of the module that is defined with `async def`, and wait for what it returns."""
        inputs.properties["model_dir"] = self.model_dir
        return await getattr(self.module, function_name)(inputs)


def load_model_service(
    model_dir: str, entry_point: str, device_id: Any, namespace: str | None = None
) -> ModelService:
    """Load a module by its name, or a file of the model's folder or at an absolute path, where it ends in `.py`.

    `namespace` names the module of a file, so that several files of one name can be there. ValueError without the file.
    """
    if os.path.exists(os.path.join(model_dir, "MAR-INF", "MANIFEST.json")):
        raise NotImplementedError(
            f"{model_dir} is a TorchServe archive, which djl_python.service_loader does not load. Serve it as it is: "
            f"trivium serve {model_dir}"
        )
    if not (os.path.isabs(entry_point) or entry_point.endswith(".py")):
        return ModelService(importlib.import_module(entry_point), model_dir)
    path = os.path.join(model_dir, entry_point)
    if not os.path.exists(path):
        raise ValueError(f"entry-point file not found {path}.")
    return ModelService(load_file(path, _module_name(path, namespace)), model_dir)


def has_function_in_module(module: Any, function_name: str) -> bool:
    """Does the module have something by this name that can be called?"""
    return callable(getattr(module, function_name, None))


def is_valid_dir(dir_path: str) -> bool:
    """Is there the folder that a path lies in?"""
    return os.path.exists(os.path.dirname(dir_path))


def find_decorated_function(module: Any, decorator_attribute: str) -> Callable[..., Any] | None:
    """Return the first function, in the order of the alphabet, that has an attribute that is true; or None."""
    for name in dir(module):
        found = getattr(module, name)
        if callable(found) and getattr(found, decorator_attribute, False):
            function: Callable[..., Any] = found
            return function
    return None


def get_annotated_function(
    model_dir: str, decorator_attribute: str, namespace: str | None = None
) -> Callable[..., Any] | None:
    """Return such a function of the folder's `model.py`; None without the file, or where it raises ValueError."""
    try:
        service = load_model_service(model_dir, "model.py", -1, namespace)
    except ValueError:
        return None
    return find_decorated_function(service.module, decorator_attribute)


def _module_name(path: str, namespace: str | None) -> str:
    if namespace:
        return "ns_" + namespace.replace("-", "_").replace(".", "_")
    return "model_" + hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
