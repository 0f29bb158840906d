"""model.py as a module of a package that is named like its version: `1.model`. Sheet "triton", section 8.1.

The version's folder and the model's folder go to the end of `sys.path`, as in the original: what is installed
comes before what lies beside the model.
"""

import os
import sys
import types
from typing import Any

from trivium_worker.dialects import run_file
from trivium_worker.wire.values import Failure


def load_module(root: str, entry: str, version: str) -> Any:
    """The module, run. `root` is the version's folder. Raises Failure where the file cannot be a module, and what
    the file raises.
    """
    folder = os.path.abspath(root)
    for place in (folder, os.path.dirname(folder)):
        if place not in sys.path:
            sys.path.append(place)
    path = os.path.join(folder, entry)
    stem, suffix = os.path.splitext(os.path.basename(entry))
    if suffix != ".py" or not os.path.isfile(path):
        raise Failure(
            f"{path} is no Python file; expected model.py, or what default_model_filename names, with .py at its end.",
            "load failed",
        )
    package = _package(version, folder)
    module = run_file(path, f"{version}.{stem}")
    setattr(package, stem, module)
    return module


def _package(name: str, folder: str) -> Any:
    init = os.path.join(folder, "__init__.py")
    if os.path.isfile(init):
        return run_file(init, name, [folder])
    package: Any = types.ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package
    return package
