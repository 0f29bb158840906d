"""The command line of `tritonserver` for click: an option per flag of the table, its usage by groups, its refusals.

Decides how words become values and what a person reads where they do not. What the values do says `settings`.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import click

from trivium.servers.triton.command.flag_table import FLAGS, GROUPS
from trivium.servers.triton.command.flags import BOOL, PRESENCE, read
from trivium.settings.judging import meant_by
from trivium.settings.kinds import OneOf
from trivium.settings.setting import Setting, Support
from trivium.types.errors import ServeError

BAD_WORDS = 1
"""The original's exit status for a command line that it cannot read."""


def reader(flag: Setting) -> Callable[[str], Any]:
    """Return what reads the flag's value for click; a refusal ends the command."""

    def value(text: str) -> Any:
        try:
            return read(flag, text)
        except ServeError as error:
            raise click.UsageError(error.message) from error

    return value


class Usage(click.Command):
    """Refuses in the manner of the original: its own status, and the usage behind what is wrong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Ends the command where a word is no flag, or its value cannot be read."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = meant_by(error.option_name, FLAGS)
            hint = f" Did you mean {meant}?" if meant else ""
            refuse(f"tritonserver: unrecognized option '{error.option_name}'{hint}", ctx)
        except click.UsageError as error:
            refuse(error.format_message(), ctx)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage as the original does."""
        formatter.write_usage("tritonserver", "[options]")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Group after group."""
        for group, flags in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(_shown(flag), _explained(flag)) for flag in flags])


def refuse(message: str, ctx: click.Context) -> NoReturn:
    """Say what is wrong, how it is done, and end."""
    click.echo(f"{message}\n\n{ctx.get_help()}", err=True)
    ctx.exit(BAD_WORDS)


def options() -> list[click.Parameter]:
    """One per flag; it is None, or an empty tuple, where its flag was not given."""
    return [
        click.Option([flag.name], is_flag=True, default=None)
        if flag.kind is PRESENCE
        else click.Option([flag.name], type=reader(flag), multiple=flag.repeats, default=None)
        for flag in FLAGS.values()
    ]


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Flag -> value, or values, of those that were given."""
    by_flag = {"--" + name.replace("_", "-"): value for name, value in values.items()}
    return {name: value for name, value in by_flag.items() if value not in (None, ())}


def _shown(flag: Setting) -> str:
    return flag.name if flag.kind is PRESENCE else f"{flag.name} {flag.usage or f'<{flag.kind.form}>'}"


def _explained(flag: Setting) -> str:
    words = [flag.help]
    if isinstance(flag.kind, OneOf):
        words.append(f"One of {', '.join(flag.kind.words)}.")
    if flag.support is not Support.YES:
        words.append(f"({flag.support.value}: {flag.how})")
    if not flag.repeats and flag.default not in ("", False):
        words.append(f"[default: {str(flag.default).lower() if flag.kind is BOOL else flag.default}]")
    return " ".join(words)
