"""`trivium status [URL]`: how a server does that runs, on a terminal, as its console's page shows it."""

import sys
import time
from threading import Event

import click
import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from trivium.chat.server_client import ChatFailure
from trivium.cli.status_client import Reading, StatusClient
from trivium.cli.status_screen import status_lines

_EVERY = 1.0
"""Seconds between two looks: the server's own window moves as often."""

_ANY_WIDTH = 100_000

_PATIENCE = 10.0
"""Seconds for each step of an answer."""


@click.command("status")
@click.argument("url", default="http://127.0.0.1:8080")
@click.option("--key", envvar="TRIVIUM_CHAT_KEY", default="", help="A key of the server, where it wants one.")
@click.option("--watch", is_flag=True, help="Look once a second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the overview as JSON, each look as one line.")
def command(url: str, key: str, watch: bool, as_json: bool) -> None:
    """Show how the server at URL does: whether it is ready, and a row for each model.

    Exit status 1 if it is not ready, or does not answer.
    """
    try:
        client = StatusClient(url, key, _PATIENCE)
        is_ready = _watched(client, as_json) if watch else _looked(client, as_json)
    except ChatFailure as error:
        raise click.ClickException(str(error)) from error
    if not is_ready:
        raise SystemExit(1)


def _looked(client: StatusClient, as_json: bool) -> bool:
    """Look once; where requests were served twice, since rates are those between two looks."""
    reading = client.read()
    if reading.overview.totals.requests:
        Event().wait(_EVERY)
        reading = client.read()
    click.echo(_shown(client, reading, as_json, _width(Console())))
    return reading.overview.server.ready


def _width(console: Console) -> int:
    """Return the columns of a terminal; elsewhere, where it is searched, a sentence is one line."""
    return console.width if console.is_terminal else _ANY_WIDTH


def _watched(client: StatusClient, as_json: bool) -> bool:
    """Look until Ctrl-C; returns whether the server was ready last. One that does not answer may come back."""
    console = Console(highlight=False)
    is_ready = False
    live = Live(console=console, auto_refresh=False) if sys.stdout.isatty() and not as_json else None
    try:
        if live is not None:
            live.start()
        while True:
            try:
                reading = client.read()
                shown, is_ready = (
                    _shown(client, reading, as_json, _width(console)),
                    reading.overview.server.ready,
                )
            except ChatFailure as error:
                said, is_ready = str(error), False
                shown = msgspec.json.encode({"error": said}).decode() if as_json else said
            if live is not None:
                live.update(Text(shown, overflow="fold"), refresh=True)
            else:
                click.echo(shown if as_json else f"{shown}\n")
            Event().wait(_EVERY)
    except KeyboardInterrupt:
        return is_ready
    finally:
        if live is not None:
            live.stop()


def _shown(client: StatusClient, reading: Reading, as_json: bool, width: int) -> str:
    if as_json:
        return msgspec.json.encode(reading.overview).decode()
    lines = [*status_lines(reading.overview, client.place, time.time(), width, counts=not reading.note)]
    return "\n".join([*lines, *(["", reading.note] if reading.note else [])])
