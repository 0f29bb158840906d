"""Finds files of the package with over 400 lines of code and functions with over 60 lines, and fails.

Docstrings, comments, blank lines and imports are no code. Files and functions are split by their reasons to change,
never to meet a number: one that has to be longer stands in `EXCEPTIONS`, a function as `file:name`, with the reason.
"""

import ast
from collections.abc import Mapping

from tests.gates import source
from tests.gates.source import SOURCE

CODE_LINES, FUNCTION_LINES = 400, 60
EXCEPTIONS: Mapping[str, str] = {}


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines of a module that hold code."""
    prose: set[int] = set()
    for node in ast.walk(tree):
        is_docstring = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if is_docstring or isinstance(node, ast.Import | ast.ImportFrom):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for i, line in lines if i not in prose and line.strip() and not line.strip().startswith("#"))


def long_functions(tree: ast.Module) -> list[tuple[int, str, int]]:
    """Return line, name and length of every function that is too long."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > FUNCTION_LINES:
                found.append((node.lineno, node.name, size))
    return found


def faults() -> list[str]:
    """Return one line per file or function that is too long."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        text, tree = source.text(path), source.tree(path)
        name = path.relative_to(SOURCE.parent).as_posix()
        if (length := code_lines(text, tree)) > CODE_LINES and name not in EXCEPTIONS:
            found.append(f"{name}: {length} lines of code, at most {CODE_LINES}")
        found += [
            f"{name}:{line}: {function} has {size} lines, at most {FUNCTION_LINES}"
            for line, function, size in long_functions(tree)
            if f"{name}:{function}" not in EXCEPTIONS
        ]
    return found
