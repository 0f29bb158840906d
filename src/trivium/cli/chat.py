"""`trivium chat [MODEL]`: a conversation with a language model of a server that runs."""

import signal
import sys

import click

from trivium.chat.client import ChatClient
from trivium.chat.conversation import SETTINGS, Conversation
from trivium.chat.server_client import ChatFailure
from trivium.chat.terminal import converse, typed
from trivium.codecs.near_names import near


@click.command("chat")
@click.argument("model", default="")
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="The server.")
@click.option("--key", envvar="TRIVIUM_CHAT_KEY", default="", help="A key of the server, where it wants one.")
@click.option("--system", default="", help="What the model is told before the first question.")
@click.option("--temperature", type=float, help="How much chance there is in an answer, 0 to 2.")
@click.option("--top-p", type=float, help="Only the likeliest tokens with this share in all.")
@click.option("--max-tokens", type=int, help="The longest answer.")
@click.option("--seed", type=int, help="The same answer each time.")
def command(model: str, url: str, key: str, system: str, **given: float | int | None) -> None:
    """Talk to MODEL, which a server serves, or to the only model that there is.

    Through a pipe each line is a question. Exit status 1 if one was not answered.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings = {name: value for name, value in given.items() if value is not None}
    for name, value in settings.items():
        read, expected = SETTINGS[name]
        try:
            read(str(value))
        except ValueError as error:
            words = f"--{name.replace('_', '-')} is {value}; expected is {expected}."
            raise click.ClickException(words) from error
    try:
        client = ChatClient(url, key)
        names = client.models()
    except ChatFailure as error:
        raise click.ClickException(str(error)) from error
    chosen = _chosen(model, names)
    if sys.stdin.isatty():
        click.echo(f"{chosen} at {url}. /help shows what can be typed beside questions.", err=True)
    if not converse(client, Conversation(chosen, system, settings=settings), typed(), _say):
        raise SystemExit(1)


def _chosen(model: str, names: list[str]) -> str:
    if model in names:
        return model
    there = f"There are: {', '.join(names[:20])}." if names else "No language model is served there."
    if not model and len(names) == 1:
        return names[0]
    if not model:
        raise click.ClickException(f"Which model? {there}")
    meant = near(model, names)
    raise click.ClickException(
        f"No model {model!r} is served there. {f'Did you mean {meant}?' if meant else there}"
    )


def _say(text: str) -> None:
    click.echo(text, nl=False)
