"""Holds both packages to the plan of the house, and fails: unique class names, no circles of files, pure policies.

- A public class has a name that no other public class of its package has; each shim of the worker is one of its own.
- No files import one another in a circle; imports under TYPE_CHECKING and within functions count.
- A module that decides (`policy`, `*_policy`) calls nothing of time, os, asyncio, threading, random or socket.
- Nothing reads or writes pickles, whose bytes are code of whoever wrote them: no socket carries any.
- No text, comment or docstring speaks of plans.
- An error that is handed on or kept as a value carries no frames, and one that came as a value is raised anew: its
  frames keep what they had in hand, a request's bytes for example, and whoever holds it is in a cycle with them.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.gates import source as files
from tests.gates.source import SOURCE

IMPURE = frozenset(
    {"time", "os", "asyncio", "threading", "random", "socket", "subprocess", "datetime", "uvloop"}
)
PICKLES = frozenset({"pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"})
PICKLING = frozenset({"trivium_worker/pickles.py", "trivium_worker/wire/loans.py"})
"""Files that may: one opens what an operator trusts, for all others; one borrows a view of memory."""

LOOKED_UP = frozenset({"TritonPythonModel"})
"""Names of classes that a server looks up in user code: each example of such code has one."""

_PLANS = re.compile(
    r"later issue|issue of its own|an issue of|comes with the issue|left for later|not served yet|not kept yet|"
    r"not supported yet|for now\b|in a later version|\bTODO\b|FIXME",
)


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Return every module of both packages, and of the worker's shims, by the name under which it is imported."""
    found = {}
    shims = source / "trivium_worker" / "shims"
    for path in sorted(source.rglob("*.py")):
        parts = path.with_suffix("").relative_to(source).parts
        if path.is_relative_to(shims):
            parts = path.with_suffix("").relative_to(shims).parts[1:]
        found[".".join(parts).removesuffix(".__init__")] = path
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


_TEXTS = frozenset(
    {
        *("str", "repr", "type", "isinstance", "getattr", "print", "said_by", "named"),
        *("status_of", "words_of", "print_trace"),  # the worker's own
    }
)
_WITHOUT_FRAMES = frozenset({"frameless", "noted", "unwritable", "failure_of", "fault", "reported"})
_LOGS = frozenset(
    {
        *("debug", "info", "warning", "error", "exception", "call_exception_handler"),
        *("print_exception", "format_exception", "format_exception_only"),
    }
)


def framed(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and complaint for every error that leaves its except clause with its frames, or that is raised though
    it is a value. Logs and texts may have it as it is; what it is raised from may, too.
    """
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name:
            for use in (each for line in node.body for each in ast.walk(line)):
                if isinstance(use, ast.Name) and use.id == node.name and not _is_told(use, parents):
                    yield use.lineno, f"{use.id} is handed on with its frames; write frameless({use.id})"
        elif isinstance(node, ast.Raise) and _is_value(node, parents):
            assert node.exc is not None
            found = ast.unparse(node.exc)
            yield (
                node.lineno,
                f"raise {found} adds frames to a value that others hold; write raise anew({found})",
            )


def _is_told(use: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Is this use of a caught error one that keeps nothing of it but text, or that raises another from it?"""
    parent = parents[use]
    if isinstance(parent, ast.Attribute | ast.Compare):
        return not (isinstance(parent, ast.Attribute) and parent.attr == "with_traceback")
    if isinstance(parent, ast.keyword):
        return parent.arg == "exc_info"
    while not isinstance(parent, ast.stmt):
        if isinstance(parent, ast.FormattedValue):
            return True
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod):
            return True
        if isinstance(parent, ast.Call):
            function = parent.func
            if isinstance(function, ast.Name) and function.id in _TEXTS | _WITHOUT_FRAMES:
                return True
            if isinstance(function, ast.Attribute) and function.attr in _LOGS:
                return True
        parent = parents[parent]
    return isinstance(parent, ast.Raise)


def _is_value(node: ast.Raise, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Does it raise something that has a name, other than a class or what its own except clause caught?"""
    found = node.exc
    if isinstance(found, ast.Attribute | ast.Subscript):
        return True
    if not isinstance(found, ast.Name):
        return isinstance(found, ast.Call) and ast.unparse(found.func).endswith(".with_traceback")
    bare = found.id.lstrip("_")
    if bare[0].isupper() and not bare.isupper():
        return False
    above = parents[node]
    while above in parents:
        if isinstance(above, ast.ExceptHandler) and above.name == found.id:
            return False
        above = parents[above]
    return True


def is_policy(name: str) -> bool:
    """Is the module one that decides and does not act?"""
    return name.rpartition(".")[2].endswith("policy")


def faults(source: Path = SOURCE) -> list[str]:
    """Return one line for everything that contradicts the plan."""
    found, places, graph = [], defaultdict(list), {}
    known = modules(source)
    for name, path in known.items():
        tree = files.tree(path)
        graph[name] = imports(name, tree, known)
        found += [f"{name}:{line}: {complaint}" for line, complaint in framed(tree)]
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_" and node.name not in LOOKED_UP:
                places[name.partition(".")[0], node.name].append(f"{name}:{node.lineno}")
        if is_policy(name):
            found += [f"{name}:{line}: a policy imports {module}" for line, module in imported(tree, IMPURE)]
    found += [
        f"the class {name} is defined in {', '.join(at)}" for (_, name), at in places.items() if len(at) > 1
    ]
    found += [f"a circle of files: {', '.join(circle)}" for circle in circles(graph)]
    for path in sorted(source.rglob("*.py")):
        text, place = files.text(path), str(path.relative_to(source))
        for i, line in enumerate(text.splitlines(), 1):
            if match := _PLANS.search(line):
                found.append(f"{place}:{i}: speaks of plans: {match.group()!r}")
        if place not in PICKLING:
            found += [f"{place}:{line}: imports {name}" for line, name in imported(files.tree(path), PICKLES)]
    return found
