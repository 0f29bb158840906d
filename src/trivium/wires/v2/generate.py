"""The generate extension: a flat JSON object in; one object, or a stream of them as server-sent events, out.

Source: spec sheet `triton`, section 4.13. Which keys are inputs the core's door knows; here all that can be a
parameter is taken for one, and the door takes the inputs out again.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import msgspec

from trivium.codecs import data_reasons, jsontensors
from trivium.codecs.generation import WIRE_NAMES
from trivium.codecs.generation_errors import in_words_of
from trivium.codecs.v2_bodies import decode_members
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import PayloadKind, Raw, RawForm, RawPart, Scalar, Tensor, Tensors
from trivium.types.wire import NOTHING_YET, Body, HttpAnswer, Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.errors import EVENTS, TABLE, error_text, json_answer, refuse
from trivium.wires.v2.parameters import check_scalar, read_parameters
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.words import OWN_ERRORS, ErrorTranslator


def decode_generate(target: Target, body: Body, ignored: IgnoredFields | None = None) -> Infer:
    """The request in this body. The words of the protocol (priority, timeout, sequence_id, ...) count in its object
    `parameters` alone; beside the inputs they are the model's own. INVALID for what is no JSON object, and for
    values of wrong types. Of a key that comes twice the first value counts. Of a model that generates, fields that have
    no effect are `ignored`, or else refused.
    """
    fields, _ = decode_members(body.data, "generate request")
    identity = fields.get("id", "")
    if not isinstance(identity, str):
        raise ServeError(
            Code.INVALID,
            "The key 'id' of the generate request is no string. Send one, or leave it out.",
            info=ErrorInfo.of(request_reasons.PARAMETER, key="id", expected="string"),
        )
    given = read_parameters(_parameters(fields))
    beside: dict[str, Scalar] = {key: value for key, value in fields.items() if _is_scalar(key, value)}
    for key, value in beside.items():
        check_scalar(key, value)
    own: Mapping[str, Scalar] = {**beside, **given.own}
    return Infer(
        target.model,
        Raw((RawPart(body.data, "application/json"),), lease=body.lease, form=RawForm.FIELDS),
        target.version,
        identity,
        parameters=own,
        priority=given.priority,
        queue_timeout=given.queue_timeout,
        sequence=given.sequence,
        wants=PayloadKind.TENSORS,
        ignored=ignored,
    )


def _parameters(fields: dict[str, Any]) -> dict[str, Any]:
    told = fields.get("parameters", {})
    if not isinstance(told, dict):
        raise ServeError(
            Code.INVALID,
            "The key 'parameters' of the generate request is no object. Send one.",
            info=ErrorInfo.of(data_reasons.NO_OBJECT, key="parameters"),
        )
    for key, value in told.items():
        if not isinstance(value, bool | int | float | str):
            raise ServeError(
                Code.INVALID,
                f"The parameter {key[:80]!r} of the generate request is neither true or false, a number nor a string. "
                "Send one of them.",
                info=ErrorInfo.of(data_reasons.NO_SCALAR, key=key, within="parameters"),
            )
    return told


def _is_scalar(key: str, value: Any) -> bool:
    return key != "parameters" and isinstance(value, bool | int | float | str)


class GenerateEncoder:
    """Writes an answer of exactly one part with outputs, once it is known that none follows."""

    def __init__(self, request_id: str, words: ErrorTranslator = OWN_ERRORS, model: str = "") -> None:
        self._id = request_id
        self._words = words
        self._model = model
        self._held: ResponsePart | None = None

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """Nothing yet, the answer, or an error."""
        try:
            return self._answer(part)
        except Exception as error:
            return self._refusal(unwritable(error))

    def _refusal(self, error: ServeError) -> HttpAnswer:
        error = in_words_of(error, WIRE_NAMES)
        return refuse(self._words.of_answer(error, Verb.GENERATE, self._model, self._id))

    def _answer(self, part: ResponsePart) -> HttpAnswer:
        if part.error is not None:
            return self._refusal(part.error)
        if part.payload is not None:
            if self._held is not None:
                raise _not_one(part, "several")
            self._held = part
        if not part.final:
            return NOTHING_YET
        if self._held is None:
            raise _not_one(part, "no")
        return json_answer(200, _document(self._held, self._id))


class GenerateStreamEncoder:
    """Writes every part with outputs as an event."""

    def __init__(self, request_id: str, words: ErrorTranslator = OWN_ERRORS, model: str = "") -> None:
        self._id = request_id
        self._words = words
        self._model = model
        self._has_begun = False

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """An event, or the end. An error before all events has its own status, one behind them is an event."""
        try:
            answer = self._answer(part)
        except Exception as error:
            answer = self._refusal(unwritable(error))
        self._has_begun = True
        return answer

    def _answer(self, part: ResponsePart) -> HttpAnswer:
        if part.error is not None:
            return self._refusal(part.error)
        if part.payload is None:
            return HttpAnswer(200, EVENTS, (), 0, part.final)
        event = b"data: %b\n\n" % _document(part, self._id)
        return HttpAnswer(200, EVENTS, (event,), len(event), part.final)

    def _refusal(self, error: ServeError) -> HttpAnswer:
        error = in_words_of(error, WIRE_NAMES)
        error = self._words.of_answer(error, Verb.GENERATE_STREAM, self._model, self._id)
        told = TABLE.wording(error)
        if not self._has_begun and told.content_type != EVENTS:
            return refuse(error)
        event = b"data: %b\n\n" % error_text(error)
        status = 200 if self._has_begun else told.status
        return HttpAnswer(status, EVENTS, (event,), len(event))


def _document(part: ResponsePart, request_id: str) -> bytes:
    """Outputs and parameters by name; msgspec writes the keys in this order."""
    if not isinstance(part.payload, Tensors):
        raise ServeError(
            Code.UNSUPPORTED,
            f"The model {part.model!r} answered with something that cannot be made tensors, which generate needs. Use "
            "the protocol that its handler was written for.",
        )
    fields: dict[str, object] = dict(part.parameters)
    fields |= {tensor.name: _value(tensor) for tensor in part.payload.items}
    if request_id:
        fields["id"] = request_id
    return msgspec.json.encode(fields | {"model_name": part.model, "model_version": part.version})


def _value(tensor: Tensor) -> msgspec.Raw:
    """One element by itself, else a flat list."""
    text = jsontensors.encode(tensor)
    return msgspec.Raw(text[1:-1] if prod(tensor.shape) == 1 else text)


def _not_one(part: ResponsePart, found: str) -> ServeError:
    return ServeError(
        Code.MODEL_FAILED,
        f"generate answers exactly one response, and the model {part.model!r} sent {found}. Use generate_stream.",
        info=ErrorInfo.of(request_reasons.SEVERAL_ANSWERS, model=part.model),
    )
