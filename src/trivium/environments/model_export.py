"""Converts a language model for OpenVINO, by a program that lives in an environment of its own, which is made first.

The converted folder is whole or not there: it is made in a scratch folder, and moved when it is complete. Nothing is
fetched but the environment's packages, and no code of the model's folder runs.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from trivium.environments.commands import run_command
from trivium.environments.locks import next_step
from trivium.environments.named import NamedEnvironments
from trivium.environments.recipe import variables
from trivium.environments.store import BuildServices, remove_scratch
from trivium.machine.python_commands import isolated_module
from trivium.scratch import make_scratch
from trivium.types.errors import Code, ServeError

NAME = "openvino-export"
WEIGHTS = ("fp32", "fp16", "int8", "int4")
"""Ways of keeping the weights; the first loses nothing."""

_WHOLE = ("openvino_model.xml", "openvino_model.bin", "config.json")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def export_to_openvino(
    named: NamedEnvironments, source: Path, target: Path, weights: str, services: BuildServices
) -> None:
    """Convert the model in a folder, and put it into a new one. Raises ServeError with the next step, and leaves
    nothing, where it cannot be. Blocking.
    """
    judge_places(source, target)
    environment, _ = named.build(NAME, services)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder, held = make_scratch(target.parent)
        try:
            made = folder / target.name
            _run(exporting(environment.python, source, made, weights), folder, services)
            if lacks := [name for name in _WHOLE if not (made / name).is_file()]:
                words = f"{source} was not converted: the program made no {lacks[0]}."
                raise ServeError(
                    Code.LOAD_FAILED, f"{words} Take a newer Trivium, or convert the model by optimum-cli."
                )
            made.rename(target)
        finally:
            remove_scratch(folder, held)
    except OSError as error:
        words = f"{error.filename or target}: {error.strerror or error}."
        raise ServeError(Code.LOAD_FAILED, f"{words} {next_step(str(error.strerror))}") from error


def exporting(python: Path, source: Path, made: Path, weights: str) -> Sequence[str]:
    """Return the command that converts a folder."""
    return isolated_module(
        str(python),
        *("optimum.commands.optimum_cli", "export", "openvino"),
        *("--model", str(source), "--task", "text-generation-with-past"),
        *("--weight-format", weights, str(made)),
    )


def judge_places(source: Path, target: Path) -> None:
    """Raise INVALID where a model cannot be converted from one folder into the other."""
    if target.exists():
        words = f"{target} is there already, and is not overwritten."
        raise ServeError(Code.INVALID, f"{words} Remove it, or name another folder by -o.")
    if target.resolve().is_relative_to(source.resolve()):
        words = f"{target} lies within the model's own folder {source}."
        raise ServeError(Code.INVALID, f"{words} Name another folder by -o.")


def _run(command: Sequence[str], folder: Path, services: BuildServices) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    environment: Mapping[str, str] = {**variables(services.environment, temporary), **_OFFLINE}
    services.say("converting the model, which takes minutes for a large one")
    end = run_command(command, folder, environment, services.stop, services.guard, _say_nothing)
    if end.was_stopped:
        raise ServeError(Code.CANCELLED, "The conversion was given up.")
    if end.status:
        words = f"The model was not converted: {os.path.basename(command[0])} {end.how}."
        raise ServeError(
            Code.LOAD_FAILED, f"{words} Mend what these words name; nothing is left of the conversion."
        )


def _say_nothing(line: str) -> None:
    """Pass over what the program prints as it goes: its last words are kept for an error."""
