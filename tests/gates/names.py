"""Finds names of the package in prose that no longer exist, and class names that a rename has left in texts; fails.

- A dotted name in backticks whose first part is ours (`Ticket.hold`, `trivium.app`) exists, in docstrings, comments and
  the pages on how the server is built. (Elsewhere the manual cites keys and spans, which look alike.)
- No class name of two humps or more stands in a text or byte string of the core, the vocabulary, the front ends, the
  protocols, and of the worker's wire and runtime: annotations, and the names of a protocol's own messages, are none.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.gates import source as files
from tests.gates.source import ROOT, SOURCE

ROOMS = ("core", "types", "frontends", "wires", "wire", "runtime")
PACKAGES = ("trivium", "trivium_worker")
MESSAGES = frozenset(
    {"ErrorInfo", "InferenceRequest", "InferenceResponse", "LogSettings", "ModelConfig", "SetDefault"}
)
"""Messages of the protocols' own schemas, which have the names of classes."""

SCHEMAS = frozenset({"schema", "service_schema"})
"""Modules that are a protocol's own schema."""

_QUOTED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)`")
_HUMPS = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\Z")


class Names:
    """What the package defines: its modules, its classes, and what each of both has."""

    def __init__(self, source: Path = SOURCE) -> None:
        self.modules: set[str] = set()
        self.classes: dict[str, set[str]] = defaultdict(set)
        self._bases: dict[str, set[str]] = defaultdict(set)
        self.trees: dict[Path, ast.Module] = {}
        for path in sorted(source.rglob("*.py")):
            tree = self.trees[path] = files.tree(path)
            name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
            self.modules.add(name)
            self.modules |= {f"{name}.{each}" for each in _defined(tree)}
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    self.classes[node.name] |= set(_members(node))
                    self._bases[node.name] |= {base.id for base in node.bases if isinstance(base, ast.Name)}

    def has(self, dotted: str) -> bool:
        """Does a dotted name exist, or is its first part none of ours?"""
        first, *rest = dotted.split(".")
        if first in PACKAGES:
            return dotted in self.modules or any(
                self._of_class(".".join(rest[i:])) for i in range(len(rest) - 1)
            )
        return first not in self.classes or self._of_class(dotted)

    def _of_class(self, dotted: str) -> bool:
        first, *rest = dotted.split(".")
        return first in self.classes and (not rest or rest[0] in self._members(first))

    def _members(self, name: str) -> set[str]:
        found = set(self.classes.get(name, ()))
        for base in self._bases.get(name, ()):
            found |= self._members(base) if base != name else set()
        return found


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.alias(asname=None, name=name):
                yield name
            case ast.alias(asname=str(name)):
                yield name


def _members(tree: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.Name(id=name, ctx=ast.Store())
            ):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.Constant(value=str(name)):  # __slots__
                yield name


def prose() -> Iterator[tuple[Path, int, str]]:
    """Yield path, number and text of every line of the package and of the pages on how it is built."""
    pages = [
        *(ROOT / "docs" / name for name in ("architecture.md", "extending.md")),
        *(ROOT / "docs/adr").glob("*.md"),
    ]
    for path in sorted([*SOURCE.rglob("*.py"), *pages]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield path, number, line


def missing(names: Names) -> list[str]:
    """Return one line for every dotted name in backticks that does not exist."""
    return [
        f"{path.relative_to(ROOT)}:{number}: `{dotted}` does not exist"
        for path, number, line in prose()
        for dotted in _QUOTED.findall(line)
        if not names.has(dotted)
    ]


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string that is neither docstring nor annotation."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))
        for field in ("annotation", "returns"):
            annotation = getattr(node, field, None)
            if annotation is not None:
                left_out |= {id(inner) for inner in ast.walk(annotation)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | bytes)
            and id(node) not in left_out
        ):
            yield node.lineno, node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def misplaced(names: Names, rooms: Mapping[str, frozenset[str]]) -> list[str]:
    """Return one line for every class name in a text of these rooms, each with the names that it may have there."""
    humps = sorted((name for name in names.classes if _HUMPS.match(name)), key=len, reverse=True)
    pattern = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(humps)})(?![A-Za-z])")
    found = []
    for path, tree in names.trees.items():
        _, room, *rest = path.relative_to(SOURCE).parts
        room = rest[1] if room == "servers" and len(rest) > 2 else room
        if room in rooms and path.stem not in SCHEMAS:
            found += [
                f"{path.relative_to(ROOT)}:{line}: the class name {match.group()} in a text"
                for line, text in texts(tree)
                for match in pattern.finditer(text)
                if match.group() not in rooms[room]
            ]
    return found


def faults() -> list[str]:
    """Return one line for each of both kinds."""
    known = Names()
    allowed = {room: MESSAGES if room in ("wires", "wire") else frozenset[str]() for room in ROOMS}
    return missing(known) + misplaced(known, allowed)
