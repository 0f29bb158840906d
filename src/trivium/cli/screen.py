"""The screen of a server: a progress line while models load, then a table and requests to paste."""

import json
import math
import shlex
from collections.abc import Sequence
from urllib.parse import quote

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from trivium.catalogue import TRANSLATORS
from trivium.codecs.visible_text import visible
from trivium.types.datatype import DataType
from trivium.types.operations import Listing, VersionStatus
from trivium.types.spec import ModelSpec, TensorSpec, TranslatorSpec
from trivium.types.state import VersionState

LONGEST_DATA = 256
"""Elements of an example request; a model that takes more gets no line to paste."""

_BY_PREDICTION = ("djl", "torchserve", "torchserve-command")
_FILE, _OWN_FILE = " -T FILE", ", with your own for FILE"
_JSON, _ACCEPT = " -H 'Content-Type: application/json'", " -H 'Accept: application/json'"
_NEXT = (
    "Next: paste a request into another terminal{file}; `trivium check PATH` explains how a model is served, "
    "`trivium serve --help` what can be set."
)
_COLOURS = {VersionState.READY: "green", VersionState.FAILED: "red", VersionState.LOADING: "yellow"}


class Progress:
    """The line while models load. On a screen it is one line; in a log, one line per model."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._loading: dict[tuple[str, str], None] = {}
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
            self._loading[key] = None
        else:
            self._loading.pop(key, None)
            self._console.print(_line(status), soft_wrap=True)
        names = ", ".join(f"{model} {version}" for model, version in self._loading)
        self._status.update(Text(visible(f"loading {names}") if names else ""))


def _line(status: VersionStatus) -> Text:
    name = f"{status.model} version {status.version}" if status.version else status.model
    text = Text.assemble(f"{name}: ", (status.state.value, _COLOURS.get(status.state, "")))
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


def print_requests(console: Console, url: str, specs: Sequence[ModelSpec], profile: str) -> None:
    """Print a request per model that a client of this profile would send, and what to do next."""
    requests = [example_request(spec, url, profile) for spec in specs]
    if profile in _BY_PREDICTION and len(specs) == 1:  # the route that needs no name
        requests.append(_prediction(specs[0], f"{url}/invocations", " -X POST"))
    for request in requests:
        console.print(request, soft_wrap=True, markup=False)
    with_file = any(_FILE in request for request in requests)
    console.print(_NEXT.format(file=_OWN_FILE if with_file else ""), soft_wrap=True, markup=False)


def example_request(spec: ModelSpec, url: str, profile: str) -> str:
    """Make a curl command for one model: an inference on invented data or on a file, or a look at its metadata.

    Clients of `djl` and `torchserve` ask at /predictions, all others by the v2 protocol, unless a model declares no
    inputs and takes files alone; the profile `triton` has no route for those.
    """
    name = quote(spec.name, safe="")
    if spec.translator is not None and profile != "triton":
        return _translated(spec.translator, f"{url}/predictions/{name}")
    if profile in _BY_PREDICTION or not (spec.inputs or profile == "triton"):
        return _prediction(spec, f"{url}/predictions/{name}")
    body = _body(spec)
    return f"curl -s {url}/v2/models/{name}" + (f"/infer -d {body}" if body else "")


def _translated(translator: TranslatorSpec, route: str) -> str:
    """Make a command with what a model's translator takes."""
    kind = TRANSLATORS.get(translator.name)
    body = shlex.quote(kind.example) if kind is not None and kind.example else ""
    return f"curl -s{_JSON} {route} -d {body}" if body else f"curl -s{_FILE} {route}"


def _prediction(spec: ModelSpec, route: str, method: str = "") -> str:
    body = _body(spec)
    accept = _ACCEPT if spec.inputs else ""  # tensors in a form that a terminal shows
    return f"curl -s{_JSON}{accept} {route} -d {body}" if body else f"curl -s{method}{accept}{_FILE} {route}"


def _body(spec: ModelSpec) -> str:
    """Invented inputs as a word of the shell; empty where there are none or they would fill more than a screen."""
    inputs = [_example(spec, tensor) for tensor in spec.inputs if not tensor.optional]
    if not inputs or None in inputs:
        return ""
    return shlex.quote(json.dumps({"inputs": inputs}, separators=(",", ":")))


def _example(spec: ModelSpec, tensor: TensorSpec) -> dict[str, object] | None:
    shape = [1] * spec.batching.batch_axis + [1 if dim == -1 else dim for dim in tensor.dims]
    count = math.prod(shape)
    if count > LONGEST_DATA or tensor.open or tensor.datatype in (DataType.FP16, DataType.BF16):
        return None
    element: object = 0
    if tensor.datatype is DataType.BYTES:
        element = "text"
    elif tensor.datatype is DataType.BOOL:
        element = True
    return {"name": tensor.name, "shape": shape, "datatype": tensor.datatype.wire, "data": [element] * count}
