"""Describes the routes of KServe's v1 protocol to programs: what each takes and answers, for each model, too. Pure."""

from collections.abc import Mapping

from trivium.codecs.routes import described
from trivium.codecs.v1_bodies import B64, INPUTS, INSTANCES
from trivium.types.described import (
    ANY_KIND,
    ANYTHING,
    JSON_KIND,
    TEXT,
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
from trivium.types.spec import ModelSpec
from trivium.wires.v1.answer import OUTPUTS, PREDICTIONS
from trivium.wires.v1.routes import ROWS, V1Verb

_ERROR = object_of({"error": TEXT})
_ERRORS: Answers = {"4XX": json_body(_ERROR), "5XX": json_body(_ERROR)}
_NOTE = f'Bytes may be `{{"{B64}": base64}}`. A model without declared inputs gets the body as it came.'
_REQUEST: JsonSchema = {
    "anyOf": [
        object_of({INSTANCES: {**list_of(ANYTHING), "description": "A row for each prediction."}}),
        object_of({INPUTS: {"description": "Tensors whole, each by its name."}}),
    ]
}
_ANSWER: JsonSchema = {"anyOf": [object_of({PREDICTIONS: ANYTHING}), object_of({OUTPUTS: ANYTHING})]}


def _of_model(spec: ModelSpec) -> ModelBodies | None:
    """Describe the rows of a model of tensors: objects with a value for each input, or what its translator takes."""
    if not spec.inputs or spec.translator is not None:
        return None
    needed = {one.name: ANYTHING for one in spec.inputs if not one.optional}
    others = {one.name: ANYTHING for one in spec.inputs if one.optional}
    rows: list[JsonSchema] = [object_of(needed, others)]
    if len(needed) == 1:
        rows.append(ANYTHING)
    request = object_of({INSTANCES: list_of({"anyOf": rows})})
    return ModelBodies(json_body(request), {"200": DescribedBody({JSON_KIND: _ANSWER})})


_VERBS: Mapping[str, DescribedVerb] = {
    V1Verb.PREDICT: DescribedVerb(
        summary="Predict from rows",
        note=_NOTE,
        body=json_body(_REQUEST),
        answers={
            "200": json_body(_ANSWER),
            "default": DescribedBody({ANY_KIND: ANYTHING}, "What a handler says."),
        },
        of_model=_of_model,
    ),
}


def describe(context: ProtocolContext) -> WireDescription:
    """See `types.described.SupportsDescription`."""
    return WireDescription(
        "KServe v1",
        described(ROWS, _VERBS),
        _ERRORS,
        "Rows in, predictions out, as TensorFlow Serving has it.",
    )
