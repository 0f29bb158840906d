"""`trivium pack`: converts a model's folder into the form that another engine serves."""

import os
import threading
from pathlib import Path

import click

from trivium.environments.model_export import WEIGHTS, export_to_openvino, judge_places
from trivium.environments.named import environments_of
from trivium.environments.store import BuildServices
from trivium.formats.checkpoint import names
from trivium.formats.checkpoint.checkpoint import checked, names_in, read_checkpoint
from trivium.guard import ServerGuard
from trivium.types.errors import Code, ServeError

_FORMS = ("openvino",)
_TRUST = "code of the folder is not run by a conversion"


@click.command("pack")
@click.option("--to", "form", required=True, type=click.Choice(_FORMS), help="The form to convert to.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The new folder; FOLDER-openvino where none is named.",
)
@click.option(
    "--weights",
    type=click.Choice(WEIGHTS),
    default=WEIGHTS[0],
    show_default=True,
    help="How the weights are kept: fp32 loses nothing, int8 takes a quarter of it.",
)
def command(form: str, folder: Path, output: Path | None, weights: str) -> None:
    """Convert the model in FOLDER (config.json and safetensors), and print the new folder.

    The program that converts lives in an environment of its own, which is made when it is first needed: about 2 GB.
    """
    target = output or folder.absolute().with_name(f"{folder.absolute().name}-{form}")
    _judge(folder)
    judge_places(folder, target)
    guard = ServerGuard()
    try:
        services = BuildServices(guard.scratch, os.environ, threading.Event(), guard, _say)
        export_to_openvino(
            environments_of(os.environ), folder.absolute(), target.absolute(), weights, services
        )
    finally:
        guard.close()
    _say(f"serve it with: trivium serve {target}")
    click.echo(target)


def _judge(folder: Path) -> None:
    """Raise for a folder that holds no language model that can be converted."""
    expected = "Expected a folder with config.json, safetensors and a tokenizer"
    try:
        there = names_in(folder)
    except OSError as error:
        words = f"{folder} cannot be read: {error.strerror}. {expected}."
        raise ServeError(Code.INVALID, words) from error
    if names.CONFIG not in there or not names.has_safetensors(there):
        found = ", ".join(sorted(there)[:5]) or "nothing"
        raise ServeError(Code.INVALID, f"{folder} holds {found}. {expected}.")
    checked(read_checkpoint(folder, False, _TRUST))


def _say(line: str) -> None:
    click.echo(line, err=True)
