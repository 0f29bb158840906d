"""Describes the routes of TorchServe to programs: what each takes and answers, for each model, too. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from trivium.codecs.routes import described
from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.wire.kserve import KServeVerb
from trivium.servers.torchserve.wire.management import VERBS as MANAGING
from trivium.servers.torchserve.wire.management_routes import ManagementVerb
from trivium.servers.torchserve.wire.open_inference import ANSWERS
from trivium.servers.torchserve.wire.routes import TorchServeVerb
from trivium.servers.torchserve.wire.token_renewal import RENEWED
from trivium.servers.torchserve.wire.tree import served
from trivium.servers.torchserve.words.tokens import Tokens
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

_ERROR = json_body(object_of({"code": WHOLE, "type": TEXT, "message": TEXT}))
_ERRORS: Answers = {"4XX": _ERROR, "5XX": _ERROR, "413": None}
_OWN = DescribedBody({}, "What the model's handler says: status, kind and body are its own.")
_BODY: Mapping[str, Any] = {JSON_KIND: ANYTHING, "application/octet-stream": BYTES, TEXT_KIND: TEXT}
_STATUS = json_body(object_of({"status": TEXT}))
_DONE: Answers = {"200": _STATUS, "202": _STATUS}
_NAMED = object_of({"modelName": TEXT, "modelUrl": TEXT})
_MODEL = object_of(
    {"modelName": TEXT, "modelVersion": TEXT, "modelUrl": TEXT, "workers": list_of({"type": "object"})},
    {"minWorkers": WHOLE, "maxWorkers": WHOLE, "batchSize": WHOLE, "loadedAtStartup": SWITCH},
)


def _predict_of(spec: ModelSpec) -> ModelBodies | None:
    """Describe what a typed handler's hints say."""
    if spec.handler is None or "request" not in spec.handler.settings or spec.streams:
        return None
    settings = spec.handler.settings
    return ModelBodies(json_body(settings["request"]), {"200": json_body(settings["answer"])})


def _calling(summary: str) -> DescribedVerb:
    return DescribedVerb(
        summary=summary,
        note="Any other method asks the same.",
        body=DescribedBody(_BODY, is_required=False),
        answers={"default": _OWN},
        of_model=_predict_of,
    )


_VERBS: Mapping[str, DescribedVerb] = {
    TorchServeVerb.PREDICT: _calling("Give a body to a model"),
    TorchServeVerb.EXPLAIN: _calling("Ask a model to explain its answer"),
    TorchServeVerb.INVOKE: _calling("Give a body to a model; its handler sees the query, too"),
    TorchServeVerb.KSERVE_PREDICT: _calling("Give a body to a model, as KServe's clients do"),
    TorchServeVerb.KSERVE_EXPLAIN: _calling("Ask a model to explain its answer, as KServe's clients do"),
    TorchServeVerb.PING: DescribedVerb(
        summary="How the server is",
        answers={status: json_body(object_of({"status": TEXT})) for status in ("200", "500")},
    ),
    TorchServeVerb.DESCRIBE_API: DescribedVerb(
        summary="TorchServe's own description, which is not served", answers={"501": _ERROR}
    ),
    **{
        verb: DescribedVerb(
            summary="What TorchServe says of itself in the words of the open inference protocol",
            answers={str(status): json_body({"type": "object"})},
        )
        for verb, (status, _) in ANSWERS.items()
    },
    KServeVerb.ALIVE: DescribedVerb(
        summary="Is the server alive?", answers={"200": json_body(object_of({"status": TEXT}))}
    ),
    KServeVerb.MODEL_READY: DescribedVerb(
        summary="Is a model ready?",
        answers={
            status: json_body(
                {"anyOf": [object_of({"name": TEXT, "ready": SWITCH}), object_of({"code": WHOLE})]}
            )
            for status in ("200", "503")
        },
    ),
    ManagementVerb.REGISTER: DescribedVerb(summary="Register a model", answers=_DONE),
    ManagementVerb.LIST: DescribedVerb(
        summary="All models",
        answers={"200": json_body(object_of({"models": list_of(_NAMED)}, {"nextPageToken": TEXT}))},
    ),
    ManagementVerb.DESCRIBE: DescribedVerb(summary="One model", answers={"200": json_body(list_of(_MODEL))}),
    ManagementVerb.SCALE: DescribedVerb(summary="Say how many workers a model has", answers=_DONE),
    ManagementVerb.SET_DEFAULT: DescribedVerb(
        summary="Say which version serves requests that name none", answers={"200": _STATUS}
    ),
    ManagementVerb.UNREGISTER: DescribedVerb(summary="Unregister a model", answers={"200": _STATUS}),
    ManagementVerb.READY: DescribedVerb(
        summary="Has a model workers?", answers={"200": json_body(object_of({"name": TEXT, "ready": SWITCH}))}
    ),
    RENEWED: DescribedVerb(
        summary="Renew a key",
        arguments=(DescribedArgument("type", {"enum": ["inference", "management"]}),),
        answers={"200": None},
    ),
}
_ARGUMENTS: Mapping[str, Sequence[DescribedArgument]] = {verb: told(row) for verb, row in MANAGING.items()}


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    own = context.own.read(TorchServeConfig)
    rows = served(frozenset(context.roles), own, context.states.find(Tokens) is not None)
    return WireDescription("TorchServe", described(rows, _VERBS, arguments=_ARGUMENTS), _ERRORS)
