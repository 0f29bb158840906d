"""What README and manual tell people to type works as it stands there.

`python` blocks are run as scripts where the shipped models and pictures lie beside them; `python no-run` ones are
compiled; those with `file=` and `row=` have a test of their own, `test_extending`, and
those with `box=` one, `test_boxes`. Of `console` blocks each `$` line
must be a command that there is, with flags that it has; `console run` ones are also run, and must print the lines
below them.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from tests.harness.server_process import environment

from trivium.cli.container_policy import Surroundings, container_start
from trivium.cli.main import main
from trivium.demo import places

ROOT = Path(__file__).parents[2]
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
SECONDS = 60
OTHERS = {"cd", "cp", "curl", "git", "helm", "kubectl", "pip", "sed", "sudo"}
"""Commands that are not ours, of which only the syntax is checked; files that a cluster gets, by `test_deploy`."""

_FENCE = re.compile(r"^( *)```(python|console)([^\n]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_JOINT = re.compile(r"\||&&|;")


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its first line, from 1."""

    page: Path
    line: int
    kind: str
    tag: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> list[str]:
        """The lines behind a `$`, with those that a backslash joins to them."""
        joined = self.text.replace("\\\n", " ")
        return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


def _blocks() -> Iterator[Block]:
    for page in (README, CONTRIBUTING, *sorted((ROOT / "docs").rglob("*.md"))):
        text = page.read_text()
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start(4)) + 1
            yield Block(page, line, match[2], match[3].strip(), textwrap.dedent(match[4]))


BLOCKS = [block for block in _blocks() if not block.tag.startswith(("file=", "row="))]
PYTHON, CONSOLE = ([block for block in BLOCKS if block.kind == kind] for kind in ("python", "console"))


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with `models/` (the Triton repository), `digits-bare.onnx` and `pictures/` in it."""
    shutil.copytree(places.models(), tmp_path / "models")
    shutil.copy(places.bare_model(), tmp_path)
    shutil.copytree(places.pictures()[0].parent, tmp_path / "pictures")
    return tmp_path


def test_readme_shows_python_and_commands() -> None:
    assert any(block.page == README for block in PYTHON), "README.md has no python block"
    assert any(block.page == README and block.commands() for block in CONSOLE), "README.md has no command"


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python(block: Block, workplace: Path) -> None:
    assert block.tag in ("", "no-run"), f"{block}: unknown tag {block.tag!r}"
    code = compile(block.text, str(block), "exec")
    assert code.co_code
    if block.tag == "":
        script = workplace / "script.py"
        script.write_text(block.text)
        _run([sys.executable, "-W", "error", str(script)], workplace, block)


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_console(block: Block, workplace: Path) -> None:
    assert block.tag in ("", "run") or block.tag.startswith("box="), f"{block}: unknown tag {block.tag!r}"
    commands = block.commands()
    assert commands, f"{block}: no line begins with '$ '"
    for command in commands:
        _run(["bash", "-n", "-c", command], workplace, block)
        for part in _JOINT.split(command):
            _judge(shlex.split(part, comments=True), f"{block}: {command}")
    if block.tag == "run":
        printed = _run(["bash", "-euo", "pipefail", "-c", "\n".join(commands)], workplace, block)
        for line in block.text.replace("\\\n", " ").splitlines():
            assert line.startswith("$ ") or line.strip() in printed, f"{block}: {line!r} is not in {printed}"


def _run(words: list[str], folder: Path, block: Block) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words,
        cwd=folder,
        env={**environment(), "PATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{block}: {done.stdout}{done.stderr}"
    return done.stdout


def _judge(words: list[str], where: str) -> None:
    """Is there such a command, and has it such flags? It is not run."""
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    match words:
        case ["trivium"] | ["trivium", "--version" | "--help"]:
            pass
        case ["trivium", name, *rest]:
            command = main.get_command(click.Context(main), name)
            assert command is not None, f"{where}: there is no 'trivium {name}'"
            try:
                command.make_context(name, rest)
            except click.ClickException as error:
                raise AssertionError(f"{where}: {error.format_message()}") from error
        case ["docker", "build", *rest]:
            assert (ROOT / rest[rest.index("-f") + 1]).is_file(), f"{where}: there is no such Dockerfile"
        case ["docker", "compose", "-f", file, *_]:
            assert (ROOT / file).is_file(), f"{where}: there is no {file}"
        case ["docker", "run", *rest]:
            at = next(i for i, word in enumerate(rest) if word.startswith("trivium:"))
            ours = container_start(rest[at + 1 :], Surroundings()).words
            _judge([*ours] if ours[0] == "trivium" else ["trivium", *ours], where)
        case ["make", *targets]:
            known = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(targets) <= set(known), f"{where}: the Makefile has {known}"
        case ["python" | "python3", "-m", module, *_]:
            assert importlib.util.find_spec(module), f"{where}: there is no module {module}"
        case ["python" | "python3", script, *_]:
            shown = [block.tag.removeprefix("file=") for block in _blocks() if block.tag.startswith("file=")]
            assert (ROOT / script).is_file() or script in shown, f"{where}: there is no {script}"
        case [other, *_]:
            assert other in OTHERS, f"{where}: nobody knows the command {other}"
