"""The check of rules that have one place finds each way to follow one elsewhere, and nothing else."""

import ast

import pytest
from tests.gates.one_place import RULES, faults


def found(text: str) -> set[str]:
    tree = ast.parse(text)
    return {rule.text.split()[-1] for rule in RULES if list(rule.shows(tree))}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import difflib", "`near`"),
        ("from difflib import get_close_matches", "`near`"),
        ("head.headers.get(b'authorization')", "`credential`"),
        ("metadata['authorization']", "`credential`"),
        ("try:\n    f()\nexcept OSError as error:\n    text = f'no: {error}'", "it"),
        ("try:\n    f()\nexcept (ValueError, FileNotFoundError) as e:\n    text = f'no: {e!r}'", "it"),
        ("try:\n    f()\nexcept Exception as error:\n    raise G(str(error)) from error", "it"),
        ("text = f'{type(failure).__name__}: {failure}'", "it"),
        ("name.isprintable()", "`unfit_name`"),
        ("from urllib.parse import unquote", "`path_segments`"),
        ("run((python, '-m', 'pip'))", "`python_commands`"),
        ("run([python, '-c', text])", "`python_commands`"),
        ("spec.loader.exec_module(module)", "`FolderCode`"),
        ("AutoModel.from_pretrained(folder, trust_remote_code=True)", "`FolderCode`"),
        ("AutoModel.from_pretrained(folder, trust_remote_code=chosen.trusts)", "`FolderCode`"),
    ],
)
def test_each_way_is_found(text: str, rule: str) -> None:
    assert found(text) == {rule}


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    f()\nexcept OSError as error:\n    text = said_by(error)",
        "try:\n    f()\nexcept ValueError as error:\n    text = f'{error}'",
        "try:\n    f()\nexcept OSError as error:\n    text = f'{error.strerror}'",
        "text = f'{type(value).__name__}: {other}'",
        "add_argument('-m', '--models')",
        "words = ['-m']",
        "Options(trust_remote_code=_TRUTH[word])",
    ],
)
def test_nothing_else_is_found(text: str) -> None:
    assert found(text) == set()


def test_the_source_has_no_second_copy() -> None:
    assert faults() == []
