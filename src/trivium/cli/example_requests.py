"""Requests to paste, one for each model that is served: each computes something, by a protocol that is spoken here.

Presentation only: it looks into no model file but for a chat template.
"""

import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from rich.console import Console
from rich.text import Text

from trivium.catalogue import TRANSLATORS
from trivium.commands.visible_console import print_sentence
from trivium.demo import places
from trivium.server_record import ServerRecord
from trivium.types.datatype import DataType
from trivium.types.spec import ModelSpec, TensorSpec, TranslatorSpec

_MOST_BYTES = 16 * 2**20
LONGEST_DATA = 256
"""Elements of an example request; a model that takes more gets none with data of its own."""

_BEGINNING = "The capital of France is"
_GENERATES, _TASK_ENGINE = frozenset({"hf", "openvino-llm", "vllm"}), "hf-tasks"
_TASK_INPUTS = {
    "fill-mask": "Paris is the [MASK] of France.",
    "question-answering": {"question": "Where is it?", "context": "It is in Paris."},
}
_AT_PREDICTIONS = frozenset({"djl", "torchserve"})
_FILE, _OWN_FILE = " -T FILE", ", with your own for FILE"
_JSON, _ACCEPT = " -H 'Content-Type: application/json'", " -H 'Accept: application/json'"
_NEXT = (
    "Next: paste a request into another terminal{file}; `trivium check PATH` explains how a model is served, "
    "`trivium serve --help` what can be set."
)


def print_requests(console: Console, url: str, specs: Sequence[ModelSpec], record: ServerRecord) -> None:
    """Print a request per model that a client of this server would send, and what to do next."""
    requests = [request for spec in specs if (request := example_request(spec, url, record))]
    if record.original in _AT_PREDICTIONS and len(specs) == 1:  # the route that needs no name
        requests.append(_prediction(specs[0], f"{url}/invocations", " -X POST"))
    for request in requests:
        console.print(request, soft_wrap=True, markup=False)
    if requests:
        with_file = any(_FILE in request for request in requests)
        print_sentence(console, Text(_NEXT.format(file=_OWN_FILE if with_file else "")))


def example_request(spec: ModelSpec, url: str, record: ServerRecord) -> str:
    """Make a curl command for one model: a chat, a picture, a body, or an inference on invented data; a look at its
    metadata where that would fill a screen. Empty where this server speaks no protocol that we could write.

    Clients of DJL and TorchServe ask at /predictions, all others by the v2 protocol, unless a model declares no
    inputs and takes bodies alone.
    """
    name = quote(spec.name, safe="")
    spoken = None if record.protocols is None else set(record.protocols)
    has_predictions = spoken is None or bool(spoken & _AT_PREDICTIONS)
    has_v2 = spoken is None or "v2" in spoken
    if spec.engine in _GENERATES:
        if spoken is None or "openai" in spoken:
            return _chat(spec, url)
        return _generate(f"{url}/v2/models/{name}/generate") if has_v2 else ""
    if spec.engine == _TASK_ENGINE and has_predictions:
        return _posted(f"{url}/predictions/{name}", _task_request(spec.parameters.get("task", "")))
    if spec.translator is not None and has_predictions:
        return _translated(spec.translator, f"{url}/predictions/{name}")
    if has_predictions and spec.handler is not None and "example" in spec.handler.settings:
        return _posted(f"{url}/predictions/{name}", spec.handler.settings["example"])
    if has_predictions and (record.original in _AT_PREDICTIONS or not spec.inputs):
        return _prediction(spec, f"{url}/predictions/{name}")
    if not has_v2:
        return ""
    body = _body(spec)
    return f"curl -s {url}/v2/models/{name}" + (f"/infer -d {body}" if body else "")


def _chat(spec: ModelSpec, url: str) -> str:
    """Make a chat; a text to go on with where the model's files have no template for one."""
    asked: dict[str, object] = {"model": spec.name, "max_tokens": 50}
    if not _has_template(spec.root, spec.entry):
        return _posted(f"{url}/v1/completions", {**asked, "prompt": _BEGINNING})
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    return _posted(f"{url}/v1/chat/completions", {**asked, "messages": messages})


def _has_template(folder: Path, entry: str) -> bool:
    if entry.endswith(".gguf") or (folder / "chat_template.jinja").is_file():
        return True
    file = folder / "tokenizer_config.json"
    try:
        told = json.loads(file.read_bytes()) if file.stat().st_size <= _MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(told, dict) and "chat_template" in told


def _task_request(task: str) -> dict[str, object]:
    """Make a request to a model of texts."""
    asked: dict[str, object] = {"inputs": _TASK_INPUTS.get(task, f"{_BEGINNING} Paris.")}
    if task == "zero-shot-classification":
        asked["parameters"] = {"candidate_labels": ["a city", "a song"]}
    return asked


def _generate(route: str) -> str:
    return _posted(route, {"text_input": _BEGINNING, "max_tokens": 50})


def _posted(route: str, body: object) -> str:
    return f"curl -s{_JSON} {route} -d {shlex.quote(json.dumps(body))}"


def _translated(translator: TranslatorSpec, route: str) -> str:
    """Make a command with what a model's translator takes."""
    kind = TRANSLATORS.get(translator.name)
    example = translator.arguments.get("example", "" if kind is None else kind.example)
    if example:
        return f"curl -s{_JSON} {route} -d {shlex.quote(str(example))}"
    return f"curl -s -T {shlex.quote(str(places.pictures()[7]))} {route}"


def _prediction(spec: ModelSpec, route: str, method: str = "") -> str:
    accept = _ACCEPT if spec.inputs else ""  # tensors in a form that a terminal shows
    body = _body(spec) if spec.inputs else shlex.quote('{"inputs": "Hello"}')
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
