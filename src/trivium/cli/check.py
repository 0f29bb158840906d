"""`trivium check PATH...`: what would be served, where each value comes from, and what stands in the way."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from trivium import app
from trivium.catalogue import CATALOGUE
from trivium.cli.findings import print_check, print_file, print_values
from trivium.cli.foreign_configuration import reader_of
from trivium.cli.options import LOCATED
from trivium.commands.visible_console import only_text
from trivium.config.options import ModelsConfig, ServerConfig
from trivium.servers.djl.command.checking import CheckedConfig, check_config
from trivium.servers.djl.folder.environment import environment_rules
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.servers.djl.words.layers import from_environment
from trivium.servers.torchserve.command.checking import check_properties, examine_startup
from trivium.servers.torchserve.command.options import Refused
from trivium.types.errors import ServeError
from trivium.types.interfaces import Format
from trivium.types.sources import Place, SourceSetting


@click.command("check")
@click.argument("paths", nargs=-1, type=LOCATED)
@click.option(
    "--model-config-name", default="", help="Configuration to prefer in a Triton model's folder configs."
)
@click.option(
    "--fetch-from",
    default="",
    envvar=CATALOGUE.schema.options["fetch_from"].variable,
    help="Places that models may be fetched from, as for `trivium serve`.",
)
@click.option(
    "--engine-parameters",
    default="",
    envvar=CATALOGUE.schema.options["engine_parameters"].variable,
    help="Parameters of engines for models without a configuration, as for `trivium serve`.",
)
@click.option(
    "--djl-config",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Configuration of DJL Serving (config.properties) to check, and to read DJL models under.",
)
@click.option(
    "--ts-config",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Configuration of TorchServe (config.properties) to check, with the models that it names, and to read "
    "TorchServe's models under.",
)
@click.option(
    "--model-store",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="With --ts-config: the model store that the server would be started with.",
)
def command(  # noqa: PLR0913 - an argument per option
    paths: tuple[Place, ...],
    model_config_name: str,
    fetch_from: str,
    engine_parameters: str,
    djl_config: Path | None,
    ts_config: Path | None,
    model_store: str | None,
) -> None:
    """Explain model folders and files without serving them; exit status 1 if one cannot be served."""
    if not paths and djl_config is None and ts_config is None:
        raise click.UsageError("Missing argument 'PATHS...', or --djl-config FILE, or --ts-config FILE.")
    if model_store and ts_config is None:
        raise click.UsageError("--model-store goes with --ts-config FILE. Give both, or the folder as PATH.")
    console = only_text(Console())
    models = ModelsConfig(
        config_name=model_config_name, fetch_from=fetch_from, engine_parameters=engine_parameters
    )
    try:
        if ts_config is not None:
            is_servable = _check_torchserve(console, ts_config, model_store or "", paths, models)
        else:
            is_servable = _check_djl(console, djl_config, paths, models)
    except Refused as error:
        raise click.ClickException(error.message) from error
    except ServeError as error:
        hints = filter(None, map(reader_of, paths))
        raise click.ClickException(" ".join((error.message, *hints))) from error
    if not is_servable:
        raise SystemExit(1)


def _check_djl(
    console: Console, djl_config: Path | None, paths: tuple[Place, ...], models: ModelsConfig
) -> bool:
    """Print a configuration of DJL's, if there is one, and the models in the paths; True if all can be served."""
    is_servable = True
    under: Mapping[str, SourceSetting] = {}
    if djl_config is not None:
        checked: CheckedConfig = check_config(CATALOGUE, djl_config, os.environ)
        print_file(console, djl_config, checked.findings)
        is_servable, under = checked.is_servable, checked.under
    formats = CATALOGUE.formats
    if under:
        form = DjlFormat({**under, **from_environment(os.environ)}, environment_rules(os.environ))
        formats = [form if isinstance(each, DjlFormat) else each for each in formats]
    return _check_paths(console, paths, models, formats) and is_servable


def _check_torchserve(
    console: Console, file: Path, store: str, paths: tuple[Place, ...], models: ModelsConfig
) -> bool:
    """Print a configuration of TorchServe's, the models that it names, and those in the paths."""
    checked = check_properties(CATALOGUE, file, store, os.environ)
    print_file(console, file, checked.findings)
    print_values(console, ("property", "value", "from where"), checked.values)
    is_servable = checked.is_servable
    if checked.settings is not None:
        installs = checked.settings.loaded.config.models.install_packages
        models = replace(models, install_packages=installs)
    if checked.settings is not None and checked.settings.startup.models:
        places = checked.settings.loaded.config.models.fetch_from
        config = ServerConfig(models=replace(models, fetch_from=models.fetch_from or places))
        is_servable = print_check(console, *asyncio.run(examine_startup(checked, config))) and is_servable
    return _check_paths(console, paths, models, checked.formats(CATALOGUE.formats)) and is_servable


def _check_paths(
    console: Console, paths: tuple[Place, ...], models: ModelsConfig, formats: Sequence[Format]
) -> bool:
    if not paths:
        return True
    return print_check(
        console, *asyncio.run(app.examine(CATALOGUE, paths, ServerConfig(models=models), formats))
    )
