"""What a long fetch looks like: a bar on a terminal, and a line now and then elsewhere."""

from rich.text import Text

from trivium.codecs.visible_text import visible
from trivium.fetchers.reports import FetchReport, in_words

_CELLS = 24


def bar(report: FetchReport) -> Text:
    """Return a bar with how much of a model has come."""
    full = _CELLS * report.done // report.total if report.total else _CELLS
    return Text.assemble(
        "fetching ", ("━" * full, "green"), ("─" * (_CELLS - full), "dim"), f" {visible(in_words(report))}"
    )
