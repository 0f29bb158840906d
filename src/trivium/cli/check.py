"""`trivium check PATH...`: what would be served, where each value comes from, and what stands in the way."""

import asyncio

import click
from rich.console import Console

from trivium import app
from trivium.cli.findings import print_check
from trivium.cli.options import PATHS
from trivium.cli.screen import only_text
from trivium.config.options import OPTIONS, ModelsConfig, ServerConfig
from trivium.types.errors import ServeError
from trivium.types.sources import Place


@click.command("check")
@PATHS
@click.option(
    "--model-config-name", default="", help="Configuration to prefer in a Triton model's folder configs."
)
@click.option(
    "--fetch-from",
    default="",
    envvar=OPTIONS["fetch_from"].variable,
    help="Places that models may be fetched from, as for `trivium serve`.",
)
def command(paths: tuple[Place, ...], model_config_name: str, fetch_from: str) -> None:
    """Explain model folders and files without serving them; exit status 1 if one cannot be served."""
    try:
        config = ServerConfig(models=ModelsConfig(config_name=model_config_name, fetch_from=fetch_from))
        specs, unreadable = asyncio.run(app.examine(paths, config))
    except ServeError as error:
        raise click.ClickException(error.message) from error
    if not print_check(only_text(Console()), specs, unreadable):
        raise SystemExit(1)
