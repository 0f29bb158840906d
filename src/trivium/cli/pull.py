"""`trivium pull NAME`: fetches a model of the Hugging Face hub into the cache, to be served later, perhaps offline."""

import click
from rich.console import Console
from rich.status import Status

from trivium.cli.fetch_screen import FetchScreen
from trivium.cli.located import hub_model
from trivium.commands.visible_console import only_text
from trivium.fetchers.hub import FETCHER
from trivium.fetchers.hub_policy import in_bytes
from trivium.fetchers.reports import REPORTS
from trivium.types.fetching import FetchBounds


@click.command("pull")
@click.argument("name", metavar="ORG/MODEL[:FILE][@REVISION]")
@click.option(
    "--trust-remote-code", is_flag=True, help="Fetch the model's Python files, too; nothing runs here."
)
def command(name: str, trust_remote_code: bool) -> None:
    """Fetch a model of the Hugging Face hub into the cache that all its programs share (HF_HOME).

    Only safetensors, GGUF, JSON and files of tokenizers are fetched. HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE hold as
    for the hub's own programs. A fetch that was cut off goes on with the files that it lacks.
    """
    model = hub_model(name)
    console = only_text(Console(stderr=True))
    status = Status("asking the hub", console=console)
    with status, REPORTS.shown_by(FetchScreen(console, status)):
        folder, files = FETCHER.download(model, FetchBounds(is_named=True, with_code=trust_remote_code))
    size = sum((folder / file).stat().st_size for file in files)
    click.echo(f"{model}: {len(files)} files, {in_bytes(size)}, in {folder}")
