"""`trivium check PATH...`: what would be served, where each value comes from, and what stands in the way."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from trivium.cli.findings import print_file, print_model, print_values
from trivium.cli.foreign_configuration import reader_of
from trivium.cli.located import LOCATED
from trivium.commands.visible_console import only_text
from trivium.config.options import ModelsConfig, ServerConfig, WorkersConfig
from trivium.config.schema import ConfigSchema
from trivium.examination import Examination
from trivium.model_catalogue import MODELS
from trivium.types.errors import ServeError
from trivium.types.interfaces import Format
from trivium.types.sources import Place
from trivium.types.spec import InvalidModel, ModelSpec
from trivium.types.text_engines import WORDS as TEXT_ENGINES

_SCHEMA = ConfigSchema({}, {"native": ""})
"""The options that every server has. What checks the file of a server is imported where there is one: all of a server
comes with it.
"""


@click.command("check")
@click.argument("paths", nargs=-1, type=LOCATED)
@click.option(
    "--model-config-name", default="", help="Configuration to prefer in a Triton model's folder configs."
)
@click.option(
    "--fetch-from",
    default="",
    envvar=_SCHEMA.options["fetch_from"].variable,
    help="Places that models may be fetched from, as for `trivium serve`.",
)
@click.option(
    "--engine-parameters",
    default="",
    envvar=_SCHEMA.options["engine_parameters"].variable,
    help="Parameters of engines for models without a configuration, as for `trivium serve`.",
)
@click.option(
    "--text-engine",
    default=ModelsConfig().text_engine,
    envvar=_SCHEMA.options["text_engine"].variable,
    type=click.Choice(tuple(TEXT_ENGINES)),
    help="Who generates text with a Hugging Face folder or a .gguf file, as for `trivium serve`.",
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
@click.option(
    "--all", "shows_all", is_flag=True, help="List every value of a model, with where it comes from."
)
@click.option(
    "--run",
    "runs",
    is_flag=True,
    help="Run once, on zeros, each model that a server would open in its own process, as it does before that; "
    "of ONNX models say which provider computes how much.",
)
@click.option(
    "--startup-timeout",
    type=float,
    default=WorkersConfig().startup_timeout,
    envvar=_SCHEMA.options["startup_timeout"].variable,
    help="Seconds that such a run may take, as for `trivium serve`.",
)
def command(  # noqa: PLR0913 - an argument per option
    paths: tuple[Place, ...],
    model_config_name: str,
    fetch_from: str,
    engine_parameters: str,
    text_engine: str,
    djl_config: Path | None,
    ts_config: Path | None,
    model_store: str | None,
    shows_all: bool,
    runs: bool,
    startup_timeout: float,
) -> None:
    """Explain model folders and files without serving them; exit status 1 if one cannot be served."""
    if not paths and djl_config is None and ts_config is None:
        raise click.UsageError("Missing argument 'PATHS...', or --djl-config FILE, or --ts-config FILE.")
    if model_store and ts_config is None:
        raise click.UsageError("--model-store goes with --ts-config FILE. Give both, or the folder as PATH.")
    models = ModelsConfig(
        config_name=model_config_name,
        fetch_from=fetch_from,
        engine_parameters=engine_parameters,
        text_engine=text_engine,
    )
    config = ServerConfig(models=models, workers=WorkersConfig(startup_timeout=startup_timeout))
    check = _Check(only_text(Console()), config, shows_all, runs)
    try:
        if ts_config is not None:
            check.torchserve(ts_config, model_store or "", paths)
        elif djl_config is not None:
            check.djl(djl_config, paths)
        else:
            check.paths(paths, MODELS.formats)
    except ServeError as error:
        hints = filter(None, map(reader_of, paths))
        raise click.ClickException(" ".join((error.message, *hints))) from error
    if not check.is_servable:
        raise SystemExit(1)


class _Check:
    """One call of the command: prints each thing as soon as it is known, and keeps whether all can be served."""

    def __init__(self, console: Console, config: ServerConfig, shows_all: bool, runs: bool) -> None:
        self._console = console
        self._config = config
        self._shows_all = shows_all
        self._runs = runs
        self.is_servable = True

    def paths(self, paths: Sequence[Place], formats: Sequence[Format]) -> None:
        """Check the models in the paths."""
        if paths:
            asyncio.run(self._examine(paths, formats))

    async def _examine(self, paths: Sequence[Place], formats: Sequence[Format]) -> None:
        async with Examination(MODELS, self._config, formats, runs=self._runs) as examination:
            for path in paths:
                examination.add(path)
            await self._show(examination.models())

    async def _show(self, models: AsyncIterator[ModelSpec | InvalidModel]) -> None:
        async for model in models:
            self.is_servable = print_model(self._console, model, self._shows_all) and self.is_servable

    def djl(self, file: Path, paths: Sequence[Place]) -> None:
        """Check a configuration of DJL's, and under it the models in the paths."""
        from trivium.catalogue import CATALOGUE
        from trivium.servers.djl.command.checking import check_config
        from trivium.servers.djl.folder.environment import environment_rules
        from trivium.servers.djl.folder.repository import DjlFormat
        from trivium.servers.djl.words.layers import from_environment

        checked = check_config(CATALOGUE, file, os.environ)
        print_file(self._console, file, checked.findings)
        self.is_servable = checked.is_servable
        formats = MODELS.formats
        if checked.under:
            form = DjlFormat({**checked.under, **from_environment(os.environ)}, environment_rules(os.environ))
            formats = [form if isinstance(each, DjlFormat) else each for each in formats]
        self.paths(paths, formats)

    def torchserve(self, file: Path, store: str, paths: Sequence[Place]) -> None:
        """Check a configuration of TorchServe's, the models that it names, and those in the paths."""
        from trivium.catalogue import CATALOGUE
        from trivium.servers.torchserve.command.checking import check_properties, examine_startup
        from trivium.servers.torchserve.command.options import Refused

        try:
            checked = check_properties(CATALOGUE, file, store, os.environ)
        except Refused as error:
            raise click.ClickException(error.message) from error
        print_file(self._console, file, checked.findings)
        print_values(self._console, ("property", "value", "from where"), checked.values)
        self.is_servable = checked.is_servable
        if checked.settings is not None:
            installs = checked.settings.loaded.config.models.install_packages
            models = replace(self._config.models, install_packages=installs)
            self._config = replace(self._config, models=models)
        if checked.settings is not None and checked.settings.startup.models:
            places = self._config.models.fetch_from or checked.settings.loaded.config.models.fetch_from
            models = replace(self._config.models, fetch_from=places)
            asyncio.run(self._show(examine_startup(checked, replace(self._config, models=models))))
        self.paths(paths, checked.formats(MODELS.formats))
