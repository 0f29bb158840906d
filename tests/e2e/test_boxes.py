"""The boxes of the README: what people have who come from an original is installed and served as it says there.

The files are those of the originals' first tutorials, with small weights; the environment is new. Numbers with a
fraction may differ from machine to machine.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.e2e.test_readme import BLOCKS, ROOT, Block
from tests.fixtures import boxes
from tests.harness.server_process import environment, until

pytestmark = pytest.mark.alone  # the ports are the originals' own
SECONDS = 120
INSTALLING = 600
LARGEST_BASE = 220 * 2**20
MAKERS = {
    "torchserve": boxes.torchserve,
    "store": boxes.store,
    "triton": boxes.triton,
    "djl": boxes.djl,
    "bare": boxes.bare,
    "start": boxes.start,
}
_SERVING = ("trivium serve ", "trivium tritonserver ", "trivium djl-serving ")
"""Commands that go on until they are ended."""
BOXES = sorted(
    (block for block in BLOCKS if block.tag.startswith("box=")), key=lambda block: "[" in block.text[:40]
)
"""The ones that need an extra come last: they share one environment."""

_FRACTION = re.compile(r"[0-9]+\.[0-9]+(e-?[0-9]+)?")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `bin` of a new environment, in which nothing is installed."""
    folder = tmp_path_factory.mktemp("boxes")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    (folder / "constraints.txt").write_text("torch==2.13.0\n")
    return folder / "env" / "bin"


def variables(place: Path) -> dict[str, str]:
    constraints = place.parent.parent / "constraints.txt"
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    return {**environment(), "PATH": path, "PIP_CONSTRAINT": str(constraints)}


def shell(
    command: str, folder: Path, place: Path, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=variables(place),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def until_answered(command: str, folder: Path, place: Path, shown: list[str]) -> None:
    """Ask until the answer is a success that has the lines which are shown."""
    ends = time.monotonic() + SECONDS
    while True:
        done = shell(command.replace("curl ", "curl -sS --fail-with-body ", 1), folder, place)
        if done.returncode == 0 and all(rounded(line) in rounded(done.stdout) for line in shown):
            return
        assert time.monotonic() < ends, f"{command}: {shown} is not in {done.stdout}{done.stderr}"
        time.sleep(0.2)


def scenes(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that stand below it."""
    for text in block.text.replace("\\\n", " ").split("\n$ "):
        command, *shown = text.removeprefix("$ ").splitlines()
        yield command, [line for line in shown if line]


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Servers, which are ended with all that they have started."""
    servers: list[subprocess.Popen[bytes]] = []
    yield servers
    for server in servers:
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        server.terminate()
        try:
            assert server.wait(SECONDS) == 0
        finally:
            for each in family:
                if each.is_running():
                    each.kill()


@pytest.mark.parametrize("block", BOXES, ids=str)
def test_a_box_does_what_it_shows(
    block: Block, place: Path, tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    MAKERS[block.tag.removeprefix("box=")](tmp_path)
    log = tmp_path / "server.log"
    served: list[str] = []
    for command, shown in scenes(block):
        if command.startswith(_SERVING):
            with log.open("wb") as file:
                words = ["bash", "-c", f"exec {command}"]
                server = subprocess.Popen(
                    words, cwd=tmp_path, env=variables(place), stdout=file, stderr=subprocess.STDOUT
                )
            started.append(server)
            served = shown
        elif command.startswith("curl "):
            until_answered(command, tmp_path, place, shown)
        else:
            is_install = command.startswith("pip install ")
            printed = tmp_path / "printed.log"  # a file: what a command leaves running would hold a pipe open
            done = shell(
                f"{command} > {printed} 2>&1",
                ROOT if is_install else tmp_path,
                place,
                INSTALLING if is_install else SECONDS,
            )
            assert done.returncode == 0, printed.read_text()
            for line in shown:
                assert rounded(line) in rounded(printed.read_text()), f"{block}: {line!r} is not printed"
    until(  # the server answers before it has written its table
        lambda: all(rounded(line) in rounded(log.read_text()) for line in served),
        lambda: f"{block}: {served} are not in {log.read_text()}",
    )


def test_what_every_installation_has_is_small(place: Path) -> None:
    """Of the box that comes last torch, which is an extra, is there, too: it is left out with what it brings."""
    found = subprocess.run(
        [place / "python", "-c", _SIZE], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert 0 < int(found.stdout) < LARGEST_BASE


_SIZE = """
import re
from importlib.metadata import distribution

seen, waiting, size = set(), ["trivium"], 0
while waiting:
    name = waiting.pop()
    if name.lower() in seen:
        continue
    seen.add(name.lower())
    found = distribution(name)
    size += sum(file.locate().stat().st_size for file in found.files or () if file.locate().is_file())
    waiting += [re.split(r"[^A-Za-z0-9._-]", line)[0] for line in found.requires or () if ";" not in line]
print(size)
"""


def rounded(text: str) -> str:
    return _FRACTION.sub("0.0", text)
