"""The screen of a server: a progress line while models load, then a table."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from trivium.codecs.visible_text import visible
from trivium.types.operations import Listing, VersionStatus
from trivium.types.spec import ModelSpec, TensorSpec
from trivium.types.state import VersionState

_COLOURS = {VersionState.READY: "green", VersionState.FAILED: "red", VersionState.LOADING: "yellow"}


class Progress:
    """The line while models load. On a screen it is one line; in a log, one line per model."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._loading: dict[tuple[str, str], float] = {}  # since when, in seconds of the monotonic clock
        self._status = Status("reading models", console=console)
        self._is_over = False

    def __enter__(self) -> "Progress":
        self._status.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._status.stop()
        self._is_over = True

    def __call__(self, status: VersionStatus) -> None:
        """Show that a version changed its state, as long as the server is starting."""
        if self._is_over:
            return
        key = (status.model, status.version)
        if status.state is VersionState.LOADING:
            self._loading[key] = time.monotonic()
        else:
            since = self._loading.pop(key, None)
            took = "" if since is None else f" ({time.monotonic() - since:.1f} s)"
            self._console.print(_line(status, took), soft_wrap=True)
        names = ", ".join(f"{model} {version}" for model, version in self._loading)
        self._status.update(Text(visible(f"loading {names}") if names else ""))


def _line(status: VersionStatus, took: str) -> Text:
    name = f"{status.model} version {status.version}" if status.version else status.model
    text = Text.assemble(f"{name}: ", (status.state.value, _COLOURS.get(status.state, "")), took)
    return text.append(f" - {status.reason}") if status.reason else text


def table_of_models(listing: Listing, specs: Sequence[ModelSpec]) -> Table:
    """Return the table of models."""
    by_version = {(spec.name, spec.version): spec for spec in specs}
    table = Table()
    for heading in ("model", "version", "state", "engine", "inputs", "outputs"):
        table.add_column(heading, overflow="fold")
    for row in listing.versions:
        spec = by_version.get((row.model, row.version))
        state = Text(row.state.value, style=_COLOURS.get(row.state, ""))
        about = (
            (spec.engine, _tensors(spec, spec.inputs), _tensors(spec, spec.outputs)) if spec else ("", "", "")
        )
        table.add_row(Text(row.model), Text(row.version), state, *(Text(text) for text in about))
    return table


def _tensors(spec: ModelSpec, tensors: Sequence[TensorSpec]) -> str:
    return "\n".join(f"{tensor.name} {tensor.kind(spec.batching.batch_axis)}" for tensor in tensors)
