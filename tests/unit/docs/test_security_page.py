"""The tests that SECURITY.md names are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text())


def test_it_names_some() -> None:
    assert len(NAMED) > 10


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_it_names_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
