"""`trivium completion SHELL`: a script by which a shell completes commands, options, their words, and paths.

Made from the commands themselves, once: what completes a word starts no Python.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

import click

from trivium.cli import completion_scripts
from trivium.cli.completion_scripts import CompletedCommand, CompletedOption
from trivium.settings.kinds import OneOf
from trivium.settings.option import Option

_WRITERS: Mapping[str, Callable[[tuple[CompletedCommand, ...]], str]] = {
    "bash": completion_scripts.bash,
    "zsh": completion_scripts.zsh,
    "fish": completion_scripts.fish,
}
_PATH_WORDS = (
    *("file", "dir", "path", "folder", "store", "repository", "config", "socket"),
    *("certificate", "tls-key", "keys", "authorities", "access-log"),
)
"""What the name of an option ends with whose value is a path, where its type does not say so."""


@click.command("completion")
@click.argument("shell", type=click.Choice(tuple(_WRITERS)))
def command(shell: str) -> None:
    """Print a script for SHELL. To have it in every new shell:

    \b
    bash:  trivium completion bash > ~/.local/share/bash-completion/completions/trivium
    zsh:   trivium completion zsh > "${fpath[1]}/_trivium"
    fish:  trivium completion fish > ~/.config/fish/completions/trivium.fish
    """
    click.echo(_WRITERS[shell](tuple(completed_commands())), nl=False)


def completed_commands() -> Iterator[CompletedCommand]:
    """Yield all commands of the table with their options, those of other servers by the names they have there."""
    from trivium.cli.main import COMMANDS  # it imports commands, of which this is one
    from trivium.cli.options import SCHEMA

    for name, row in COMMANDS.items():
        found = import_module(row.module).command
        yield from _completed(name, row.text, found, SCHEMA.options)


def _completed(
    name: str, text: str, command: click.Command, known: Mapping[str, Option]
) -> Iterator[CompletedCommand]:
    options = [
        _option(each, known.get(each.name or ""))
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]
    options.append(CompletedOption(("--help",), text="Show what it does."))
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    words = [word for each in arguments for word in _words(each.type)]
    nested = command.commands if isinstance(command, click.Group) else {}
    has_paths = any(_is_path(each, each.name or "") for each in arguments)
    yield CompletedCommand(name, text, tuple(options), (*nested, *words), has_paths)


def _option(option: click.Option, known: Option | None) -> CompletedOption:
    flags = tuple(each for each in (*option.opts, *option.secondary_opts) if each.startswith("-"))
    kind = None if known is None else known.kind
    words = kind.words if isinstance(kind, OneOf) else _words(option.type)
    is_path = not words and _is_path(option, option.opts[-1])
    text = (option.help or "").partition("  [")[0]
    return CompletedOption(flags, not (option.is_flag or option.count), tuple(words), is_path, text)


def _words(kind: object) -> tuple[str, ...]:
    return tuple(map(str, kind.choices)) if isinstance(kind, click.Choice) else ()


def _is_path(parameter: click.Parameter, name: str) -> bool:
    """Tell whether a value is a path: by its type, or, where that is a text, by its name."""
    if isinstance(parameter.type, click.Path | click.File) or parameter.type.name.startswith("path"):
        return True
    is_text = parameter.type.name in ("text", "string")
    return is_text and name.lower().replace("_", "-").endswith(_PATH_WORDS)
