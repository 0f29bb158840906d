"""The package's files as the gates look at them: each is read and parsed once."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
TESTS = ROOT / "tests"


@cache
def text(path: Path) -> str:
    """Return what a file holds."""
    return path.read_text()


@cache
def tree(path: Path) -> ast.Module:
    """Return its syntax tree, which nobody changes."""
    return ast.parse(text(path))
