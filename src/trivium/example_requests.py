"""A request to each model that is served, which computes something, by a protocol that this server speaks.

It looks into no model file but for a chat template. How it is shown, as a command or on a page, others decide.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from trivium.demo import places
from trivium.server_record import ServerRecord
from trivium.types.console_facts import ExampleRequest
from trivium.types.datatype import DataType
from trivium.types.interfaces import TranslatorKind
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
AT_PREDICTIONS = frozenset({"djl", "torchserve"})
_JSON = "application/json"
_DIGIT_SIDES = ((28, 28), (32, 32))
"""Sides of pictures of digits that models take."""


def example_request(
    spec: ModelSpec, record: ServerRecord, translators: Mapping[str, TranslatorKind]
) -> ExampleRequest | None:
    """Make a request to one model: a chat, a picture, a body, or an inference on invented data; a look at its
    metadata where that would fill a screen. None where this server speaks no protocol that we could write.

    Clients of DJL and TorchServe ask at /predictions, all others by the v2 protocol, unless a model declares no
    inputs and takes bodies alone.
    """
    name = quote(spec.name, safe="")
    spoken = None if record.protocols is None else set(record.protocols)
    has_predictions = spoken is None or bool(spoken & AT_PREDICTIONS)
    has_v2 = spoken is None or "v2" in spoken
    if spec.engine in _GENERATES:
        if spoken is None or "openai" in spoken:
            return _chat(spec)
        body = {"text_input": _BEGINNING, "max_tokens": 50}
        return _posted(("text",), f"/v2/models/{name}/generate", body) if has_v2 else None
    if spec.engine == _TASK_ENGINE and has_predictions:
        task = _task_request(spec.parameters.get("task", ""))
        return _posted(("text", "body"), f"/predictions/{name}", task)
    if spec.translator is not None and has_predictions:
        return _translated(spec, spec.translator, f"/predictions/{name}", translators)
    if has_predictions and spec.handler is not None and "example" in spec.handler.settings:
        return _posted(("body",), f"/predictions/{name}", spec.handler.settings["example"])
    if has_predictions and (record.original in AT_PREDICTIONS or not spec.inputs):
        return prediction(spec, f"/predictions/{name}")
    if not has_v2:
        return None
    body_text, infer = _body(spec), f"/v2/models/{name}/infer"
    if not body_text:
        return ExampleRequest(_tensor_kinds(spec), f"/v2/models/{name}", "GET", own_path=infer)
    return ExampleRequest(_tensor_kinds(spec), infer, body=body_text)


def example_requests(
    spec: ModelSpec, record: ServerRecord, translators: Mapping[str, TranslatorKind]
) -> tuple[ExampleRequest, ...]:
    """Make a request to one model by each protocol that suits it: the example, and the v2 protocol's own. One whose
    data would fill more than a screen has no body.
    """
    found = [example_request(spec, record, translators)]
    if record.protocols is None or "v2" in record.protocols:
        at = f"/v2/models/{quote(spec.name, safe='')}"
        if spec.engine in _GENERATES:
            body = {"text_input": _BEGINNING, "max_tokens": 50}
            found.append(_posted(("text",), f"{at}/generate", body))
        elif spec.inputs:
            kind = _JSON if (text := _body(spec)) else ""
            found.append(ExampleRequest(_tensor_kinds(spec), f"{at}/infer", content_type=kind, body=text))
    return tuple({(one.method, one.path): one for one in found if one is not None}.values())


def _tensor_kinds(spec: ModelSpec) -> tuple[str, ...]:
    """Return what a client of a model of tensors may have: numbers, and a digit where its only input looks like one."""
    first = spec.inputs[0] if len(spec.inputs) == 1 else None
    is_digit = first is not None and tuple(dim for dim in first.dims if dim > 1) in _DIGIT_SIDES
    is_text = bool(spec.inputs) and all(one.datatype is DataType.BYTES for one in spec.inputs)
    return ("digit", "tensors") if is_digit else ("text", "tensors") if is_text else ("tensors",)


def _chat(spec: ModelSpec) -> ExampleRequest:
    """Make a chat; a text to go on with where the model's files have no template for one."""
    asked: dict[str, object] = {"model": spec.name, "max_tokens": 50}
    if not _has_template(spec.root, spec.entry):
        return _posted(("text",), "/v1/completions", {**asked, "prompt": _BEGINNING})
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    return _posted(("chat",), "/v1/chat/completions", {**asked, "messages": messages})


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


def _posted(kinds: tuple[str, ...], path: str, body: object) -> ExampleRequest:
    return ExampleRequest(kinds, path, content_type=_JSON, body=json.dumps(body))


def _translated(
    spec: ModelSpec, translator: TranslatorSpec, path: str, kinds: Mapping[str, TranslatorKind]
) -> ExampleRequest:
    """Make a request with what a model's translator takes."""
    kind = kinds.get(translator.name)
    example = translator.arguments.get("example", "" if kind is None else kind.example)
    if example:
        return ExampleRequest(("text", "body"), path, content_type=_JSON, body=str(example))
    digit = ("digit",) if "digit" in _tensor_kinds(spec) else ()
    return ExampleRequest(("picture", *digit), path, file=str(places.pictures()[7]))


def prediction(spec: ModelSpec, path: str, method: str = "") -> ExampleRequest:
    """Make a request to a route that takes any body. `method` says how one without a body is asked."""
    accept = _JSON if spec.inputs else ""  # tensors in a form that a terminal shows
    body = _body(spec) if spec.inputs else '{"inputs": "Hello"}'
    kinds = (*(_tensor_kinds(spec) if spec.inputs else ()), "body")
    if body:
        return ExampleRequest(kinds, path, content_type=_JSON, accept=accept, body=body)
    return ExampleRequest(kinds, path, method or "PUT", accept=accept)


def _body(spec: ModelSpec) -> str:
    """Return invented inputs as JSON; empty where there are none or they would fill more than a screen."""
    inputs = [_example(spec, tensor) for tensor in spec.inputs if not tensor.optional]
    if not inputs or None in inputs:
        return ""
    return json.dumps({"inputs": inputs}, separators=(",", ":"))


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
