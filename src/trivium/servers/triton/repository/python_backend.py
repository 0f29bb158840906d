"""The Python backend's own part: settings for its worker, and methods of the model that are called, or are not.

Reads the text of model.py and never runs it. Sheet "triton", sections 8.1 and 8.8. Must not know the worker.
"""

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from trivium.files import open_file
from trivium.servers.triton.repository.environments import ENVIRONMENT, interpreter, key_of
from trivium.servers.triton.repository.folder import TritonModelFolder
from trivium.servers.triton.words.backends import ENSEMBLE, Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.description import config_json
from trivium.types.findings import Change, Finding
from trivium.types.spec import Defaults, Handler, ModelSpec, Origin

BACKEND = "python"
MOST_TEXT = 2**22
"""Bytes of a model.py that is looked into."""

_CLASS = "TritonPythonModel"
_COMPLETES = "auto_complete_config"


def check(
    text: ConfigText, folder: TritonModelFolder, backend: Backend, defaults: Defaults
) -> Iterator[Finding]:
    """Check for what the Python backend cannot serve, and for what only it can."""
    if backend.name != BACKEND:
        may = backend.decouples or backend is ENSEMBLE
        if text.config.model_transaction_policy.decoupled and not may:
            found = f"decoupled with the backend {backend.name}"
            hint = "Remove it: a request to this backend has one response."
            key = "model_transaction_policy.decoupled"
            yield text.fault(key, found, "the backend python", hint, Change())
        return
    chosen = interpreter(text, folder, defaults.scratch)
    if isinstance(chosen, Finding):
        yield chosen
    yield from _without_effect(text, folder)
    entry = text.config.default_model_filename or backend.filename
    for version, names in () if defaults.completes else folder.versions.items():
        if entry in names and _COMPLETES in _defined(folder.path / version / entry):
            found = (
                f"{version}/{entry} defines {_COMPLETES}: it is not called, since nothing is completed here"
            )
            yield text.notice("", found)


def handler(
    text: ConfigText, folder: TritonModelFolder, spec: ModelSpec, defaults: Defaults
) -> tuple[Handler | None, Mapping[str, Origin]]:
    """Return how the worker of such a model is started, and where that was found; nothing for other backends.

    The worker itself puts the folders of version and model at the end of `sys.path`, where the original has them.
    """
    if text.config.backend != BACKEND:
        return None, {}
    chosen = interpreter(text, folder, defaults.scratch)
    assert isinstance(chosen, str), "a model with an unusable environment was not refused"
    key = key_of(text, ENVIRONMENT)
    found = Origin(text.file, key, text.line(key)) if chosen else Origin("the server's own interpreter", "")
    settings = {"model_config": config_json(spec).decode()}
    completes = _completes(folder, spec.entry, defaults)
    whole = Origin("the whole configuration, for the model's initialize", "")
    return Handler(python=chosen, settings=settings, completes=completes), {
        "handler.python": found,
        "handler.settings": whole,
    }


def completes_itself(
    text: ConfigText, folder: TritonModelFolder, backend: Backend, defaults: Defaults
) -> bool:
    """Will the model be asked for what its configuration does not say?"""
    entry = text.config.default_model_filename or backend.filename
    return backend.name == BACKEND and _completes(folder, entry, defaults)


def _completes(folder: TritonModelFolder, entry: str, defaults: Defaults) -> bool:
    files = [folder.path / version / entry for version, names in folder.versions.items() if entry in names]
    return defaults.completes and any(map(may_complete, files))


def _without_effect(text: ConfigText, folder: TritonModelFolder) -> Iterator[Finding]:
    name = "FORCE_CPU_ONLY_INPUT_TENSORS"
    if name in text.config.parameters and text.config.parameters[name].string_value.lower() == "no":
        yield text.notice(key_of(text, name), "inputs come in the CPU's memory all the same")
    if "triton_python_backend_stub" in folder.names:
        yield text.notice(
            "",
            f"{folder.path / 'triton_python_backend_stub'} is not used: a model runs under a Python interpreter",
            hint=f"Name its environment's folder in the parameter {ENVIRONMENT}.",
        )


def may_complete(path: Path) -> bool:
    """May the class of this model.py have `auto_complete_config`, its own or from elsewhere? Whoever says yes for
    nothing pays a process at the load.
    """
    source, module = _parsed(path)
    if _COMPLETES.encode() in source:
        return True
    classes = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == _CLASS]
    return bool(source) and bool(module.body) and not any(map(_is_plain, classes))


def _is_plain(node: ast.ClassDef) -> bool:
    """Does it have nothing but what is written in it?"""
    bases = [base for base in node.bases if not (isinstance(base, ast.Name) and base.id == "object")]
    return not (bases or node.keywords or node.decorator_list)


def _defined(path: Path) -> frozenset[str]:
    """The methods of the model's class. What cannot be parsed has none: its worker will say what is wrong, under its
    own version of Python.
    """
    _, module = _parsed(path)
    return frozenset(
        method.name
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == _CLASS
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _parsed(path: Path) -> tuple[bytes, ast.Module]:
    with open_file(path) as file:
        source = file.read(MOST_TEXT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return source, ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source, ast.Module([], [])
