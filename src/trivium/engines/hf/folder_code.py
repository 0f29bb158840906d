"""The one gate for Python code of a model's folder: nothing of it is run or imported but through here.

Whether it may run is the operator's word, `trust_remote_code`, and it runs while the model loads: what a client sends
never makes a file run.
"""

import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from trivium.engines.hf.call_guard import CallGuard
from trivium.types.errors import Code, ServeError, named

RUN_SECONDS = 60.0
"""Seconds that running a file may take: it defines something, and imports a library at most."""


class FolderCode:
    """The gate of one model. `is_trusted`: may code of its folder run? `seconds`: for how long at most."""

    def __init__(self, model: str, is_trusted: bool, seconds: float = RUN_SECONDS) -> None:
        self._model = model
        self._is_trusted = is_trusted
        self._seconds = seconds

    def require(self, what: str) -> None:
        """Raise UNSUPPORTED, unless the folder is trusted, for `what` needs its code: the begin of a sentence."""
        if not self._is_trusted:
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{self._model}': {what}: Python code of the model's own folder, which would run in the worker. "
                "If you trust it, set trust_remote_code to true.",
            )

    def of_library(self) -> Mapping[str, bool]:
        """Return the arguments with which transformers opens files of the folder: they run only as far as it says."""
        return {"local_files_only": True, "trust_remote_code": self._is_trusted}

    def run(self, path: Path) -> ModuleType:
        """Run a Python file of the folder, and return its module. UNSUPPORTED where it is not trusted, LOAD_FAILED for
        one that cannot be run, or does not end. One that does not even let itself be ended ends the process.
        """
        self.require(f"{path.name} is named")
        spec = spec_from_file_location(f"trivium_folder_{path.stem}", path)
        assert spec is not None, "the name of a Python file"
        assert spec.loader is not None, "the same"
        module = module_from_spec(spec)
        sys.modules[module.__name__] = module
        guard = CallGuard(self._seconds, subject="file")
        try:
            guard.call(str(path), spec.loader.exec_module, module)
        except BaseException as error:
            del sys.modules[module.__name__]
            text = f"Model '{self._model}': {path} cannot be run: {named(error)}"
            raise ServeError(Code.LOAD_FAILED, text) from error
        finally:
            guard.close()
        return module
