"""Prints every place where a test takes a private name of the package's objects.

A private name begins with one underscore, and the package defines it. It is taken by an attribute (`server._registry`),
by an import (`from trivium.app import _limits`) or by a patch (`monkeypatch.setattr(module, "_name", ...)`). What a
class of the tests has of its own is taken through `self` or `cls`, and does not count.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.gates import source as files
from tests.gates.source import SOURCE, TESTS

PACKAGES = ("trivium", "trivium_worker")
_PRIVATE = re.compile(r"_[A-Za-z0-9]\w*\Z")
_PATCHES = ("setattr", "delattr", "getattr", "hasattr", "patch", "object")


def private_names() -> set[str]:
    """Names of modules, functions, classes, variables and attributes that the package keeps to itself."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        found.add(path.stem)
        for node in ast.walk(files.tree(path)):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
    return {name for name in found if _PRIVATE.match(name)}


def reaches(path: Path, known: set[str]) -> list[tuple[int, str]]:
    """Line and name of each in one file, in order."""
    nodes = ast.walk(files.tree(path))
    return sorted({(line, name) for node in nodes for line, name in _of_node(node) if name in known})


def _of_node(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
            return
        case ast.Attribute(attr=name) if _PRIVATE.match(name):
            yield node.end_lineno or node.lineno, name
        case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] in PACKAGES:
            found = (part for each in names for part in (*module.split("."), each.name))
            yield from ((node.lineno, name) for name in found if _PRIVATE.match(name))
        case ast.Import(names=names):
            parts = (each.name.split(".") for each in names if each.name.split(".")[0] in PACKAGES)
            yield from ((node.lineno, name) for each in parts for name in each if _PRIVATE.match(name))
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=[*args]) if (
            called in _PATCHES
        ):
            for arg in args[:2]:
                match arg:
                    case ast.Constant(value=str(text)) if _PRIVATE.match(text.rpartition(".")[2]):
                        yield arg.lineno, text.rpartition(".")[2]


def faults() -> list[str]:
    """Return one line for each; a test looks at what is public, or asks an object's `debug_state()`."""
    known = private_names()
    return [
        f"{path.relative_to(TESTS.parent)}:{line} {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, name in reaches(path, known)
    ]
