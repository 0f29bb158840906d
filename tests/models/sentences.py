"""Sentences of docstrings from four packages of Python's standard library, to be told apart by their package.

`data/sentences.json` holds them, once collected from Python 3.11 (python -m tests.models.sentences), so that no other
Python changes them. Without chance, every fifth sentence of a package is held out.
"""

import ast
import json
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("asyncio", "email", "logging", "tkinter")
FILE = Path(__file__).parent / "data" / "sentences.json"
_EVERY = 5
_MOST = 600
_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
_PLAIN = re.compile(r"[A-Z][ -~]{29,119}\.")

Labelled = list[tuple[str, int]]
"""Sentences, each with the place of its package in `PACKAGES`."""


def training_part() -> Labelled:
    """Return all that training may know."""
    return [(text, label) for i, text, label in _numbered() if i % _EVERY != _EVERY - 1]


def held_out_part() -> Labelled:
    """Return the rest, for scoring."""
    return [(text, label) for i, text, label in _numbered() if i % _EVERY == _EVERY - 1]


def _numbered() -> Iterator[tuple[int, str, int]]:
    sentences = json.loads(FILE.read_text())
    for label, package in enumerate(PACKAGES):
        for i, text in enumerate(sentences[package]):
            yield i, text, label


def collect(package: str) -> list[str]:
    """Return sentences of a package's docstrings, evenly chosen from all of them."""
    found = {}
    for path in sorted((Path(sysconfig.get_paths()["stdlib"]) / package).rglob("*.py")):
        if "test" in str(path.relative_to(path.parents[1])):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                texts = (" ".join(text.split()) for text in _END.split(ast.get_docstring(node) or ""))
                found |= {text: None for text in texts if _PLAIN.fullmatch(text)}
    step = max(1.0, len(found) / _MOST)
    texts = list(found)
    return [texts[int(i * step)] for i in range(min(_MOST, len(texts)))]


if __name__ == "__main__":
    FILE.write_text(json.dumps({package: collect(package) for package in PACKAGES}, indent=0) + "\n")
    print({package: len(texts) for package, texts in json.loads(FILE.read_text()).items()})
