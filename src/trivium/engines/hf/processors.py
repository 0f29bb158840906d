"""Finds the logits processors that a model's folder brings: `file.py:name`, a class or a function of that file.

The file is code of the folder's owner, and is run once. What a client names can be nothing else: no other folder, and
no name that the file has only imported.
"""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from trivium.engines.hf.requests import refusal
from trivium.types.errors import Code, ServeError

LogitsCall = Callable[..., Any]
"""Gets the tokens so far and the scores of the next one, and returns the scores."""

_EXPECTED = "'file.py:name', a file beside the model and a logits processor that it defines"


class LogitsProcessors:
    """One per model. Used by one thread."""

    def __init__(self, model: str, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._modules: dict[str, ModuleType] = {}

    def make(self, name: str) -> LogitsCall:
        """Return a processor for one sequence: a new object of a class, and a function as it is. INVALID for one that
        is not there, MODEL_FAILED for a file that cannot be run.
        """
        file, _, attribute = name.partition(":")
        if not self._is_plain(file) or not attribute.isidentifier():
            raise refusal(self._model, "logits_processor", _EXPECTED, f"'{name}'")
        module = self._modules.get(file) or self._run(file)
        found: Any = getattr(module, attribute, None)
        if not callable(found) or getattr(found, "__module__", "") != module.__name__:
            raise refusal(self._model, "logits_processor", _EXPECTED, f"'{name}'")
        if not isinstance(found, type):
            return cast(LogitsCall, found)
        try:
            made = found()
        except BaseException as error:
            raise self._failure(name, error) from error
        if not callable(made):
            raise refusal(self._model, "logits_processor", _EXPECTED, f"'{name}'")
        return cast(LogitsCall, made)

    def _is_plain(self, file: str) -> bool:
        """Is it the name of a Python file that lies in the folder itself?"""
        is_name = file.endswith(".py") and "/" not in file and "\\" not in file and file[:-3].isidentifier()
        return is_name and (self._folder / file).is_file()

    def _run(self, file: str) -> ModuleType:
        spec = spec_from_file_location(f"trivium_logits_{file[:-3]}", self._folder / file)
        assert spec is not None, "the name of a Python file"
        assert spec.loader is not None, "the same"
        module = module_from_spec(spec)
        sys.modules[module.__name__] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[module.__name__]
            raise self._failure(file, error) from error
        self._modules[file] = module
        return module

    def _failure(self, name: str, error: BaseException) -> ServeError:
        return ServeError(
            Code.MODEL_FAILED,
            f"Model '{self._model}': the logits processor '{name}' cannot be made: {type(error).__name__}: {error}",
        )
