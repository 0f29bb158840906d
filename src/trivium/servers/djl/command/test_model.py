"""`trivium djl-test-model`: call the handler of a DJL model once, under the interpreter that the model asks for.

Its words are those of `djl_python.test_model`, which reads them in a process of its own.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from trivium.commands.command_line import read_properties, takes_words
from trivium.environments.worker_programs import CHILD

_KEY = "option.pythonExecutable"


def interpreter(words: Sequence[str]) -> str:
    """Return what `serving.properties` of the model's folder names, or this program's own. ClickException for one
    that is not there.
    """
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--model-dir", default=".")
    try:
        folder = Path(parser.parse_known_args(words)[0].model_dir)
    except argparse.ArgumentError:
        return sys.executable  # the program itself says what is wrong
    path = folder / "serving.properties"
    properties = read_properties(path if path.is_file() else None)
    entry = None if properties is None else properties.entries.get(_KEY)
    if entry is None or not entry.value.strip():
        return sys.executable
    found = shutil.which(entry.value.strip())
    if found is None:
        raise click.ClickException(
            f"{path}:{entry.line}: {_KEY}={entry.value}: expected a Python 3.10 or newer that may be run. Name one, or "
            "remove the line for Trivium's own."
        )
    return found


@takes_words("djl-test-model")
def command(words: tuple[str, ...]) -> None:
    """Call the handler of a DJL model once and print what it returns; --help lists the options."""
    python = interpreter(words)
    sys.stdout.flush()
    os.execv(python, [python, str(CHILD), "--tool", "djl", "djl_python.test_model", *words])
