"""Loading, unloading and asking after other models from inside one, and the model's own folder."""

import base64
import re
from typing import Any

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException
from c_python_backend_utils.names import as_text, text, unfit
from trivium_worker.wire.values import Failure

_FILE = "file:"
_VERSION = re.compile(r"\s*[+-]?[0-9]+")


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Read the model's folder again and serve it: with `config`, the JSON text of a configuration, in the place of the
    folder's, and with `files`, by names like "file:1/model.py", in the place of all else. TritonModelException where
    that fails, TypeError for what is no name, no text or no bytes.
    """
    name = text("load_model: model_name", model_name)
    fields: dict[str, Any] = {"model": name}
    if text("load_model: config", config):
        fields["config"] = as_text(config)
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{name}', files should be a dictionary of file paths and file contents"
        )
    if files:
        fields["files"] = {_path(name, path): _encoded(data) for path, data in files.items()}
    _ask("load", "load model", **fields)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Stop serving a model; of an ensemble with `unload_dependents` the models of its steps, too. Of one that there is
    not there is nothing to stop. TritonModelException where it fails.
    """
    fields = {"with_dependents": True} if unload_dependents else {}
    try:
        _ask("unload", "unload model", model=text("unload_model: model_name", model_name), **fields)
    except TritonModelException as error:
        if not _is_of_none(error.__cause__):
            raise


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Will the model, or that version, answer? False for one that there is not. TritonModelException for a version
    that is no number.
    """
    name = text("is_model_ready: model_name", model_name)
    version = _version(text("is_model_ready: model_version", model_version))
    if not name:
        return False
    try:
        return bool(_ask("ready", "check model readiness", model=name, version=version)["ready"])
    except TritonModelException as error:
        if _is_of_none(error.__cause__):
            return False
        raise


def get_model_dir() -> str:
    """The folder of the model's version, where model.py is."""
    return BACKEND.model_dir


def _version(told: str) -> str:
    """Return the version by the beginning of its text, as the original reads it."""
    if not told:
        return ""
    found = _VERSION.match(told)
    number = int(found.group()) if found else None
    if number is None or number < 0:
        why = " (details: stol)" if number is None else ""
        raise _failed(
            "check model readiness",
            (
                f"failed to get model version from specified version string '{told}'{why}, version "
                "should be an integral value > 0"
            ),
        )
    return str(number)


def _path(model_name: str, name: Any) -> str:
    if not text("load_model: a file's name", name).startswith(_FILE):
        raise TritonModelException(
            f"Failed to load model '{model_name}': a file is named {name[:80]!r}; expected "
            "'file:' and its path, like 'file:1/model.py'."
        )
    return str(as_text(name))[len(_FILE) :]


def _encoded(data: Any) -> str:
    if not isinstance(data, bytes):
        raise unfit("load_model: a file's content", data, "bytes")
    return base64.b64encode(data).decode("ascii")


def _ask(verb: str, what: str, **fields: Any) -> dict[str, Any]:
    try:
        return BACKEND.host.ask(verb, **fields)
    except Failure as failure:
        raise _failed(what, failure.message) from failure


def _is_of_none(cause: BaseException | None) -> bool:
    return isinstance(cause, Failure) and cause.code == "not found"


def _failed(what: str, message: str) -> TritonModelException:
    """Return the error in the form of the original."""
    return TritonModelException(
        f"Failed to {what}: Failed to process the request for model '{BACKEND.instance}', message: {message}"
    )
