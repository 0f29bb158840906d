"""`trivium pull NAME`: fetches a model of the Hugging Face hub into the cache, to be served later, perhaps offline."""

import contextlib
import time

import click
from rich.console import Console
from rich.status import Status

from trivium.cli.fetch_screen import bar
from trivium.cli.located import hub_model
from trivium.commands.visible_console import only_text
from trivium.fetchers.hub import FETCHER
from trivium.fetchers.hub_policy import in_bytes
from trivium.fetchers.reports import REPORTS, FetchReport, in_words
from trivium.types.fetching import FetchBounds

_SECONDS = 10.0
"""Between two lines where there is no terminal."""


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
    came = _Came(console)
    with came, REPORTS.shown_by(came.show):
        folder, files = FETCHER.download(model, FetchBounds(is_named=True, with_code=trust_remote_code))
    size = sum((folder / file).stat().st_size for file in files)
    click.echo(f"{model}: {len(files)} files, {in_bytes(size)}, in {folder}")


class _Came:
    """Shows reports until the model is there."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._open = contextlib.ExitStack()
        self._status: Status | None = None
        self._said_at = float("-inf")

    def __enter__(self) -> None:
        if self._console.is_terminal:
            self._status = self._open.enter_context(Status("asking the hub", console=self._console))

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    def show(self, report: FetchReport) -> None:
        """Show how much has come."""
        if self._status is not None:
            self._status.update(bar(report))
        elif report.total and time.monotonic() - self._said_at >= _SECONDS:
            self._said_at = time.monotonic()
            self._console.print(in_words(report), markup=False, highlight=False, soft_wrap=True)
