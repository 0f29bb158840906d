"""Describes the routes of the Open Inference Protocol v2 to programs: what each takes and answers, for each model, too.

Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from trivium.codecs.routes import described
from trivium.types.datatype import DataType
from trivium.types.described import (
    ANYTHING,
    BYTES,
    EVENTS_KIND,
    JSON_KIND,
    SWITCH,
    TEXT,
    TEXT_KIND,
    WHOLE,
    Answers,
    DescribedBody,
    DescribedVerb,
    JsonSchema,
    ModelBodies,
    WireDescription,
    json_body,
    list_of,
    object_of,
)
from trivium.types.protocol_context import ProtocolContext
from trivium.types.spec import ModelSpec, TensorSpec
from trivium.wires.v2.documents import (
    Identity,
    IndexEntry,
    MetadataDocument,
    RegionDocument,
    StatisticsDocument,
)
from trivium.wires.v2.infer_answer import InferAnswer
from trivium.wires.v2.infer_header import InferHeader, InputHeader
from trivium.wires.v2.routes import ROWS, Verb


class DescribedInput(InputHeader, frozen=True, gc=False):
    """Gives one input: its data as a flat or nested list, unless its parameters say where else it is."""

    data: list[Any] | UnsetType = UNSET  # type: ignore[assignment]  # here as a reader sees it, there undecoded


class InferDocument(InferHeader, frozen=True, gc=False):
    """Asks a model for outputs (none named: all) from inputs."""

    inputs: tuple[DescribedInput, ...]


_ERROR = object_of({"error": TEXT})
_ERRORS: Answers = {"4XX": json_body(_ERROR), "5XX": json_body(_ERROR)}
_NO_WORDS = DescribedBody({JSON_KIND: _ERROR, TEXT_KIND: TEXT}, "It is not ready; a model's answer says why.")
_PROBE: Answers = {"200": None, "4XX": _NO_WORDS, "5XX": _NO_WORDS}
_IN_EVENTS = DescribedBody({JSON_KIND: _ERROR, EVENTS_KIND: ANYTHING})
_STREAMED: Answers = {
    "200": DescribedBody({EVENTS_KIND: ANYTHING}, "An event for each part, whose data is JSON."),
    "4XX": _IN_EVENTS,
    "5XX": _IN_EVENTS,
}
_BINARY = "Binary data stands behind the JSON, whose length the header Inference-Header-Content-Length gives."
_SETTINGS = object_of(
    {}, {"log_file": TEXT, "log_format": TEXT, "log_info": SWITCH, "log_verbose_level": WHOLE}
)
_TRACE = {"type": "object", "additionalProperties": {"anyOf": [TEXT, list_of(TEXT)]}}
_DONE: Answers = {"200": None}
_GENERATE: JsonSchema = {
    "type": "object",
    "description": "Inputs by name, and parameters beside them or in an object of their own.",
    "properties": {"id": TEXT, "parameters": {"type": "object"}},
}


def _elements(datatype: DataType) -> JsonSchema:
    """Return the schema of an element in JSON."""
    if datatype is DataType.BYTES:
        return TEXT
    if datatype is DataType.BOOL:
        return SWITCH
    return {"type": "number"} if datatype.wire.startswith(("FP", "BF")) else WHOLE


def _shape(spec: ModelSpec, tensor: TensorSpec) -> JsonSchema:
    """Return the schema of a shape, the batch's axis first; -1 in the description is any size."""
    dims = (*(-1,) * spec.batching.batch_axis, *tensor.dims)
    found: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}}
    if not tensor.open:
        found |= {"minItems": len(dims), "maxItems": len(dims), "description": str(list(dims))}
    return found


def _tensor(spec: ModelSpec, tensor: TensorSpec, datatype: JsonSchema, needed: Sequence[str]) -> JsonSchema:
    element = _elements(tensor.datatype)
    properties = {
        "name": {"const": tensor.name},
        "datatype": datatype,
        "shape": _shape(spec, tensor),
        "data": {"type": "array", "items": {"anyOf": [element, {"type": "array"}]}},
        "parameters": {"type": "object"},
    }
    return {"title": tensor.name, "type": "object", "properties": properties, "required": list(needed)}


def _infer_of(spec: ModelSpec) -> ModelBodies | None:
    """Describe inputs and outputs of a model of tensors, as JSON has them."""
    if not spec.inputs:
        return None
    needed = ("name", "datatype", "shape", "data")
    inputs = [_tensor(spec, each, {"const": each.wire}, needed) for each in spec.inputs]
    outputs = [
        _tensor(spec, each, {"enum": sorted({each.wire, "BYTES"})}, needed[:3]) for each in spec.outputs
    ]
    names = [each.name for each in spec.outputs]
    wanted = object_of({"name": {"enum": names} if names else TEXT}, {"parameters": {"type": "object"}})
    request = object_of(
        {
            "inputs": {
                **list_of({"anyOf": inputs}),
                "minItems": sum(not each.optional for each in spec.inputs),
                "maxItems": len(inputs),
            }
        },
        {"id": TEXT, "outputs": list_of(wanted), "parameters": {"type": "object"}},
    )
    answer = object_of(
        {
            "model_name": TEXT,
            "model_version": TEXT,
            "outputs": list_of({"anyOf": outputs} if outputs else {"type": "object"}),
        },
        {"id": TEXT, "parameters": {"type": "object"}},
    )
    kinds = {JSON_KIND: answer, "application/octet-stream": BYTES}
    return ModelBodies(json_body(request), {"200": DescribedBody(kinds, _BINARY)})


