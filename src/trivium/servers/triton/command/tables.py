"""The tables that `tritonserver` prints before it opens its ports: agents, backends, models, options.

Pure: rows in, text out, as the original draws them (spec sheet `triton`, section 1.2). Scripts read them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from trivium.servers.triton.words.text_forms import FAILURES
from trivium.types.operations import VersionStatus
from trivium.types.state import VersionState

Row = Sequence[str]


def table(headings: Row, rows: Iterable[Row]) -> str:
    """Columns as wide as their widest line; a cell of several lines goes on below. Ends with a line end."""
    cells = [[cell.rstrip("\n").split("\n") for cell in row] for row in (headings, *rows)]
    widths = [max(len(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]
    border = "".join(f"+{'-' * (width + 2)}" for width in widths) + "+"
    drawn = [_lines(row, widths) for row in cells]
    body = [line for lines in drawn[1:] for line in lines]
    return "\n".join([border, *drawn[0], border, *body, border]) + "\n"


def _lines(row: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    return [
        "".join(f"| {text.ljust(width)} " for text, width in zip(line, widths, strict=True)) + "|"
        for line in zip_longest(*row, fillvalue="")
    ]


def agents_table() -> str:
    """There are none."""
    return table(("Repository Agent", "Path"), ())


def backends_table(paths: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Backends that models use, where each is, and the settings that all have."""
    config = json.dumps({"cmdline": settings}, separators=(",", ":"))
    return table(
        ("Backend", "Path", "Config"), [(name, path, config) for name, path in sorted(paths.items())]
    )


def models_table(versions: Iterable[VersionStatus]) -> str:
    """A row per version that was to be loaded."""
    rows = [
        (row.model, row.version, "READY" if row.state is VersionState.READY else unavailable(row.reason))
        for row in versions
        if row.state is not VersionState.REGISTERED
    ]
    return table(("Model", "Version", "Status"), rows)


def options_table(options: Iterable[tuple[str, str]]) -> str:
    """Return the table of the options that the server was given."""
    return table(("Option", "Value"), options)


def unavailable(reason: str) -> str:
    """Why a version does not serve, in a table."""
    return f"UNAVAILABLE: {with_code(reason)}"


def with_code(reason: str) -> str:
    """A reason with the kind of failure in front; where nothing says which, it is the server's."""
    return reason if reason.partition(":")[0] in FAILURES else f"Internal: {reason}"
