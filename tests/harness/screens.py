"""Makes the screens that people see first, at the widths of terminals and without one, as texts that may be compared.

Each is what a command prints from a folder of models made here. What another run or machine would print otherwise is a
placeholder: times, ports, versions, the folder's path. `python -m tests.harness.screens` writes them all anew.
"""

import contextlib
import functools
import io
import os
import re
import signal
import socket
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import click
from tests.fixtures import boxes, models
from tests.harness.terminal import OTHERWISE, displayed, on_terminal
from tests.harness.torchserve_management import archive

from trivium.cli.main import main

SCREENS = Path(__file__).parents[1] / "fixtures" / "screens"
PLAIN = "plain"
WIDTHS = ("80", "120", PLAIN)
"""Columns of a terminal, or none: what a log or another program gets."""

JARGON = frozenset(
    {"row", "rows", "fold", "folds", "span", "spans", "claim", "claims", "passive", "origin", "origins"}
)
"""Words of the code, which its users do not have."""

TAKEN = "TAKEN"
"""Stands for a port at which somebody listens."""

VENV = "environment"
"""The folder of an environment without torch."""

_PORTS = ("--http-port", "0", "--grpc-port", "0", "--load-threads", "1")
_UP = "Next: "
"""What the last line of a server that is up begins with."""

_PLACEHOLDERS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"127\.0\.0\.1 port \d+"), "127.0.0.1 port PORT"),
    (re.compile(r"\(\d+\.\d s\)"), "(N.N s)"),
    (re.compile(r"have [\d.]+ s to finish"), "have TIME s to finish"),
    (re.compile(r"(?<![\d.])\d+\.\d+\.\d+(?:[+][\w.]+)?(?!\.?\d)"), "VERSION"),
    (re.compile(r"(process|pid) \d+"), r"\1 PID"),
)
_WEATHER = re.compile(
    r"WARNING trivium\.core\.clock: no request was answered for|WARNING trivium.*stderr: [ ~^]+\Z"
)
"""Lines that a loaded machine adds, or another Python: its marks below a line of a traceback."""

_HANDLER = """class TritonPythonModel:
    def initialize(self, args):
        self.labels = open("labels.json").read().split()

    def execute(self, requests):
        return []
"""
_ANSWERS = """from djl_python import Output


def handle(inputs):
    return None if inputs.is_empty() else Output().add(inputs.get_as_bytes())
"""
_PYTHON = (
    'backend: "python"\nmax_batch_size: 8\n'
    'input [ { name: "text" data_type: TYPE_STRING dims: [ 1 ] } ]\n'
    'output [ { name: "label" data_type: TYPE_STRING dims: [ 1 ] } ]\n'
)
_ENSEMBLE = """platform: "ensemble"
max_batch_size: 16
input [ { name: "left" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "right" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "total" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling {
  step [
    {
      model_name: "adds"
      model_version: -1
      input_map { key: "a" value: "left" }
      input_map { key: "b" value: "right" }
      output_map { key: "sum" value: "total" }
    }
  ]
}
"""


@dataclass(frozen=True)
class Screen:
    """A command whose output is one of the screens; with a process of its own where it starts some itself."""

    words: tuple[str, ...]
    has_process: bool = False
    python: str = sys.executable
    """The interpreter that runs it, whose path it may name."""


