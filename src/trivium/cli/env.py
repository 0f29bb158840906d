"""`trivium env`: makes, lists and removes environments for engines whose libraries cannot live in the server's."""

import os
import threading

import click
from rich.console import Console

from trivium.cli.layout import aligned
from trivium.environments.named import EnvironmentState, NamedEnvironments, environments_of
from trivium.environments.store import BuildServices
from trivium.fetchers.hub_policy import in_bytes
from trivium.guard import ServerGuard
from trivium.types.errors import Code, ServeError

_HEADINGS = ("environment", "state", "size", "folder")
_ABSENT = "not built"


@click.group("env")
def command() -> None:
    """Make, list and remove the environments of engines whose libraries cannot live in the server's own.

    They lie in the user's cache, below XDG_CACHE_HOME, and are made from lists of exact versions that come with
    Trivium.
    """


@command.command("build")
@click.argument("name")
@click.option(
    "--python", default="", help="The interpreter to make it with, where the server's own does not do."
)
def build(name: str, python: str) -> None:
    """Make the environment NAME, unless it is there, and print its interpreter."""
    named = _named()
    guard = ServerGuard()
    try:
        services = BuildServices(guard.scratch, os.environ, threading.Event(), guard, _say)
        made, is_new = named.build(name, services, python)
    finally:
        guard.close()
    if not is_new:
        _say(f"the environment '{name}' is there")
    click.echo(made.python)


@command.command("list")
def list_() -> None:
    """List the environments that can be made, and those that are there."""
    named = _named()
    there = named.all()
    rows = [(one.name, one.state.value, in_bytes(one.size()), str(one.place)) for one in there]
    ready = {one.name for one in there if one.state is EnvironmentState.READY}
    rows += [(name, _ABSENT, "", f"trivium env build {name}") for name in named.locks if name not in ready]
    for line in aligned(_HEADINGS, rows, Console().width, 3):
        click.echo(line)


@command.command("path")
@click.argument("name")
def path(name: str) -> None:
    """Print the folder of the environment NAME."""
    found = _named().find(name)
    if found is None:
        words = f"The environment '{name}' is not there. Make it with: trivium env build {name}"
        raise ServeError(Code.NOT_FOUND, words)
    click.echo(found.place)


@command.command("remove")
@click.argument("name")
@click.option("--outdated", is_flag=True, help="Only what an older Trivium made, and what is broken.")
def remove(name: str, outdated: bool) -> None:
    """Remove the environment NAME, with what older lists of versions left of it."""
    named = _named()
    sizes = {one.place: one.size() for one in named.all()}
    gone = named.remove(name, outdated)
    for one in gone:
        click.echo(f"{one.place} removed: {in_bytes(sizes[one.place])} freed")
    if not gone:
        click.echo(f"Nothing of '{name}' is outdated.")


def _named() -> NamedEnvironments:
    return environments_of(os.environ)


def _say(line: str) -> None:
    click.echo(line, err=True)
