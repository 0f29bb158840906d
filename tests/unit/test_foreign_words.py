"""The sweep of foreign words finds them in names and texts, and lets comments and docstrings cite whom they like."""

import ast

import pytest
from tests.gates.foreign_words import found_in


@pytest.mark.parametrize(
    "source",
    [
        "in_tritons_words = 1",
        "class DjlError: pass",
        "def f(kserve): pass",
        "from x import torchserve",
        "x.ensemble",
        "f(decoupled=1)",
        'x = f"no {y} of an ensemble"',
        'x = b"max_batch_size"',
    ],
)
def test_a_foreign_word_is_found(source: str) -> None:
    assert len(found_in(ast.parse(source))) == 1


def test_comments_docstrings_and_longer_words_are_not() -> None:
    assert (
        found_in(
            ast.parse(
                '"""As Triton does."""\n# DJL\ndef f() -> None:\n    "ensemble"\nmarble = subless = 1\n'
            )
        )
        == []
    )