SHOWN = {
    "help": Screen(("--help",)),
    "version": Screen(("--version",)),
    "serve-help": Screen(("serve", "--help")),
    "serve-help-word": Screen(("serve", "--help", "tls")),
    "check-help": Screen(("check", "--help")),
    "error-command": Screen(("srve", "models")),
    "error-option": Screen(("serve", "models", "--htp-port", "8000")),
    "error-value": Screen(("serve", "models", "--max-body-bytes", "1X")),
    "error-nothing-given": Screen(("check",)),
    "error-no-such-path": Screen(("check", "modles")),
    "error-no-model": Screen(("check", "empty")),
    "error-key": Screen(("check", "misspelt")),
    "error-configuration": Screen(("serve", "models", "--config", "server.toml")),
    "check-triton": Screen(("check", "models"), has_process=True),
    "check-all": Screen(("check", "--all", "models/adds"), has_process=True),
    "check-djl": Screen(("check", "djl"), has_process=True),
    "check-mar": Screen(("check", "echo.mar"), has_process=True),
    "check-torchscript": Screen(("check", "scaled.pt"), has_process=True),
    "check-ensemble": Screen(("check", "ensembles"), has_process=True),
    "error-damaged": Screen(("check", "damaged"), has_process=True),
    "error-missing-library": Screen(("check", "scaled.pt"), has_process=True, python=f"{VENV}/bin/python"),
    "error-handler": Screen(("serve", "raises", *_PORTS), has_process=True),
    "error-open": Screen(("serve", "models", "--host", "0.0.0.0"), has_process=True),
    "error-port-taken": Screen(
        ("serve", "models", "--http-port", TAKEN, "--grpc-port", "0"), has_process=True
    ),
}
"""Screens of commands that end by themselves."""

SERVED = ("start", "start-failed", "stop")
"""Screens of servers, which end by a signal."""


def names(has_process: bool) -> list[str]:
    """The screens that are made with processes of their own, or without."""
    return [name for name, screen in SHOWN.items() if screen.has_process == has_process] + (
        list(SERVED) if has_process else []
    )


def path(name: str, width: str) -> Path:
    """Where a screen is kept."""
    return SCREENS / f"{name}.{width}.txt"


def write_texts(folder: Path) -> None:
    """Write what is read without any engine: configurations and handlers."""
    (folder / "empty").mkdir(parents=True)
    (folder / "misspelt" / "digits" / "1").mkdir(parents=True)
    (folder / "misspelt" / "digits" / "config.pbtxt").write_text(
        'platform: "onnxruntime_onnx"\nmax_batch_sise: 4\n'
    )
    (folder / "server.toml").write_text("[http]\nport = 8080\nmax_conections = 10\n")
    _python(folder / "raises", "labels", _HANDLER)
    djl = folder / "djl" / "answers"
    djl.mkdir(parents=True)
    (djl / "model.py").write_text(_ANSWERS)
    (djl / "serving.properties").write_text("engine=Python\nminWorkers=1\nmaxWorkers=2\nbatch_size=4\n")
    archive(folder, "echo")


def write_models(folder: Path) -> None:
    """Write the model files, too."""
    import torch

    write_texts(folder)
    boxes.triton(folder)
    (folder / "model_repository").rename(folder / "models")
    models.add(folder / "models", "adds", rows=16, extra=models.BATCHING)
    models.corrupt(folder / "damaged", "cut", 0.5)
    models.add(folder / "some", "adds")
    models.corrupt(folder / "some", "cut", 0.5)
    models.add(folder / "ensembles", "adds", rows=16)
    ensemble = folder / "ensembles" / "totals"
    (ensemble / "1").mkdir(parents=True)
    (ensemble / "config.pbtxt").write_text(_ENSEMBLE)
    torch.jit.trace(torch.nn.Linear(4, 2), torch.zeros(1, 4)).save(str(folder / "scaled.pt"))
    _environment_without_torch(folder)


def _environment_without_torch(folder: Path) -> None:
    """Make an environment with what this one has, and no torch."""
    venv.create(folder / VENV, symlinks=True)
    (packages,) = (folder / VENV / "lib").glob("python*/site-packages")
    (packages / "torch.py").write_text("raise ModuleNotFoundError('No module named torch', name='torch')\n")
    (packages / "others.pth").write_text("".join(f"{place}\n" for place in sys.path if place))


def _python(root: Path, name: str, code: str) -> None:
    (root / name / "1").mkdir(parents=True)
    (root / name / "1" / "model.py").write_text(code)
    (root / name / "config.pbtxt").write_text(_PYTHON)


@contextlib.contextmanager
def made_folder(write: Callable[[Path], None]) -> Iterator[Path]:
    """A folder with what is written to it. Its path has one length everywhere: lines are broken at it."""
    with tempfile.TemporaryDirectory(prefix="trivium-screens-", dir="/tmp") as folder:
        place = Path(folder).resolve()
        write(place)
        yield place


