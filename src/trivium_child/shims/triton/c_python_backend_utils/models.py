"""Loading, unloading and asking after other models from inside one, and the model's own folder."""

import base64
from typing import Any, Dict, Optional

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException
from c_python_backend_utils.names import as_text
from trivium_child.values import Failure

_FILE = "file:"


def load_model(model_name: str, config: str = "", files: Optional[Dict[str, bytes]] = None) -> None:
    """Read the model's folder again and serve it: with `config`, the JSON text of a configuration, in the place of the
    folder's, and with `files`, by names like "file:1/model.py", in the place of all else. TritonModelException where
    that fails.
    """
    fields: Dict[str, Any] = {"model": model_name}
    if config:
        fields["config"] = config
    if files:
        fields["files"] = {_path(model_name, name): _text(data) for name, data in files.items()}
    _ask("load", "load model", **fields)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Stop serving a model; of an ensemble with `unload_dependents` the models of its steps, too.
    TritonModelException where it fails.
    """
    fields = {"with_dependents": True} if unload_dependents else {}
    _ask("unload", "unload model", model=model_name, **fields)


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Will the model, or that version, answer? False for one that there is not."""
    try:
        return bool(
            _ask("ready", "check readiness of model", model=model_name, version=str(model_version))["ready"]
        )
    except TritonModelException as error:
        if isinstance(error.__cause__, Failure) and error.__cause__.code == "not found":
            return False
        raise


def get_model_dir() -> str:
    """The folder of the model's version, where model.py is."""
    return BACKEND.model_dir


def _path(model_name: str, name: str) -> str:
    if not name.startswith(_FILE):
        raise TritonModelException(
            "Failed to load model '%s': a file is named %r; expected 'file:' and its path, like 'file:1/model.py'."
            % (model_name, name[:80])
        )
    return name[len(_FILE) :]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _ask(verb: str, what: str, **fields: Any) -> Dict[str, Any]:
    fields["model"] = as_text(fields["model"])
    try:
        return BACKEND.host.ask(verb, **fields)
    except Failure as failure:
        raise TritonModelException(
            "Failed to %s '%s': %s" % (what, fields["model"], failure.message)
        ) from failure
