"""Sweeps the syntax trees of both packages for what opens a pickle, in any dress: one module alone may.

A pickle runs what its author wrote as it is opened. So do files of joblib, cloudpickle and dill, arrays of objects in
numpy's files, PyTorch's files unless it reads weights alone, and what MLflow loads.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.gates import source as files
from tests.gates.source import SOURCE

HOME = "trivium_worker/pickles.py"
_MODULES = frozenset(
    {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}
)
_HARMLESS = frozenset({"PickleBuffer", "PickleError", "PicklingError", "dump", "dumps"})
_OPENING = frozenset({"Unpickler", "read_pickle", "load_pyfunc", "unpickle", "pyfunc.load_model"})
_LOADING = frozenset({"load", "loads"})


def opening(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line of each call or import that opens a pickle, and what it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _MODULES:
            yield from (
                (node.lineno, f"{node.module}.{one.name}") for one in node.names if one.name not in _HARMLESS
            )
        if isinstance(node, ast.Call) and (found := _called(node)):
            yield node.lineno, found


def _called(call: ast.Call) -> str:
    name = ast.unparse(call.func)
    owner, _, last = name.rpartition(".")
    given = {one.arg: one.value for one in call.keywords if one.arg}
    names = {last, f"{owner.rpartition('.')[2]}.{last}"}
    if names & _OPENING or (owner in _MODULES and last in (*_LOADING, "open")):
        return name
    if owner == "torch" and last == "load" and not _says(given.get("weights_only"), True):
        return f"{name} without weights_only=True"
    if "allow_pickle" in given and not _says(given["allow_pickle"], False):
        return f"{name} with allow_pickle"
    return ""


def _says(value: ast.expr | None, wanted: bool) -> bool:
    return isinstance(value, ast.Constant) and value.value is wanted


def faults(source: Path = SOURCE) -> list[str]:
    """Return a line for everything outside the one module that opens a pickle."""
    return [
        f"{place}:{line}: {found} opens a pickle; let {HOME} do it, where the operator has named the trust"
        for path in sorted(source.rglob("*.py"))
        if (place := str(path.relative_to(source))) != HOME
        for line, found in opening(files.tree(path))
    ]
