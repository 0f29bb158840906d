"""Finds words of foreign systems in identifiers and texts of rooms that may not know them, and fails.

Comments and docstrings may cite whom a rule comes from; code may not know them. A word counts where it stands by itself
or as a part of a name: `in_tritons_words`, `DjlError`, "ensemble".
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.gates import source as files
from tests.gates.source import SOURCE

PACKAGE = SOURCE / "trivium"
ROOMS = ("core", "types", "frontends")
NAMELESS = ("codecs", "config", "settings", "app.py", "profiles.py", "server_record.py")
"""What knows no server by name, but may speak of files that several have."""

NAMES_ITS_FORMAT = PACKAGE / "codecs" / "ndlist.py"
"""The text of its refusal says whose form the body is, and how it is written."""

SERVERS = ("triton", "torchserve", "djl")
WORDS = (
    *(*SERVERS, "kserve", "lmi", "ensemble", "bls", "seldon", "netty"),
    *(
        "pbtxt",
        "pb_utils",
        "decoupled",
        "max_batch_size",
        "max_queue_delay",
        "dynamic_batching",
    ),
    *("serving_properties", "entry_point", "rolling_batch", "job_queue", "wlm", "ndlist"),
    *("mar_file", "workflow", "min_worker", "max_worker", "model_store", "ts_config"),
)
_PATTERN = re.compile("|".join(rf"(?<![a-z]){word}s?(?![a-z])" for word in WORDS))
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every identifier and string literal that is no docstring."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | bytes)
            and id(node) not in docstrings
        ):
            yield line, node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        for name in (
            getattr(node, field, None) for field in ("id", "attr", "arg", "name", "module", "asname")
        ):
            if isinstance(name, str):
                yield line, name


def found_in(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the line and word of every foreign word in a module's code."""
    plain = (
        (line, _HUMPS.sub("_", text).lower().replace("-", "_").replace(" ", "_"))
        for line, text in texts(tree)
    )
    return [(line, match.group()) for line, text in plain for match in _PATTERN.finditer(text)]


def modules(room: str) -> Iterator[Path]:
    """Yield the modules of a room, or the one that it is."""
    place = PACKAGE / room
    yield from [place] if place.is_file() else place.rglob("*.py")


def faults() -> list[str]:
    """Return one line for every foreign word: say it neutrally, or in a server's folder."""
    wanted = [(path, WORDS) for room in ROOMS for path in modules(room)]
    wanted += [(path, SERVERS) for room in NAMELESS for path in modules(room) if path != NAMES_ITS_FORMAT]
    return [
        f"{path.relative_to(SOURCE.parent)}:{line}: the foreign word {word!r}"
        for path, words in sorted(wanted)
        for line, word in found_in(files.tree(path))
        if word.removesuffix("s") in words
    ]
