"""Flags of the server, made from the fields of its configuration."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from trivium.config import PREFIX, REMOVED, ServerConfig, from_process
from trivium.types.errors import ServeError

PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--config FILE` and a flag per field of `ServerConfig`; unset flags arrive as None."""
    for option in reversed(fields(ServerConfig)):
        flag = "--" + option.name.replace("_", "-")
        text = f"{option.metadata['help']}  [default: {option.default!r}; {PREFIX}{option.name.upper()}]"
        if option.type is bool:
            command = click.option(flag, option.name, is_flag=True, default=None, help=text)(command)
        else:
            assert isinstance(option.type, type)
            command = click.option(flag, option.name, type=option.type, default=None, help=text)(command)
    for name in REMOVED:  # accepted here, so that the configuration can say why they are gone
        command = click.option("--" + name.replace("_", "-"), name, hidden=True)(command)
    text = "TOML file with any of the options below as keys."
    return click.option("--config", "config_file", type=click.Path(path_type=Path), help=text)(command)


def configure(config_file: Path | None, flags: dict[str, Any]) -> ServerConfig:
    """Flags over environment over file over defaults; a fault ends the command with its sentence."""
    try:
        return from_process(config_file, flags)
    except ServeError as error:
        raise click.ClickException(error.message) from error
