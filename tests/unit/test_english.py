"""The check of docstrings finds a first line that says nothing by itself, and lets a plain one through."""

from pathlib import Path

import pytest
from tests.gates.english import fault_of, faults


@pytest.mark.parametrize(
    "line",
    [
        "Return the first of these keys that is there.",
        "A value and where it comes from.",
        "Is the function defined with `async def`?",
        "What is a version?",
        "`A=1,B=2` as variables.",
        "numpy's type for a name.",
        "model-config.yaml: its values, and the line of each key.",
    ],
)
def test_plain_lines(line: str) -> None:
    assert fault_of(line) == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Of the key, else of the innermost block.", "'Of'"),
        ("What was said.", "'What'"),
        ("The same.", "'The same'"),
        ("Without the errors: ours are of a fixed kind.", "'Without'"),
        ("An error that a client is told.", "'told'"),
        ("Raises Failure where it lacks.", "'lacks'"),
        ("the first one", "lower case"),
    ],
)
def test_riddles(line: str, words: str) -> None:
    assert words in fault_of(line)


def test_every_docstring_is_read(tmp_path: Path) -> None:
    text = (
        '"""Of a module."""\nclass A:\n    """Of a class."""\n    def f(self):\n'
        '        """Of a method.\n\n        What follows is free.\n        """\n'
    )
    (tmp_path / "a.py").write_text(text)
    assert [line.split(":")[1] for line in faults(tmp_path)] == ["1", "3", "5"]
