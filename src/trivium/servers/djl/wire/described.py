"""Describes the routes of DJL Serving to programs: what each takes and answers, for each model, too. Pure."""

from collections.abc import Mapping
from typing import Any

from trivium.codecs.routes import described
from trivium.servers.djl.wire.adapters import VERBS as ADAPTING
from trivium.servers.djl.wire.management import VERBS as MANAGING
from trivium.servers.djl.wire.routes import ROWS, DjlVerb
from trivium.settings.arguments import told
from trivium.types.described import (
    ANYTHING,
    BYTES,
    JSON_KIND,
    SWITCH,
    TEXT,
    TEXT_KIND,
    WHOLE,
    Answers,
    DescribedArgument,
    DescribedBody,
    DescribedVerb,
    ModelBodies,
    WireDescription,
    json_body,
    list_of,
    object_of,
)
from trivium.types.protocol_context import ProtocolContext
from trivium.types.spec import ModelSpec

_ERROR = object_of({"code": WHOLE, "message": TEXT}, {"type": TEXT})
_SCORING = object_of({"error_code": TEXT, "message": TEXT})
_GENERATING = object_of({"code": WHOLE, "error": TEXT})
_REFUSED = DescribedBody({JSON_KIND: {"anyOf": [_ERROR, _SCORING, _GENERATING]}})
_ERRORS: Answers = {"4XX": _REFUSED, "5XX": _REFUSED, "413": None, "507": None}
_OWN = DescribedBody({}, "What the model's handler says: status, kind and body are its own.")
_BODY: Mapping[str, Any] = {JSON_KIND: ANYTHING, "application/octet-stream": BYTES, TEXT_KIND: TEXT}
_HEALTH = json_body({"type": "object", "additionalProperties": object_of({"status": TEXT})})
_STATUS: Answers = {"200": json_body(object_of({"status": TEXT}))}
_DONE: Answers = {**_STATUS, "202": _STATUS["200"]}
_ROW = object_of({"modelName": TEXT, "status": TEXT}, {"version": TEXT, "modelUrl": TEXT})
_WORKFLOW = object_of({"workflowName": TEXT}, {"version": TEXT})
_LISTED = {
    "anyOf": [
        object_of({"models": list_of(_ROW)}, {"nextPageToken": TEXT}),
        object_of({"workflows": list_of(_WORKFLOW)}, {"nextPageToken": TEXT}),
    ]
}
_DESCRIBED = list_of(
    object_of({"workflowName": TEXT, "models": list_of({"type": "object"})}, {"version": TEXT})
)
_ADAPTER = object_of({"name": TEXT, "src": TEXT, "preload": SWITCH, "pin": SWITCH})


def _infer_of(spec: ModelSpec) -> ModelBodies | None:
    """Describe what a typed handler's hints say; a model of tensors takes them as the v2 protocol has them, or by
    name.
    """
    if spec.handler is not None and "request" in spec.handler.settings and not spec.streams:
        settings = spec.handler.settings
        return ModelBodies(json_body(settings["request"]), {"200": json_body(settings["answer"])})
    return None


_VERBS: Mapping[str, DescribedVerb] = {
    DjlVerb.INFER: DescribedVerb(
        summary="Give a body to a model",
        note="Any other method asks the same.",
        body=DescribedBody(_BODY, is_required=False),
        answers={"default": _OWN},
        of_model=_infer_of,
    ),
    DjlVerb.PING: DescribedVerb(
        summary="How the models are",
        answers=dict.fromkeys(("200", "207", "500", "503"), _HEALTH),
    ),
    DjlVerb.OPTIONS: DescribedVerb(
        summary="A description, which is empty", answers={"200": json_body({"type": "object"})}
    ),
    DjlVerb.REGISTER: DescribedVerb(summary="Register a model", answers=_DONE),
    DjlVerb.LIST: DescribedVerb(summary="All models", answers={"200": json_body(_LISTED)}),
    DjlVerb.DESCRIBE: DescribedVerb(summary="One model", answers={"200": json_body(_DESCRIBED)}),
    DjlVerb.SCALE: DescribedVerb(summary="Say how many workers a model has", answers=_STATUS),
    DjlVerb.UNREGISTER: DescribedVerb(summary="Unregister a model", answers=_STATUS),
    DjlVerb.LOGGING: DescribedVerb(summary="Say what is written to the log", answers=_STATUS),
    DjlVerb.METRICS: DescribedVerb(
        summary="What the server and its models count, for Prometheus, where that is switched on",
        arguments=(DescribedArgument("name[]", TEXT, "Metrics that are wanted; without it all."),),
        answers={"200": DescribedBody({TEXT_KIND: TEXT})},
    ),
    DjlVerb.ADAPTER_REGISTER: DescribedVerb(summary="Register an adapter of a model", answers=_STATUS),
    DjlVerb.ADAPTER_LIST: DescribedVerb(
        summary="Adapters of a model",
        answers={"200": json_body(object_of({"adapters": list_of(_ADAPTER)}, {"nextPageToken": TEXT}))},
    ),
    DjlVerb.ADAPTER_DESCRIBE: DescribedVerb(summary="One adapter", answers={"200": json_body(_ADAPTER)}),
    DjlVerb.ADAPTER_UPDATE: DescribedVerb(summary="Load an adapter anew", answers=_STATUS),
    DjlVerb.ADAPTER_UNREGISTER: DescribedVerb(summary="Unregister an adapter", answers=_STATUS),
}
_ARGUMENTS = {verb: told(row) for verb, row in {**MANAGING, **ADAPTING}.items()}


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    rows = [row for role, some in ROWS.items() if role in context.roles for row in some]
    return WireDescription("DJL Serving", described(rows, _VERBS, arguments=_ARGUMENTS), _ERRORS)
