"""`trivium deploy PATH --to TARGET`: writes what a cluster needs to serve a folder, and applies nothing."""

import asyncio
import re
from pathlib import Path

import click
from rich.console import Console

from trivium.cli.deploy_files import TARGETS
from trivium.cli.deployment import default_image, deployment_of
from trivium.cli.findings import print_model
from trivium.commands.visible_console import only_text
from trivium.config.options import ModelsConfig, ServerConfig
from trivium.examination import Examination
from trivium.model_catalogue import MODELS
from trivium.types.errors import said_by
from trivium.types.spec import InvalidModel, ModelSpec

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")


def _judged_image(context: click.Context, option: click.Parameter, value: str) -> str:
    if value and not _IMAGE.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is no name of an image; write it like registry.example/trivium:0.1-cpu."
        )
    return value


@click.command("deploy")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--to", "target", required=True, type=click.Choice(list(TARGETS)), help="What the files are for."
)
@click.option(
    "-o", "--output", default=".", type=click.Path(path_type=Path, file_okay=False), help="Folder for them."
)
@click.option(
    "--image",
    default="",
    callback=_judged_image,
    help=f"Image to start, in place of {default_image(0)}, or -cuda with GPUs.",
)
@click.option("--name", default="", help="Name of the objects, in place of the model's or folder's.")
@click.option(
    "--gpus",
    type=click.IntRange(0, 64),
    default=None,
    help="GPUs of the machines that will serve it, where this one has others.",
)
@click.option(
    "--engine-parameters",
    default="",
    envvar="TRIVIUM_ENGINE_PARAMETERS",
    help="Parameters of engines for models without a configuration, as for `trivium serve`.",
)
def command(  # noqa: PLR0913 - an argument per option
    path: Path, target: str, output: Path, image: str, name: str, gpus: int | None, engine_parameters: str
) -> None:
    """Write manifests that serve PATH on KServe, by Helm, Compose or Ray, for a person to read and apply.

    PATH is read as `trivium check` reads it; where something in it cannot be served nothing is written. No file that is
    there is changed.
    """
    if not path.exists():
        raise click.ClickException(f"There is no {path}. Name the folder or file that shall be served.")
    config = ServerConfig(models=ModelsConfig(engine_parameters=engine_parameters))
    models = asyncio.run(_read(path, config, gpus))
    specs = [model for model in models if isinstance(model, ModelSpec)]
    console = only_text(Console())
    for model in models:
        if isinstance(model, InvalidModel):
            print_model(console, model)
    if len(specs) < len(models) or not specs:
        raise click.ClickException(
            "Nothing is written: not all of it can be served. Correct it first; with --gpus N it is read as on a "
            "machine that has N."
        )
    made = TARGETS[target](deployment_of(path, specs, image, name, engine_parameters))
    _write(output, made)
    for file in made:
        click.echo(output / file)


async def _read(path: Path, config: ServerConfig, gpus: int | None) -> list[ModelSpec | InvalidModel]:
    async with Examination(MODELS, config, gpus=gpus) as examination:
        examination.add(path)
        return [model async for model in examination.models()]


def _write(folder: Path, made: dict[str, str]) -> None:
    there = [name for name in made if (folder / name).exists()]
    if there:
        raise click.ClickException(
            f"{folder / there[0]} is there already, and is not changed. Remove it, or name another folder by -o."
        )
    try:
        written = {name: text.encode() for name, text in made.items()}
    except UnicodeEncodeError as error:
        raise click.ClickException(
            "A name in the folder is not UTF-8, which manifests are. Rename that file, or the folder."
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in written.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"{folder}: {said_by(error)}. Name a folder to write to by -o.") from error
