"""Started by path, under any interpreter: makes this folder importable as `trivium_worker`, and nothing else of what
lies beside it. Handlers may know it by its former name, too. This file and `too_old` run under any Python 3.
"""

import importlib.util
import os
import sys


def load_package() -> None:
    """Register `trivium_worker` by its place, and take the folder that the interpreter put on `sys.path` off it."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or os.curdir) != here]
    spec = importlib.util.spec_from_file_location(
        "trivium_worker", os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["trivium_worker"] = sys.modules["trivium_child"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    load_package()
    if sys.version_info < (3, 10):  # noqa: UP036 - whoever names the interpreter may not know
        from trivium_worker.too_old import refuse

        refuse(sys.argv[1:])
    if sys.argv[1:] == ["--complete"]:
        from trivium_worker import completion

        completion.main()
    elif sys.argv[1:2] == ["--tool"]:
        from trivium_worker import tool

        tool.main(sys.argv[2:])
    else:
        from trivium_worker.dialects import adapter_of
        from trivium_worker.runtime.life import serve

        serve(sys.argv[1:], adapter_of)
