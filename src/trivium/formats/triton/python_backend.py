"""What only the Python backend has: an interpreter, settings for its worker, and methods that nobody calls yet.

Reads the text of model.py and never runs it. Sheet "triton", sections 8.1 and 8.8. Must not know the worker.
"""

import ast
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from trivium.dialects.triton.backends import Backend
from trivium.dialects.triton.config_text import ConfigText
from trivium.dialects.triton.description import config_json
from trivium.formats.triton.folder import ModelFolder
from trivium.types.findings import Finding
from trivium.types.spec import Handler, ModelSpec, Origin

BACKEND = "python"
ENVIRONMENT = "EXECUTION_ENV_PATH"
MODEL_FOLDER = "$$TRITON_MODEL_DIRECTORY"
MOST_TEXT = 2**22
"""Bytes of a model.py that is looked into."""

_CLASS = "TritonPythonModel"
_UNCALLED = {
    "auto_complete_config": "it is not called, and what config.pbtxt says holds",
    "is_ready": "it is not called, and the model is ready once it is loaded",
}
_LATER = "(left to Triton's own issue)"


def check(text: ConfigText, folder: ModelFolder, backend: Backend) -> Iterator[Finding]:
    """What the Python backend cannot serve, and what other backends cannot that it can."""
    if backend.name != BACKEND:
        if text.config.model_transaction_policy.decoupled:
            found = f"decoupled with the backend {backend.name}"
            mend = "Remove it: a request to this backend has one response."
            yield text.fault("model_transaction_policy.decoupled", found, "the backend python", mend)
        return
    chosen = _interpreter(text, folder)
    if isinstance(chosen, Finding):
        yield chosen
    yield from _without_effect(text, folder)
    for version, names in folder.versions.items():
        entry = text.config.default_model_filename or backend.filename
        for name in _defined(folder.path / version / entry) if entry in names else ():
            found = f"{version}/{entry} defines {name}: {_UNCALLED[name]} {_LATER}"
            yield text.notice("", found)


def handler(
    text: ConfigText, folder: ModelFolder, spec: ModelSpec
) -> tuple[Handler | None, Mapping[str, Origin]]:
    """How the worker of such a model is started, and where that was found; nothing for other backends.

    The worker itself puts the folders of version and model at the end of `sys.path`, where the original has them.
    """
    if text.config.backend != BACKEND:
        return None, {}
    chosen = _interpreter(text, folder)
    assert isinstance(chosen, str), "a model with an unusable environment was not refused"
    key = _key_of(text, ENVIRONMENT)
    interpreter = (
        Origin(text.file, key, text.line(key)) if chosen else Origin("the server's own interpreter", "")
    )
    settings = {"model_config": config_json(spec).decode()}
    whole = Origin("the whole configuration, for the model's initialize", "")
    return Handler(python=chosen, settings=settings), {
        "handler.python": interpreter,
        "handler.settings": whole,
    }


def _interpreter(text: ConfigText, folder: ModelFolder) -> str | Finding:
    """The interpreter of the environment that the configuration names: empty if it names none, or what is wrong."""
    if ENVIRONMENT not in text.config.parameters:
        return ""
    named = text.config.parameters[ENVIRONMENT].string_value
    path = Path(named.replace(MODEL_FOLDER, str(folder.path.absolute())))
    expected = "the absolute path of an environment's folder, with bin/python in it"
    key = _key_of(text, ENVIRONMENT)
    if not named or not path.is_absolute():
        mend = f"Begin it with / or with {MODEL_FOLDER}/."
        return text.fault(key, f"{named or 'an empty path'}, which is no absolute path", expected, mend)
    if not path.exists():
        return text.fault(key, f"{path}, which is not there", expected, "Correct the path, or remove it.")
    if not path.is_dir():
        mend = "Unpack the archive (conda-unpack), or name the folder around the script's bin."
        found = f"{path}, which is a file: packed environments and scripts are not served yet {_LATER}"
        return text.fault(key, found, expected, mend)
    for python in (path / "bin" / "python", path / "bin" / "python3"):
        if python.is_file() and os.access(python, os.X_OK):
            return str(python)
    found = f"{path}, which has no bin/python that may be run"
    return text.fault(key, found, expected, "Name the folder of an environment.")


def _without_effect(text: ConfigText, folder: ModelFolder) -> Iterator[Finding]:
    name = "FORCE_CPU_ONLY_INPUT_TENSORS"
    if name in text.config.parameters and text.config.parameters[name].string_value.lower() == "no":
        yield text.notice(_key_of(text, name), "inputs come in the CPU's memory all the same")
    if "triton_python_backend_stub" in folder.names:
        yield text.notice(
            "",
            f"{folder.path / 'triton_python_backend_stub'} is not used: a model runs under a Python interpreter",
            mend=f"Name its environment's folder in the parameter {ENVIRONMENT}.",
        )


def _key_of(text: ConfigText, parameter: str) -> str:
    for block in text.blocks("ModelConfig.parameters"):
        if text.entries[f"{block}.key"].value == parameter:
            return f"{block}.value.string_value"
    return "parameters"


def _defined(path: Path) -> list[str]:
    """Which of the methods that nobody calls yet the model's class has. What cannot be parsed has none: its
    worker will say what is wrong, under its own version of Python.
    """
    with path.open("rb") as file:
        source = file.read(MOST_TEXT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = {
        method.name
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == _CLASS
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return sorted(names & _UNCALLED.keys())