def _generate_of(spec: ModelSpec) -> ModelBodies | None:
    """Describe what a language model is asked in this form."""
    if spec.inputs:
        return None
    request = object_of({"text_input": TEXT}, {**_GENERATE["properties"], "max_tokens": WHOLE})
    answer = object_of(
        {"model_name": TEXT, "model_version": TEXT, "text_output": {"type": ["string", "array"]}}
    )
    return ModelBodies(json_body(request), {"200": json_body(answer)})


_VERBS: Mapping[str, DescribedVerb] = {
    Verb.LIVE: DescribedVerb(summary="Is the server alive?", answers=_PROBE),
    Verb.READY: DescribedVerb(summary="Is the server, or a model, ready?", answers=_PROBE),
    Verb.METADATA: DescribedVerb(
        summary="Inputs and outputs of a model, or the server's extensions",
        answers={"200": json_body({"anyOf": [MetadataDocument, Identity]})},
    ),
    Verb.INFER: DescribedVerb(
        summary="Compute outputs from inputs",
        note=_BINARY,
        body=DescribedBody({JSON_KIND: InferDocument, "application/octet-stream": BYTES}),
        answers={"200": DescribedBody({JSON_KIND: InferAnswer, "application/octet-stream": BYTES}, _BINARY)},
        of_model=_infer_of,
    ),
    Verb.GENERATE: DescribedVerb(
        summary="Compute one answer from a flat object",
        body=json_body(_GENERATE),
        answers={"200": json_body({"type": "object"})},
        of_model=_generate_of,
    ),
    Verb.GENERATE_STREAM: DescribedVerb(
        summary="Compute an answer in parts from a flat object", body=json_body(_GENERATE), answers=_STREAMED
    ),
    Verb.CONFIG: DescribedVerb(
        summary="The configuration of a model, in Triton's form",
        answers={"200": json_body({"type": "object"})},
    ),
    Verb.STATISTICS: DescribedVerb(
        summary="What models have counted", answers={"200": json_body(StatisticsDocument)}
    ),
    Verb.INDEX: DescribedVerb(
        summary="All models in the repository",
        body=json_body(object_of({}, {"ready": SWITCH}), is_required=False),
        answers={"200": json_body({"type": "array", "items": IndexEntry})},
    ),
    Verb.LOAD: DescribedVerb(
        summary="Load a model, also with another configuration or other files",
        body=json_body(object_of({}, {"parameters": {"type": "object"}}), is_required=False),
        answers=_DONE,
    ),
    Verb.UNLOAD: DescribedVerb(
        summary="Unload a model",
        body=json_body(
            object_of({}, {"parameters": object_of({}, {"unload_dependents": SWITCH})}), is_required=False
        ),
        answers=_DONE,
    ),
    Verb.LOG_SETTINGS: DescribedVerb(
        summary="What is written to the log", answers={"200": json_body(_SETTINGS)}
    ),
    Verb.TRACE_SETTINGS: DescribedVerb(summary="What is traced", answers={"200": json_body(_TRACE)}),
    Verb.REGIONS: DescribedVerb(
        summary="Regions of shared memory that clients have registered",
        answers={"200": json_body({"type": "array", "items": RegionDocument})},
    ),
    Verb.REGISTER: DescribedVerb(
        summary="Register a region of shared memory",
        body=json_body(object_of({"key": TEXT, "byte_size": WHOLE}, {"offset": WHOLE})),
        answers=_DONE,
    ),
    Verb.UNREGISTER: DescribedVerb(summary="Unregister a region of shared memory, or all", answers=_DONE),
    Verb.DEVICE_REGIONS: DescribedVerb(
        summary="Regions of a GPU's memory: there are none", answers={"200": json_body(list_of(ANYTHING))}
    ),
    Verb.DEVICE_REGISTER: DescribedVerb(
        summary="Register a region of a GPU's memory, which is refused",
        body=json_body(
            object_of({}, {"raw_handle": object_of({"b64": TEXT}), "device_id": WHOLE, "byte_size": WHOLE})
        ),
        answers=_DONE,
    ),
    Verb.DEVICE_UNREGISTER: DescribedVerb(summary="Unregister a region of a GPU's memory", answers=_DONE),
}
_CHANGED_BY: Mapping[str, DescribedBody] = {
    Verb.LOG_SETTINGS: json_body(_SETTINGS),
    Verb.TRACE_SETTINGS: json_body({"type": "object"}),
}
"""Bodies of verbs that are asked for by GET, and changed by POST."""


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    return WireDescription(
        "Open Inference Protocol v2",
        described(ROWS, _VERBS, _CHANGED_BY),
        _ERRORS,
        "As KServe and Triton speak it. Routes with `versions/{version}` are the same for one version of a model.",
    )
