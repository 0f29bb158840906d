"""Holds the package to the plan of the house, and fails: unique class names, no circles of files, pure policies.

- A public class has a name that no other public class of `trivium` has.
- No files import one another in a circle; imports under TYPE_CHECKING and within functions count.
- A module that decides (`policy`, `*_policy`) calls nothing of time, os, asyncio, threading, random or socket.
- Nothing reads or writes pickles, whose bytes are code of whoever wrote them: no socket carries any.
- No text, comment or docstring speaks of plans.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
IMPURE = frozenset(
    {"time", "os", "asyncio", "threading", "random", "socket", "subprocess", "datetime", "uvloop"}
)
PICKLES = frozenset({"pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"})
PICKLING = frozenset({"trivium_child/loans.py", "trivium_child/shims/djl/djl_python/session_manager.py"})
"""Files that may: one borrows a view of memory, and the other keeps files in a folder of its own user, as DJL does."""

_PLANS = re.compile(
    r"later issue|issue of its own|an issue of|comes with the issue|left for later|not served yet|not kept yet|"
    r"not supported yet|for now\b|in a later version|\bTODO\b|FIXME",
)


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    found = {}
    for path in sorted((source / "trivium").rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imports(name: str, tree: ast.AST, known: Mapping[str, object]) -> set[str]:
    """Return the modules of the package that a module imports, wherever the import stands."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inside & known.keys()) or {node.module}
    return {other for other in found if other in known and other != name}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(component := sorted(stack[at:])) > 1:
                found.append(component)
            del stack[at:]

    for node in graph:
        if node not in index:
            visit(node)
    return found


def imported(tree: ast.AST, unwanted: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of every import of an unwanted module, or of a part of it."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for name in names:
            if name.partition(".")[0] in unwanted:
                yield node.lineno, name


def is_policy(name: str) -> bool:
    """Is the module one that decides and does not act?"""
    return name.rpartition(".")[2].endswith("policy")


def faults(source: Path = SOURCE) -> list[str]:
    """Return one line for everything that contradicts the plan."""
    found, places, graph = [], defaultdict(list), {}
    known = modules(source)
    for name, path in known.items():
        text = path.read_text()
        tree = ast.parse(text)
        graph[name] = imports(name, tree, known)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{name}:{node.lineno}")
        if is_policy(name):
            found += [f"{name}:{line}: a policy imports {module}" for line, module in imported(tree, IMPURE)]
    found += [f"the class {name} is defined in {', '.join(at)}" for name, at in places.items() if len(at) > 1]
    found += [f"a circle of files: {', '.join(circle)}" for circle in circles(graph)]
    for path in sorted(source.rglob("*.py")):
        text, place = path.read_text(), str(path.relative_to(source))
        for i, line in enumerate(text.splitlines(), 1):
            if match := _PLANS.search(line):
                found.append(f"{place}:{i}: speaks of plans: {match.group()!r}")
        if place not in PICKLING:
            found += [f"{place}:{line}: imports {name}" for line, name in imported(ast.parse(text), PICKLES)]
    return found


if __name__ == "__main__":
    if contradictions := faults():
        sys.exit("\n".join(contradictions))
    print("house: unique names, no circles, pure policies, no pickles, no plans")
