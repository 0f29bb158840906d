"""`trivium check PATH...`: what would be served, where each value comes from, and what stands in the way."""

import asyncio
from pathlib import Path

import click
from rich.console import Console

from trivium import app
from trivium.cli.findings import print_check
from trivium.cli.options import PATHS
from trivium.cli.screen import only_text
from trivium.config.options import ModelsConfig, ServerConfig
from trivium.types.errors import ServeError


@click.command("check")
@PATHS
@click.option(
    "--model-config-name", default="", help="Configuration to prefer in a Triton model's folder configs."
)
def command(paths: tuple[Path, ...], model_config_name: str) -> None:
    """Explain model folders and files without serving them; exit status 1 if one cannot be served."""
    try:
        config = ServerConfig(models=ModelsConfig(config_name=model_config_name))
        specs, unreadable = asyncio.run(app.examine(paths, config))
    except ServeError as error:
        raise click.ClickException(error.message) from error
    if not print_check(only_text(Console()), specs, unreadable):
        raise SystemExit(1)
