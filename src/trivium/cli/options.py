"""Flags of the server, made from the options of its configuration, and the help that shows them in groups."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

from trivium.catalogue import CATALOGUE
from trivium.cli.foreign_configuration import reader_of
from trivium.cli.located import LOCATED
from trivium.commands.process import log_to_stderr
from trivium.config.loading import REMOVED, from_process
from trivium.config.options import ServerConfig
from trivium.settings.kinds import Seconds, Size, in_units
from trivium.settings.option import Option
from trivium.types.errors import ServeError

PATHS = click.argument("paths", nargs=-1, required=True, type=LOCATED)
SCHEMA = CATALOGUE.schema
_FIRST = "Most used"
_MORE = (
    ("--help-all", "Show all options by group, with their names in the file and in the environment."),
    ("--help WORD", "Show the options about a word, like --help tls."),
)
_log = logging.getLogger("trivium.config")


class _Quantity(click.ParamType[str]):
    """Passes a size or a time on as it is written, perhaps with a unit: the option itself reads and judges it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value


_SIZE, _TIME = _Quantity("size"), _Quantity("seconds")


class GroupedOption(click.Option):
    """A flag of a command alone that stands below a heading of its own in the help, not with what most people need."""

    def __init__(self, *names: Any, heading: str, **facts: Any) -> None:
        super().__init__(*names, **facts)
        self.heading = heading


class ServerCommand(click.Command):
    """Shows in its help the flags that most people need; by `--help-all` all of them by group, by `--help WORD` those
    about a word.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Answer the two other forms of help, and end; leave everything else to click."""
        for at, word in enumerate(args):
            if word == "--":
                break
            if word == "--help-all":
                self._show(ctx, self._sections(ctx))
            if word in ("-h", "--help") and at + 1 < len(args) and not args[at + 1].startswith("-"):
                self._show(ctx, self._about(ctx, args[at + 1]))
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags that most people need, and how to see the others."""
        sections = self._sections(ctx)
        with formatter.section(_FIRST):
            formatter.write_dl([*sections[_FIRST], *_MORE])

    def _sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the flags and what they do, by group; what belongs to none stands in the first."""
        groups = {name: f"{text}, [{name}] in the file" for name, text in SCHEMA.groups.items()}
        sections: dict[str, list[tuple[str, str]]] = {_FIRST: [], **{text: [] for text in groups.values()}}
        for parameter in self.get_params(ctx):
            option = SCHEMA.options.get(parameter.name or "")
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, GroupedOption):
                sections.setdefault(parameter.heading, []).append(record)
            elif record is not None and isinstance(parameter, click.Option):
                sections[_FIRST if option is None or option.is_common else groups[option.group]].append(
                    record
                )
        return sections

    def _about(self, ctx: click.Context, word: str) -> dict[str, list[tuple[str, str]]]:
        wanted = word.strip("-").replace("_", "-").lower()
        rows = [row for rows in self._sections(ctx).values() for row in rows]
        found = [row for row in rows if wanted in f"{row[0]} {row[1]}".lower()]
        if not found:
            raise click.UsageError(f"No option is about {word!r}. See --help-all.", ctx)
        return {f"About {word}": found}

    def _show(self, ctx: click.Context, sections: dict[str, list[tuple[str, str]]]) -> NoReturn:
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)
        click.echo(formatter.getvalue().rstrip("\n"), color=ctx.color)
        ctx.exit()


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
            yield click.option(option.flag, option.name, type=_type(option), default=None, help=_help(option))
    for name in REMOVED:  # with or without a value, so that the refusal says what to do
        flag = "--" + name.replace("_", "-")
        yield click.option(flag, name, is_flag=False, flag_value="", default=None, hidden=True)


def _type(option: Option) -> Any:
    if isinstance(option.kind, Seconds):
        return _TIME
    return _SIZE if isinstance(option.kind, Size) else option.type


def _help(option: Option) -> str:
    default = _default(option)
    return f"{option.help}  [{f'default: {default}; ' if default else ''}{option.variable}]"


def _default(option: Option) -> str:
    """Return a default as it is written; empty for one that says nothing: no text, or a flag that is not set."""
    default = option.default
    if isinstance(default, bool) or default is None or default == "":
        return ""
    if isinstance(default, float):
        return f"{default:g}"
    if isinstance(option.kind, Size) and isinstance(default, int):
        return in_units(default)
    return str(default)


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
    log_to_stderr(loaded.config.server.log_level, loaded.config.server.log_format)
    for notice in loaded.notices:
        _log.warning("%s", notice)
    return loaded.config
