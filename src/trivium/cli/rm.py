"""`trivium rm NAME`: removes a model, or one revision of it, from the cache of the Hugging Face hub."""

import click

from trivium.cli.located import hub_model
from trivium.fetchers.hub_cache import remove
from trivium.fetchers.hub_policy import in_bytes
from trivium.types.errors import Code, ServeError


@click.command("rm")
@click.argument("names", metavar="ORG/MODEL[@REVISION]...", nargs=-1, required=True)
def command(names: tuple[str, ...]) -> None:
    """Remove models from the cache of the Hugging Face hub, which other programs share.

    A server that runs keeps what it has open; it fetches the model again when it loads it again.
    """
    models = [hub_model(name) for name in names]
    for model in models:
        if model.file:
            words = f"{model}: single files are not removed. Name the model, or a revision of it."
            raise ServeError(Code.INVALID, words)
        click.echo(f"{model} removed: {in_bytes(remove(model))} freed")
