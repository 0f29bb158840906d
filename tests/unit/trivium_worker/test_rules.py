"""What every file of `trivium_worker` keeps to: Python 3.10 syntax, and the standard library alone.

The shims may import one another, and the Triton dialect's numpy, which its models cannot do without.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trivium_worker

ROOT = Path(trivium_worker.__file__).parent
SHIMS = ROOT / "shims"
FILES = sorted(ROOT.rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path), feature_version=(3, 10))


def at_import(nodes: list[ast.stmt]) -> Iterator[str]:
    """The modules that are imported when a file is: not in functions, nor for the type checker alone."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_for_types(node):
            inner = [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.ExceptHandler)
            ]
            yield from at_import([child for child in inner if isinstance(child, ast.stmt)])
            for handler in inner:
                if isinstance(handler, ast.ExceptHandler):
                    yield from at_import(handler.body)


def is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def allowed(path: Path) -> frozenset[str]:
    """The top-level names that a file may import."""
    names = {"trivium_worker", *sys.stdlib_module_names}
    if SHIMS in path.parents:
        dialect = SHIMS / path.relative_to(SHIMS).parts[0]
        names |= {entry.stem for entry in dialect.iterdir()}
        names |= {"numpy"} if dialect.name == "triton" else set()
    return frozenset(names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file(path: Path) -> None:
    imported = {name.partition(".")[0] for name in at_import(parsed(path).body)}
    assert imported <= allowed(path), (
        f"{path}: imports {sorted(imported - allowed(path))} when it is imported"
    )


def test_there_are_files() -> None:
    assert len(FILES) > 20
