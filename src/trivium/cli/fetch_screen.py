"""Shows a long fetch: a bar on a terminal, and a line now and then elsewhere."""

import time

from rich.console import Console
from rich.status import Status
from rich.text import Text

from trivium.codecs.visible_text import visible
from trivium.commands.visible_console import print_sentence
from trivium.fetchers.reports import FetchReport, in_words

_CELLS = 24
_SECONDS = 10.0
"""Between two lines about one fetch."""


def bar(report: FetchReport) -> Text:
    """Return a bar with how much of a model has come."""
    full = _CELLS * report.done // report.total if report.total else _CELLS
    return Text.assemble(
        "fetching ", ("━" * full, "green"), ("─" * (_CELLS - full), "dim"), f" {visible(in_words(report))}"
    )


class FetchScreen:
    """Shows reports on a console: in its line that is kept up to date, or as lines where nobody could see that."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console = console
        self._status = status
        self._said_at: dict[str, float] = {}

    def __call__(self, report: FetchReport) -> None:
        """Show how much has come."""
        now = time.monotonic()
        if self._console.is_terminal:
            self._status.update(bar(report))
        elif report.total and now - self._said_at.get(report.name, -_SECONDS) >= _SECONDS:
            self._said_at[report.name] = now
            print_sentence(self._console, Text(f"fetching {visible(in_words(report))}"))
