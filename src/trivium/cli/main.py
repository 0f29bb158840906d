"""The command `trivium`. Each subcommand is a file of its own, imported when it is called."""

from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import click

from trivium.codecs.near_names import near
from trivium.codecs.visible_text import visible
from trivium.types.errors import ServeError, frameless


class Subcommand(NamedTuple):
    """One command: the module that has it, and what is said of it."""

    module: str
    text: str
    takes_catalogue: bool = False
    """Whether it is handed the catalogue, as the commands of servers are, which are a part of it."""


COMMANDS = {
    "serve": Subcommand("trivium.cli.serve", "Serve model folders and files over HTTP."),
    "run": Subcommand("trivium.cli.run", "Serve a language model, and talk to it in this terminal."),
    "chat": Subcommand("trivium.cli.chat", "Talk to a language model of a server that runs."),
    "pull": Subcommand("trivium.cli.pull", "Fetch a model of the Hugging Face hub, to serve it later."),
    "list": Subcommand(
        "trivium.cli.list", "List the models that were fetched from the hub, with their sizes."
    ),
    "rm": Subcommand("trivium.cli.rm", "Remove models that were fetched from the hub."),
    "init": Subcommand("trivium.cli.init", "Make a small project: a model or handler, a test, a Dockerfile."),
    "check": Subcommand("trivium.cli.check", "Explain model folders and files without serving them."),
    "status": Subcommand("trivium.cli.status", "Show how a running server and its models do."),
    "doctor": Subcommand(
        "trivium.cli.doctor", "Look for what is wrong with this machine, and say what to do."
    ),
    "tritonserver": Subcommand(
        "trivium.servers.triton.command.command",
        "Serve Triton's model repositories, with the flags of tritonserver.",
        takes_catalogue=True,
    ),
    "djl-test-model": Subcommand(
        "trivium.servers.djl.command.test_model",
        "Call the handler of a DJL model once, without a server.",
    ),
    "djl-serving": Subcommand(
        "trivium.servers.djl.command.command",
        "Serve DJL's models, with the flags and files of djl-serving.",
        takes_catalogue=True,
    ),
    "torchserve": Subcommand(
        "trivium.servers.torchserve.command.command",
        "Serve TorchServe's models, with the options and files of torchserve.",
        takes_catalogue=True,
    ),
    "signals": Subcommand(
        "trivium.cli.signals", "Print a Grafana dashboard, or Prometheus' alert rules, of what is counted."
    ),
    "env": Subcommand(
        "trivium.cli.env", "Make, list and remove the environments of engines that need one of their own."
    ),
    "pack": Subcommand("trivium.cli.pack", "Convert a language model for another engine: --to openvino."),
    "key": Subcommand("trivium.cli.key", "Make a key for the file of --keys."),
    "link": Subcommand(
        "trivium.cli.link", "Put the commands of other servers on the PATH under their own names."
    ),
    "shims": Subcommand(
        "trivium.cli.shims",
        "Print what archives and tests of other servers need: their modules' folder, a file.",
    ),
    "completion": Subcommand("trivium.cli.completion", "Print completion for bash, zsh or fish."),
    "demo": Subcommand("trivium.cli.demo", "Serve the shipped example models and print requests for them."),
}


def _laid_out(message: str) -> str:
    """Return an error whose names no terminal breaks when it is shown behind its word."""
    from rich.console import Console
    from rich.text import Text

    from trivium.commands.visible_console import lines_of

    lines = lines_of(Console(stderr=True), Text(f"{_ERROR}{message}"))
    return "\n".join(line.plain for line in lines).removeprefix(_ERROR)


class LazyGroup(click.Group):
    """Imports a subcommand only to run it, so that help and errors are quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Raise UsageError, with the nearest name, for an unknown one."""
        if cmd_name not in COMMANDS:
            meant = near(cmd_name, COMMANDS)
            hint = f"Did you mean {meant}?" if meant else f"There are: {', '.join(COMMANDS)}."
            raise click.UsageError(f"No such command {cmd_name!r}. {hint}", ctx)
        command = import_module(COMMANDS[cmd_name].module).command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; an error that it raises ends it with its sentence. What that quotes of folders and files
        is text, not to be obeyed by a terminal.
        """
        try:
            return super().invoke(ctx)
        except click.UsageError as error:  # shows the usage, too, and quotes the command line alone
            raise click.UsageError(_laid_out(error.format_message()), error.ctx) from error
        except click.ClickException as error:
            raise click.ClickException(_laid_out(visible(error.message))) from error
        except ServeError as error:
            raise click.ClickException(_laid_out(visible(error.message))) from frameless(error)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.text) for name, row in COMMANDS.items()])


_ERROR = "Error: "
"""What click says in front of an error."""

_WIDEST = 120
"""Columns of a help: a longer line is hard to read."""


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _WIDEST}
)
@click.version_option(version("trivium"), prog_name="trivium")
@click.pass_context
def main(context: click.Context) -> None:
    """Trivium serves any model folder, on any engine, to any client."""
    row = COMMANDS.get(context.invoked_subcommand or "")
    if row is not None and row.takes_catalogue:
        context.obj = import_module("trivium.catalogue").CATALOGUE


if __name__ == "__main__":
    main()