def made(name: str, width: str, folder: Path) -> str:
    """Make a screen, from a folder that has been written."""
    if name in SERVED:
        return _served(folder, width)[name]
    screen = SHOWN[name]
    return _run(screen, width, folder) if screen.has_process else _called(screen.words, width, folder)


def _called(words: tuple[str, ...], width: str, folder: Path) -> str:
    """What a command prints in this process, not by click's own runner, under which a help has one width."""
    variables = {
        "COLUMNS": "80" if width == PLAIN else width,  # a terminal of whoever runs the tests is not asked
        "TTY_COMPATIBLE": "0" if width == PLAIN else "1",
        "TERM": "xterm-256color",
    }
    screen = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, variables))
        for name in OTHERWISE - variables.keys():
            os.environ.pop(name, None)
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(contextlib.redirect_stdout(screen))
        stack.enter_context(contextlib.redirect_stderr(screen))
        stack.enter_context(contextlib.suppress(SystemExit))
        for name in main.list_commands(
            click.Context(main)
        ):  # click keeps the help that whoever asked first had
            vars(main.get_command(click.Context(main), name))["_help_option"] = None
        main(words, prog_name="trivium")
    return _comparable(screen.getvalue(), width, folder)


def _run(screen: Screen, width: str, folder: Path) -> str:
    """What a command prints that starts processes, until it ends by itself."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = [port if word == TAKEN else word for word in screen.words]
        with on_terminal(words, _columns(width), folder, screen.python) as child:
            return _comparable(child.ended(), width, folder)


@functools.cache
def _served(folder: Path, width: str) -> dict[str, str]:
    """What two servers print: of good models until it is up, and when it stops; of one good model and a bad one."""
    with on_terminal(["serve", "models", *_PORTS], _columns(width), folder) as child:
        child.await_text(_UP)
        up = child.printed()
        child.process.send_signal(signal.SIGTERM)
        stop = child.ended()[len(up) :]
    with on_terminal(["serve", "some", *_PORTS], _columns(width), folder) as child:
        child.await_text(_UP)
        failed = child.printed()
    texts = {"start": up, "stop": stop, "start-failed": failed}
    found = {name: _comparable(text, width, folder) for name, text in texts.items()}
    return {
        **found,
        "start": _loads_by_name(found["start"]),
        "start-failed": _ready_first(found["start-failed"]),
    }


def _loads_by_name(text: str) -> str:
    """A screen whose lines on loads that ended are in the order of their names: which ends first is left to chance."""
    lines = text.splitlines(keepends=True)
    ended = [number for number, line in enumerate(lines) if ": ready (" in line]
    for number, line in zip(ended, sorted(lines[number] for number in ended), strict=True):
        lines[number] = line
    return "".join(lines)


def _ready_first(text: str) -> str:
    """A screen with what is ready in front of what has failed: which of two loads ends first is left to chance."""
    opening, *lines = text.splitlines(keepends=True)
    ready = [line for line in lines if line.startswith("adds version 1: ready")]
    return "".join([opening, *ready, *(line for line in lines if line not in ready)])


def _columns(width: str) -> int | None:
    return None if width == PLAIN else int(width)


def _comparable(text: str, width: str, folder: Path) -> str:
    """Return what would be the same on another machine. Without a terminal it is kept to the letter: a colour shows."""
    shown = text if width == PLAIN else displayed(text)
    shown = shown.replace(str(folder), "FOLDER")
    for pattern, placeholder in _PLACEHOLDERS:
        shown = pattern.sub(placeholder, shown)
    lines = [line for line in shown.splitlines() if not _WEATHER.match(line)]
    return "\n".join(lines).rstrip("\n") + "\n"


def write_screens() -> None:
    """Write all screens anew."""
    SCREENS.mkdir(exist_ok=True)
    with made_folder(write_models) as place:
        for name in [*SHOWN, *SERVED]:
            for width in WIDTHS:
                path(name, width).write_text(made(name, width, place))


if __name__ == "__main__":
    write_screens()
