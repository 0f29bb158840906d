"""Prints docstrings whose first line a stranger would not understand alone.

A first line is a finding where it does not begin with a capital (or with code), where it begins with a word that leaves
subject and verb out ("Of", "What", "The same", ...), and where it has a word of the list below. Docstrings of modules,
classes, functions and methods of both packages count.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.gates import source as files
from tests.gates.source import SOURCE

_WORDS = re.compile(r"\b(?:told|of which|beside|lacks?|mend|its like|as well may)\b", re.IGNORECASE)
_HEADLESS = re.compile(
    r"(?:Of|What|Whether|How|Which|Whose|Who|Where|Whatever|Whoever|By|As|In|At|From|To|For|With|Without|On|Out of|"
    r"Behind|The same)\b(?!.*\?$)"
)
_BEGINNING = re.compile(
    r"[A-Z0-9`\"'(\[.:\-*/]|[a-z][\w.-]*(?:[:(]|\.[a-z]|'s )|numpy\b|serving\b|[a-z]+_[a-z]"
)


def fault_of(line: str) -> str:
    """Return the rule that a first line breaks, empty where it breaks none."""
    if not _BEGINNING.match(line):
        return "begins in lower case"
    if word := _WORDS.search(line):
        return f"has the word {word.group()!r}"
    if start := _HEADLESS.match(line):
        return f"begins with {start.group()!r}, without subject or verb"
    return ""


def first_lines(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line number and text of the first line of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text.partition("\n")[0]


def faults(source: Path = SOURCE) -> list[str]:
    """Return one line for each docstring that breaks a rule."""
    found = []
    for path in sorted(source.rglob("*.py")):
        for number, line in first_lines(files.tree(path)):
            if fault := fault_of(line):
                found.append(f"{path.relative_to(source)}:{number}: {fault}: {line}")
    return found
