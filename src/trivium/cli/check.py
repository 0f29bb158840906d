"""`trivium check PATH...`: what would be served, where each value comes from, and what stands in the way."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import click
from rich.console import Console

from trivium import app
from trivium.cli.djl_serving.checking import CheckedConfig, check_config
from trivium.cli.findings import print_check, print_file
from trivium.cli.options import LOCATED
from trivium.cli.screen import only_text
from trivium.config.options import OPTIONS, ModelsConfig, ServerConfig
from trivium.dialects.djl.layers import from_environment
from trivium.formats.djl.environment import environment_rules
from trivium.formats.djl.repository import DjlFormat
from trivium.types.errors import ServeError
from trivium.types.sources import Place, SourceSetting


@click.command("check")
@click.argument("paths", nargs=-1, type=LOCATED)
@click.option(
    "--model-config-name", default="", help="Configuration to prefer in a Triton model's folder configs."
)
@click.option(
    "--fetch-from",
    default="",
    envvar=OPTIONS["fetch_from"].variable,
    help="Places that models may be fetched from, as for `trivium serve`.",
)
@click.option(
    "--engine-parameters",
    default="",
    envvar=OPTIONS["engine_parameters"].variable,
    help="Parameters of engines for models without a configuration, as for `trivium serve`.",
)
@click.option(
    "--djl-config",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Configuration of DJL Serving (config.properties) to check, and to read DJL models under.",
)
def command(
    paths: tuple[Place, ...],
    model_config_name: str,
    fetch_from: str,
    engine_parameters: str,
    djl_config: Path | None,
) -> None:
    """Explain model folders and files without serving them; exit status 1 if one cannot be served."""
    if not paths and djl_config is None:
        raise click.UsageError("Missing argument 'PATHS...', or --djl-config FILE.")
    console = only_text(Console())
    is_servable = True
    under: Mapping[str, SourceSetting] = {}
    try:
        if djl_config is not None:
            checked: CheckedConfig = check_config(djl_config, os.environ)
            print_file(console, djl_config, checked.findings)
            is_servable, under = checked.is_servable, checked.under
        if paths:
            models = ModelsConfig(
                config_name=model_config_name, fetch_from=fetch_from, engine_parameters=engine_parameters
            )
            config = ServerConfig(models=models)
            formats = app.FORMATS
            if under:
                form = DjlFormat({**under, **from_environment(os.environ)}, environment_rules(os.environ))
                formats = [form if isinstance(each, DjlFormat) else each for each in formats]
            specs, unreadable = asyncio.run(app.examine(paths, config, formats))
            is_servable = print_check(console, specs, unreadable) and is_servable
    except ServeError as error:
        raise click.ClickException(error.message) from error
    if not is_servable:
        raise SystemExit(1)
