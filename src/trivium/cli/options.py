"""Flags of the server, made from the options of its configuration, and the help that shows them in groups."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from trivium.catalogue import CATALOGUE
from trivium.cli.foreign_configuration import reader_of
from trivium.commands.process import log_to_stderr
from trivium.config.loading import REMOVED, from_process
from trivium.config.options import ServerConfig
from trivium.settings.option import Option
from trivium.types.errors import ServeError
from trivium.types.sources import Place, located


class _Located(click.ParamType[Place]):
    """Reads a path, or a URL of what is to be fetched."""

    name = "path or URL"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        return located(value)


LOCATED = _Located()
PATHS = click.argument("paths", nargs=-1, required=True, type=LOCATED)
SCHEMA = CATALOGUE.schema
_FIRST = "Most used"
_log = logging.getLogger("trivium.config")


class ServerCommand(click.Command):
    """Shows the flags of the server in its help by group, behind those that most people need."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section per group; what belongs to none stands in the first."""
        sections: dict[str, list[tuple[str, str]]] = {_FIRST: [], **{name: [] for name in SCHEMA.groups}}
        for parameter in self.get_params(ctx):
            option = SCHEMA.options.get(parameter.name or "")
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections[_FIRST if option is None or option.is_common else option.group].append(record)
        for name, records in sections.items():
            heading = f"{SCHEMA.groups[name]}, [{name}] in the file" if name in SCHEMA.groups else name
            with formatter.section(heading):
                formatter.write_dl(records)


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config FILE` and a flag per option of the server; unset flags arrive as None."""
    for add in reversed(list(_flags())):
        command = add(command)
    return command


def _flags() -> Iterator[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    text = "TOML file with any of the options below, in a table per group: [http], port = 8080."
    yield click.option("--config", "config_file", type=click.Path(path_type=Path), help=text)
    for option in SCHEMA.options.values():
        if option.type is bool:
            yield click.option(option.flag, option.name, is_flag=True, default=None, help=_help(option))
        else:
            yield click.option(option.flag, option.name, type=option.type, default=None, help=_help(option))
    for name in REMOVED:  # with or without a value, so that the refusal says what to do
        flag = "--" + name.replace("_", "-")
        yield click.option(flag, name, is_flag=False, flag_value="", default=None, hidden=True)


def _help(option: Option) -> str:
    return f"{option.help}  [default: {option.default!r}; {option.variable}]"


def configure(config_file: Path | None, flags: dict[str, Any]) -> ServerConfig:
    """Read the configuration, begin to log as it says, and log what its sources are worth a notice for.

    Flags win over the environment, the file and the defaults; a fault ends the command with its sentence.
    """
    try:
        loaded = from_process(SCHEMA, config_file, flags)
    except ServeError as error:
        hint = reader_of(config_file)
        raise click.ClickException(
            f"{error.message.rstrip('.')}. {hint}" if hint else error.message
        ) from error
    log_to_stderr(loaded.config.server.log_level)
    for notice in loaded.notices:
        _log.warning("%s", notice)
    return loaded.config
