"""The logits processors that the operator has named for a model, by which alone a client can choose.

Each is a class or a function of a Python file of the model's folder, `file.py:object`. The files run when the model
loads, behind the gate of `folder_code`; what a request names is looked up, and nothing else.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from trivium.codecs.near_names import near
from trivium.engines.hf.folder_code import FolderCode
from trivium.engines.hf.requests import refusal
from trivium.types.errors import Code, ServeError, named

LogitsCall = Callable[..., Any]
"""Gets the tokens so far and the scores of the next one, and returns the scores."""

_FIELD = "logits_processor"
_SHOWN = 10


class LogitsProcessors:
    """One per model. Used by one thread."""

    def __init__(self, model: str, found: Mapping[str, LogitsCall]) -> None:
        self._model = model
        self._found = found

    def make(self, name: str) -> LogitsCall:
        """Return a processor for one sequence: a new object of a class, and a function as it is. INVALID for a name
        that nobody has given, MODEL_FAILED for one that cannot be made.
        """
        found = self._found.get(name)
        if found is None:
            raise refusal(self._model, _FIELD, self._expected(name), f"'{name}'")
        if not isinstance(found, type):
            return found
        try:
            made: object = found()
            if not callable(made):
                raise TypeError(f"a {found.__name__} cannot be called")
        except BaseException as error:
            raise ServeError(
                Code.MODEL_FAILED,
                f"Model '{self._model}': the logits processor '{name}' cannot be made: {named(error)}",
            ) from error
        return cast(LogitsCall, made)

    def _expected(self, name: str) -> str:
        if not self._found:
            return "none: this model has no processors, which its parameter 'logits_processors' would name"
        meant = near(name, self._found)
        hint = f"; did you mean '{meant}'?" if meant else ""
        return f"one of the model's: {', '.join(list(self._found)[:_SHOWN])}{hint}"


def load_processors(model: str, named: Mapping[str, str], folder: Path, code: FolderCode) -> LogitsProcessors:
    """Run the files of the processors that a model's parameters name. UNSUPPORTED where its folder is not trusted,
    LOAD_FAILED for one that is not there.
    """
    modules = {file: code.run(folder / file) for file in dict.fromkeys(map(_file, named.values()))}
    found: dict[str, LogitsCall] = {}
    for name, place in named.items():
        module = modules[_file(place)]
        made = getattr(module, place.partition(":")[2], None)
        if not callable(made):
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{model}': its logits processor '{name}' is {place}, and {folder / _file(place)} has no such "
                "class or function. Correct its parameter 'logits_processors'.",
            )
        found[name] = made
    return LogitsProcessors(model, found)


def _file(place: str) -> str:
    return place.partition(":")[0]
