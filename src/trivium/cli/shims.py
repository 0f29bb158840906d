"""`trivium shims NAME`: prints what people need without the server, to test and to pack handlers of another one.

Nothing is installed, and no package of the same name is touched.
"""

from pathlib import Path

import click

import trivium_worker
from trivium.servers.torchserve.words import llm_api_file

_PRINTED = {
    "torchserve": str(Path(trivium_worker.__path__[0]) / "shims" / "torchserve"),
    "llm_api": llm_api_file.TEXT.rstrip(),
}
"""What is printed for each name: a folder, a file's text."""


@click.command("shims")
@click.argument("name", metavar="NAME", type=click.Choice([*_PRINTED]))
def command(name: str) -> None:
    """Print the folder with TorchServe's module `ts` (NAME torchserve), or a file for the handler llm_api.

    `PYTHONPATH=$(trivium shims torchserve) pytest` tests handlers without a server; an installed `ts` stays as it is.
    `trivium shims llm_api > llm_api.py` gives torch-model-archiver the file that it wants for a handler that is built
    in.
    """
    click.echo(_PRINTED[name])
