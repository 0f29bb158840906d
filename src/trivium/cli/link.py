"""`trivium link DIR`: puts the commands of other servers on the PATH, under their own names.

Decides what a launcher looks like and which files are ours to replace or remove: those that say so in their second
line. What the commands do says `main`.
"""

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from trivium.machine.python_commands import own_module, program_text

COMMANDS: Mapping[str, str] = {
    "djl-serving": "djl-serving",
    "tritonserver": "tritonserver",
    "djl-test-model": "djl-test-model",
    "torchserve": "torchserve",
}
"""Name on the PATH -> subcommand of `trivium`."""

ARCHIVERS: Mapping[str, str] = {
    "torch-model-archiver": "model_archiver.model_packaging:generate_model_archive",
    "torch-workflow-archiver": "workflow_archiver.workflow_packaging:generate_workflow_archive",
}
"""Name on the PATH -> module and function of TorchServe's own package that it runs, where that is installed."""

_NAMES = (*COMMANDS, *ARCHIVERS)
_HOW = {
    "torch-model-archiver": "pip install 'trivium[torchserve]'",
    "torch-workflow-archiver": "pip install torch-workflow-archiver",
}

MARK = "# Made by `trivium link`; `trivium link --remove` takes it away."
_EXECUTABLE = 0o755


def launcher(name: str, python: str) -> str:
    """A script that runs the command under this interpreter, whatever folder it is called in."""
    words = shlex.join(_words(name, python))
    return f'#!/bin/sh\n{MARK}\nexec {words} "$@"\n'


def _words(name: str, python: str) -> Sequence[str]:
    """Return the command line. An archiver's function is called, since its module warns of being run by its name."""
    if name in COMMANDS:
        return own_module("trivium.cli.main", COMMANDS[name], python=python)
    module, _, function = ARCHIVERS[name].partition(":")
    return program_text(python, f"from {module} import {function}\n{function}()")


def is_ours(path: Path) -> bool:
    """Was this file made here? False for a link, wherever it leads."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(1024).splitlines()[1:2] == [MARK.encode()]


def in_the_way(paths: Iterable[Path]) -> list[Path]:
    """Those that are there and not ours."""
    return [path for path in paths if (path.exists() or path.is_symlink()) and not is_ours(path)]


def is_on_path(folder: Path, variable: str) -> bool:
    """Is it one of the folders of a PATH like this?"""
    return folder.resolve() in {Path(part).resolve() for part in variable.split(os.pathsep) if part}


@click.command("link")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--names", help=f"Which, with commas between; all that there are unless given: {', '.join(_NAMES)}."
)
@click.option("--remove", is_flag=True, help="Take away what was put there.")
@click.option("--search", envvar="PATH", default="", hidden=True)
def command(folder: Path, names: str | None, remove: bool, search: str) -> None:
    """Put small scripts into DIR that run Trivium under the names of other servers' commands, and TorchServe's own
    archivers where they are installed beside it.

    Nothing is overwritten or removed that was not made by this command; then the exit status is 1.
    """
    chosen = _chosen(names, folder)
    foreign = in_the_way(folder / name for name in chosen)
    if foreign:
        listed = ", ".join(map(str, foreign))
        what = "removed" if remove else "overwritten"
        raise click.ClickException(
            f"{listed}: not made by `trivium link`, and so not {what}; nothing was changed. Move it, or choose another "
            "folder, or other names with --names."
        )
    try:
        if remove:
            _remove(folder, chosen)
        else:
            _link(folder, chosen, named=names is not None)
            _tell_of_path(folder, search)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}. Choose another folder.") from error


def _chosen(names: str | None, folder: Path) -> Sequence[str]:
    if names is None:  # an archiver that is there already, as beside its own Python, needs no link
        return [*COMMANDS, *(name for name in ARCHIVERS if not in_the_way([folder / name]))]
    chosen = list(dict.fromkeys(filter(None, names.split(","))))
    unknown = [name for name in chosen if name not in _NAMES]
    if unknown or not chosen:
        raise click.UsageError(
            f"--names: there is no command {unknown[0]!r}; there are: {', '.join(_NAMES)}."
            if unknown
            else f"--names: no name; there are: {', '.join(_NAMES)}."
        )
    return chosen


def is_there(name: str) -> bool:
    """Is what this command runs installed?"""
    return name in COMMANDS or find_spec(ARCHIVERS[name].partition(".")[0]) is not None


def _link(folder: Path, names: Sequence[str], *, named: bool) -> None:
    lacking = [name for name in names if not is_there(name)]
    if named and lacking:
        raise click.ClickException(f"{lacking[0]} is not installed: {_HOW[lacking[0]]}. Nothing was changed.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in lacking:
            click.echo(f"{name} is not installed, and not linked: {_HOW[name]}")
            continue
        path = folder / name
        path.write_text(launcher(name, sys.executable))
        path.chmod(_EXECUTABLE)
        click.echo(f"{path} runs `{f'trivium {COMMANDS[name]}' if name in COMMANDS else ARCHIVERS[name]}`")


def _tell_of_path(folder: Path, search: str) -> None:
    if not is_on_path(folder, search):
        click.echo(
            f"{folder} is not on the PATH. Put it there: export PATH={shlex.quote(str(folder.resolve()))}:$PATH"
        )


def _remove(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        path = folder / name
        if is_ours(path):
            path.unlink()
            click.echo(f"{path} removed")
        else:
            click.echo(f"{path} is not there")
