"""docs/extending.md as it is read: its code and rows go onto a copy of the source, and that server answers."""

import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.harness.raw_http import ask, get, post
from tests.harness.server_process import COMMAND, LoggedProcess, ServerProcess, environment, started

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
MOST_LINES = 100
_BLOCK = re.compile(r"^```python (file|row)=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """One section of the page: files to write, and lines to put into the composition root."""

    title: str
    files: dict[str, str]
    rows: list[tuple[str, str]]


def examples() -> Iterator[Example]:
    """The sections of the page that have code."""
    for section in PAGE.read_text().split("\n## ")[1:]:
        blocks = _BLOCK.findall(section)
        files = {path: text for kind, path, text in blocks if kind == "file"}
        yield Example(
            section.partition("\n")[0], files, [(path, text) for kind, path, text in blocks if kind == "row"]
        )


def put(text: str, block: str) -> str:
    """The text with the imports of the block, and its row: in place of a table, or behind its first line."""
    lines = [line for line in block.splitlines() if line.strip()]
    imports = [line for line in lines if line.startswith(("from ", "import "))]
    table, *rows = [line for line in lines if line not in imports]
    if rows:
        assert text.count(table) == 1
        text = text.replace(table, "\n".join([table, *rows]))
    else:
        name = table.partition(" = ")[0]
        text = text.replace(next(line for line in text.splitlines() if line.startswith(f"{name} = ")), table)
    first = next(line for line in text.splitlines() if line.startswith("from trivium"))
    return text.replace(first, "\n".join([*imports, first]), 1)


@pytest.mark.parametrize("example", [pytest.param(one, id=one.title) for one in examples()])
def test_each_is_one_folder_and_one_row(example: Example) -> None:
    assert len(example.files) == 1
    assert len(example.rows) == 1
    for text in example.files.values():
        assert text.count("\n") < MOST_LINES


def test_the_server_of_the_page_answers(tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    found = list(examples())
    assert len(found) == 6
    for example in found:
        for path, text in example.files.items():
            file = tmp_path / path
            file.parent.mkdir(exist_ok=True)
            (file.parent / "__init__.py").touch()
            file.write_text(text)
        for path, block in example.rows:
            (tmp_path / path).write_text(put((tmp_path / path).read_text(), block))
    folder = tmp_path / "models" / "scale"
    folder.mkdir(parents=True)
    np.save(folder / "weights.npy", np.array([[2, 0, 2], [0, 2, 2]], np.float32))
    (folder / "card.toml").write_text('weights = "weights.npy"\n')
    length = tmp_path / "models" / "length"
    length.mkdir()
    np.save(length / "weights.npy", np.eye(2, dtype=np.float32))
    (length / "card.toml").write_text('weights = "weights.npy"\ntranslator = "words"\n')
    variables = {**environment(), "PYTHONPATH": str(source)}
    words = ("serve", "--http-port", "0", "--grpc-port", "0", folder, length)
    with started(tmp_path / "log", *COMMAND, *words, variables=variables) as process:
        server = ServerProcess(process, tmp_path / "log")
        answer = server.ask(post("/plain/scale", b"1 2"))
        assert (answer.status, answer.body) == (200, b"2 4 6\n"), server.said()
        refused = server.ask(post("/plain/scale", b"one"))
        assert (refused.status, b"Send numbers" in refused.body) == (400, True)
        assert server.ask(post("/plain/scale", b"1 2 3")).status == 400
        assert server.ask(post("/plain/nobody", b"1")).status == 404
        text = b"Content-Type: text/plain\r\n"
        answer = server.ask(post("/predictions/length", b"two words", text))
        assert (answer.status, answer.body) == (200, b"[2.0, 9.0]"), server.said()
        assert server.ask(post("/predictions/length", b"\xff", text)).status == 400
        server.terminate()
        assert server.wait() == 0, server.said()
    words = ("serve", "--profile", "calculator", "--http-port", "0", folder)
    with started(tmp_path / "own", *COMMAND, *words, variables=variables) as process:
        server = ServerProcess(process, tmp_path / "own")
        assert server.ask(post("/plain/scale", b"1 2")).body == b"2 4 6\n"
        assert b"nv_inference_count" in server.ask(get("/metrics")).body
        assert server.ask(get("/v2")).body.endswith(b"/metrics, /plain.\n")
        assert server.ask(post("/v2/models/scale/infer", b"1")).status == 404
        server.terminate()
        assert server.wait() == 0, server.said()
        assert "gRPC on" not in server.said()
    words = ("calculator", "--port", "0", folder)
    with started(tmp_path / "command", *COMMAND, *words, variables=variables) as process:
        command = LoggedProcess(process, tmp_path / "command")
        port = int(command.await_line(re.compile(r"Calculator API bind to: http://[\w.]+:(\d+)"))[1])
        assert ask(port, post("/plain/scale", b"1 2")).body == b"2 4 6\n"
        command.signal(signal.SIGTERM)
        assert command.wait() == 0, command.said()
