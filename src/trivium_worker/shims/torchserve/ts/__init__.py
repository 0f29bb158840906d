"""The package `ts` that TorchServe's handlers import: the names of spec sheet `torchserve`, section 8.4.

On `sys.path` of workers, and of people's own tests, whose PYTHONPATH names the folder that `trivium shims torchserve`
prints. It imports torch in functions, never at the top.
"""

import importlib.util
import os
import sys

_WORKER = "trivium_worker"


def _find_worker() -> None:
    """Let the package that this one lies in be imported, where no worker has done so already: the Python of somebody's
    tests need not have it, and is given nothing else of the folder around it.
    """
    if _WORKER in sys.modules:
        return
    folder = os.path.abspath(__file__)
    for _ in range(4):
        folder = os.path.dirname(folder)
    file = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(_WORKER, file, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module: name the folder that `trivium shims torchserve` prints")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_WORKER] = module
    spec.loader.exec_module(module)


_find_worker()

from ts import unsupported as unsupported  # noqa: E402 - needs the package that was just found
from ts.version import __version__ as __version__  # noqa: E402
