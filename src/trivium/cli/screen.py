"""The screen of a server: a progress line while models load, then a table, or a block for each of them."""

import contextlib
import time
from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.status import Status
from rich.table import Table
from rich.text import Text

from trivium.cli.fetch_screen import FetchScreen
from trivium.codecs.visible_text import visible
from trivium.commands.process import logs_above
from trivium.commands.visible_console import print_sentence
from trivium.fetchers.reports import REPORTS
from trivium.types.operations import Listing, VersionStatus
from trivium.types.spec import ModelSpec, TensorSpec
from trivium.types.state import VersionState

_ANY_WIDTH = 100_000
_COLOURS = {VersionState.READY: "green", VersionState.FAILED: "red", VersionState.LOADING: "yellow"}


class Progress:
    """The line while models load. On a screen it is one line; in a log, one line per model. One that `lasts` has a line
    per model for what is loaded after the start, too.
    """

    def __init__(self, console: Console, lasts: bool = False) -> None:
        self._console = console
        self._lasts = lasts
        self._loading: dict[tuple[str, str], float] = {}  # since when, in seconds of the monotonic clock
        self._status = Status("reading models", console=console)
        self._is_over = False
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Progress":
        self._open.enter_context(self._status)
        self._open.enter_context(logs_above(self._console))
        self._open.enter_context(REPORTS.shown_by(FetchScreen(self._console, self._status)))
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()
        self._is_over = True

    def __call__(self, status: VersionStatus) -> None:
        """Show that a version changed its state."""
        if self._is_over and not self._lasts:
            return
        key = (status.model, status.version)
        if status.state is VersionState.LOADING:
            self._loading[key] = time.monotonic()
        else:
            since = self._loading.pop(key, None)
            took = "" if since is None else f" ({time.monotonic() - since:.1f} s)"
            print_sentence(self._console, state_line(status, took))
        if self._is_over:
            return
        names = ", ".join(f"{model} {version}" for model, version in self._loading)
        self._status.update(Text(visible(f"loading {names}") if names else ""))


_MOST_TENSORS = 12
"""Inputs, or outputs, of a model that are shown."""


def _name(status: VersionStatus) -> str:
    return f"{status.model} version {status.version}" if status.version else status.model


def state_line(status: VersionStatus, took: str = "") -> Text:
    """Return the sentence that says how a version is, and why."""
    text = Text.assemble(f"{_name(status)}: ", (status.state.value, _COLOURS.get(status.state, "")), took)
    return text.append(f" - {status.reason}") if status.reason else text


def models_screen(listing: Listing, specs: Sequence[ModelSpec], console: Console) -> Iterator[RenderableType]:
    """Give the table of models; where that is wider than the screen, a block for each of them. Behind it stands what
    memory a model may take, where its engine tells.
    """
    by_version = {(spec.name, spec.version): spec for spec in specs}
    rows = [(row, by_version.get((row.model, row.version))) for row in listing.versions]
    table = _table(rows)
    whole = console.options.update(max_width=_ANY_WIDTH)
    if Measurement.get(console, whole, table).maximum <= console.width:
        yield table
    else:
        for row, spec in rows:
            yield from _block(row, spec)
    for row, spec in rows:
        if spec is not None and row.state is VersionState.READY and (memory := spec.details.get("memory")):
            yield Text(f"{_name(row)}: memory {memory}")


def _block(row: VersionStatus, spec: ModelSpec | None) -> Iterator[Text]:
    yield Text.assemble(f"{_name(row)}: ", _state(row))
    if spec is None:
        return
    yield Text(f"  engine  {spec.engine}")
    for label, tensors in (("input", spec.inputs), ("output", spec.outputs)):
        for line in _lines(spec, tensors):
            yield Text(f"  {label:6}  {line}")


def _table(rows: Sequence[tuple[VersionStatus, ModelSpec | None]]) -> Table:
    table = Table()
    for heading in ("model", "version", "state", "engine", "inputs", "outputs"):
        table.add_column(heading, no_wrap=True, overflow="ignore")
    for row, spec in rows:
        about = (
            (spec.engine, _tensors(spec, spec.inputs), _tensors(spec, spec.outputs)) if spec else ("", "", "")
        )
        table.add_row(Text(row.model), Text(row.version), _state(row), *(Text(text) for text in about))
    return table


def _state(row: VersionStatus) -> Text:
    return Text(row.state.value, style=_COLOURS.get(row.state, ""))


def _tensors(spec: ModelSpec, tensors: Sequence[TensorSpec]) -> str:
    return "\n".join(_lines(spec, tensors))


def _lines(spec: ModelSpec, tensors: Sequence[TensorSpec]) -> list[str]:
    """Return a line per tensor, of a table with many columns for the first of them."""
    lines = [f"{one.name} {one.kind(spec.batching.batch_axis)}" for one in tensors[:_MOST_TENSORS]]
    more = len(tensors) - len(lines)
    return [*lines, f"and {more} more: `trivium check --all` lists them"] if more else lines
