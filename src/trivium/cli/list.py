"""`trivium list`: the models in the cache of the Hugging Face hub, with their sizes."""

import time

import click
from rich.console import Console

from trivium.cli.layout import aligned
from trivium.codecs.visible_text import visible
from trivium.fetchers.hub_cache import cache_folder, cached_models
from trivium.fetchers.hub_policy import in_bytes

_HEADINGS = ("model", "size", "revisions", "last read")


@click.command("list")
def command() -> None:
    """List the models in the cache of the Hugging Face hub: what `trivium serve ORG/MODEL` finds without a network."""
    models = cached_models()
    if not models:
        click.echo(f"No models in {cache_folder()}. `trivium pull ORG/MODEL` fetches one.")
        return
    rows = [
        (
            visible(model.name),
            in_bytes(model.size),
            visible(", ".join(model.revisions)),
            time.strftime("%Y-%m-%d", time.localtime(model.used_at)),
        )
        for model in models
    ]
    for line in aligned(_HEADINGS, rows, Console().width, 0):
        click.echo(line)
    click.echo(f"{in_bytes(sum(model.size for model in models))} in {cache_folder()}")
