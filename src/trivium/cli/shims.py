"""`trivium shims NAME`: where the modules lie that handlers of other servers import, for tests without a server.

Prints; nothing is installed, and no package of the same name is touched.
"""

from collections.abc import Mapping
from pathlib import Path

import click

import trivium_worker

SHIMS = Path(trivium_worker.__path__[0]) / "shims"
FOLDERS: Mapping[str, str] = {"torchserve": "ts"}
"""What may be asked for: the package that the folder of that name has."""


@click.command("shims")
@click.argument("name", metavar="NAME", type=click.Choice([*FOLDERS]))
def command(name: str) -> None:
    """Print the folder to put on the PYTHONPATH of tests that import `ts`.

    PYTHONPATH=$(trivium shims torchserve) pytest. It goes before an installed package of that name, which stays as it
    is.
    """
    click.echo(SHIMS / name)
