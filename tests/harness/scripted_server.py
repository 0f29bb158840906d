"""A server with an engine that says a script: the tests' stand-in for a language model, on a copy of the source."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.harness.server_process import COMMAND, ServerProcess, environment, started

ROOT = Path(__file__).parents[2]
_PARTS = Path(__file__).parent / "scripted"
TEXTS = {
    "*": "The capital of France is Paris.",
    "sampling": "{sampling}",
    "messages": "{messages}",
    "many": "one two three four five six",
    "unicode": "日本 語 👩‍👩‍👧 مرحبا é",
    "refused": "!refuse",
    "late": "one two !fail",
    "early": "!fail",
    "raises": "one !raise",
}


def script(folder: Path, **fields: object) -> Path:
    """Write a model that says `TEXTS`, with further fields of its script."""
    folder.mkdir(parents=True)
    (folder / "script.json").write_text(json.dumps({"texts": TEXTS, **fields}))
    return folder


def copied_source(into: Path) -> Path:
    """The source with the engine and its format in the tables of the catalogue."""
    source = into / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    package = source / "trivium"
    for part, room in (("engine", "engines"), ("format", "formats")):
        shutil.copy(_PARTS / f"{part}.py", package / room / "scripted.py")
    catalogue = package / "model_catalogue.py"
    text = catalogue.read_text()
    rows = {
        "_ENGINES: dict[str, Callable[[], Engine]] = {\n": (
            '    "scripted": lazily("trivium.engines.scripted:ENGINE"),\n'
        ),
        "_FORMATS: tuple[Callable[[], Format], ...] = (\n": '    lazily("trivium.formats.scripted:FORMAT"),\n',
    }
    for table, row in rows.items():
        assert table in text, table
        text = text.replace(table, table + row, 1)
    catalogue.write_text(text)
    return source


@contextmanager
def scripted(
    source: Path, log: Path, *words: str | Path, variables: Mapping[str, str] | None = None
) -> Iterator[ServerProcess]:
    """A server of that source, with these words behind `serve`."""
    given = {**environment(), "PYTHONPATH": str(source), **(variables or {})}
    ports = ("--http-port", "0", "--grpc-port", "0")
    with started(log, *COMMAND, "serve", *ports, *words, variables=given) as process:
        server = ServerProcess(process, log)
        yield server
        server.terminate()
        assert server.wait() == 0, server.said()
