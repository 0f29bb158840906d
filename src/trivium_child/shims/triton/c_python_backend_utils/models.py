"""Loading, unloading and asking after other models from inside one, and the model's own folder."""

from typing import Any, Dict, Optional

from c_python_backend_utils.backend import BACKEND
from c_python_backend_utils.errors import TritonModelException
from trivium_child.values import Failure


def load_model(model_name: str, config: str = "", files: Optional[Dict[str, bytes]] = None) -> None:
    """Read the model's folder again and serve it. TritonModelException where that fails, or where `config` or
    `files` would replace what is in the folder.
    """
    for name, value in (("config", config), ("files", files)):
        if value:
            raise TritonModelException(
                "Failed to load model '%s': %s is not served yet (left to Triton's own issue). Put what it says "
                "into the model's folder." % (model_name, name)
            )
    _ask("load", "load model", model=model_name)


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Stop serving a model. No model depends on another one, so `unload_dependents` concerns none.
    TritonModelException where it fails.
    """
    _ask("unload", "unload model", model=model_name)


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


def _ask(verb: str, what: str, **fields: str) -> Dict[str, Any]:
    try:
        return BACKEND.host.ask(verb, **fields)
    except Failure as failure:
        raise TritonModelException(
            "Failed to %s '%s': %s" % (what, fields["model"], failure.message)
        ) from failure
