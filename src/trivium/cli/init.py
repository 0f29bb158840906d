"""`trivium init DIR --template NAME`: makes a small project that runs, with a test and a Dockerfile."""

from pathlib import Path

import click

from trivium.demo.projects import TEMPLATES, write_project
from trivium.types.errors import said_by


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--template",
    "name",
    type=click.Choice(list(TEMPLATES)),
    default="handler",
    show_default=True,
    help="What the project serves: "
    + ", ".join(f"{name} ({one.about})" for name, one in TEMPLATES.items())
    + ".",
)
def command(folder: Path, name: str) -> None:
    """Make a project in DIR, which is new or empty: a model or handler, a test, a README with four commands, a
    Dockerfile.
    """
    try:
        files = write_project(folder, name)
    except OSError as error:
        raise click.ClickException(
            f"{folder}: {said_by(error)}. Name a folder that is not there yet, or an empty one."
        ) from error
    for one in files:
        click.echo(folder / one)
    click.echo(
        f"\nNext: cd {folder}, and what README.md says: install, pytest, trivium serve {TEMPLATES[name].serves}"
    )
