"""The dialects of handlers: each is a package here, whose shims have the modules that its handlers import."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from trivium_worker.runtime.adapter import Adapter, Host, Setup

SHIMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shims")


def make_importable(dialect: str, folders: Iterable[str] = ()) -> None:
    """Put a model's own folders, and behind them the shims of a dialect, in front of all that can be imported."""
    sys.path[:0] = [*folders, os.path.join(SHIMS, dialect)]


def run_file(path: str, name: str, search: list[str] | None = None) -> ModuleType:
    """Run a file of user code as the module `name`, which stays among the modules unless it raises; with folders to
    `search` it is a package. FileNotFoundError where there is no such file of Python.
    """
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def adapter_of(told: dict[str, Any]) -> Callable[[Setup, Host], Adapter]:
    """Return what makes the adapter of a setup's dialect, for which user code can be imported from now on."""
    make_importable(told["dialect"], told["path"])
    make: Callable[[Setup, Host], Adapter] = importlib.import_module(f"{__name__}.{told['dialect']}").ADAPTER
    return make
