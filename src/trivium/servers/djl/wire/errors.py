"""Errors in DJL's protocol: the one table from codes to statuses and type names, and the bodies.

Source: spec sheet `djl`, sections 4.4 and 4.6, and 8.5 for what a handler does. The type names are those that clients
of DJL know; the texts are our own, and the original's where it is stood in for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from trivium.codecs import data_reasons, signatures
from trivium.codecs.chat_answers import encode_json
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON, reason_phrase, uncached_lines
from trivium.codecs.json_documents import indented
from trivium.codecs.routes import RouteRefusal
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer

TABLE: Mapping[Code, tuple[int, str]] = {
    Code.INVALID: (400, "BadRequestException"),
    Code.NOT_FOUND: (404, "ModelNotFoundException"),
    Code.UNAUTHENTICATED: (401, "BadRequestException"),
    Code.FORBIDDEN: (403, "BadRequestException"),
    Code.CONFLICT: (409, "BadRequestException"),
    Code.METHOD: (405, "MethodNotAllowedException"),
    Code.TOO_LARGE: (413, "TooLongFrameException"),
    Code.UNSUPPORTED_MEDIA: (415, "TranslateException"),
    Code.CANCELLED: (499, "CancellationException"),  # nobody reads it: the client left
    Code.MODEL_FAILED: (424, "TranslateException"),
    Code.UNKNOWN: (424, "TranslateException"),
    Code.INTERNAL: (500, "InternalServerException"),
    Code.LOAD_FAILED: (500, "EngineException"),
    Code.UNSUPPORTED: (501, "UnsupportedOperationException"),
    Code.NOT_READY: (503, "WlmException"),
    Code.QUEUE_FULL: (503, "WlmCapacityException"),
    Code.EXPIRED: (503, "WlmException"),
    Code.WORKER_DIED: (503, "WlmException"),
    Code.DRAINING: (503, "WlmShutdownException"),
    Code.OUT_OF_MEMORY: (507, "WlmOutOfMemoryException"),
}
"""Code -> status and type name. 408 and 504 do not occur in this protocol."""

_ROWS: Mapping[str, tuple[int, str]] = {
    reasons.TRANSLATION: (400, "TranslateException"),
    reasons.INVALID_GRAPH: (409, "IllegalArgumentException"),
}
"""Reason -> the same, whatever the code is."""

_GENERATION_FAULTS = frozenset(
    {
        Code.INVALID,
        Code.TOO_LARGE,
        Code.UNSUPPORTED,
        Code.UNSUPPORTED_MEDIA,
        Code.MODEL_FAILED,
        Code.UNKNOWN,
        Code.INTERNAL,
    }
)
"""Codes of what is wrong with a request to generate, or went wrong in the model."""

GENERATION_FAILED = 424
"""Status of a request to generate that fails before its first token, whosever fault that is."""

ROUTE_TYPE = "ResourceNotFoundException"
HANDLER_FAILED = "invoke handler failure"


class DjlRefusal(ServeError):
    """A refusal that knows more than its code: the request's id, header lines (each with its CRLF), a type name, and
    the original's `exact` text, with the status that goes with it.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        fields: bytes = b"",
        type_name: str = "",
        request_id: str = "",
        exact: "ExactText | None" = None,
    ) -> None:
        super().__init__(code, message)
        self.fields = fields
        self.type_name = type_name
        self.request_id = request_id
        self.exact = exact


class LmiRefusal(ServeError):
    """Says what is wrong with a request to generate, or went wrong in its model, in the form that LMI has for both."""


def of_generation(error: ServeError) -> ServeError:
    """Return an error as that of a request to generate. What is the server's stays as it is."""
    if error.code not in _GENERATION_FAULTS:
        return error
    status = error.status or GENERATION_FAILED
    return LmiRefusal(error.code, error.message, error.retry_after, status, error.info)


def lmi_body(error: ServeError) -> bytes:
    """The JSON object of an error of a request to generate."""
    return encode_json({"code": error.status or GENERATION_FAILED, "error": wire_text(error.message)})


@dataclass(frozen=True, slots=True)
class ExactText:
    """Holds what the original says of an error: its text, its name for the type, its status; where one is empty or 0,
    the table's.
    """

    text: str
    type_name: str = ""
    status: int = 0


_EXACT: Mapping[str, ExactText] = {
    reasons.UNKNOWN_MODEL: ExactText("Model or workflow not found: {model}"),
    reasons.UNKNOWN_VERSION: ExactText("Model or workflow not found: {model}/{version}"),
    reasons.NOT_SERVING: ExactText("Model is not ready: {model}"),
    reasons.GIVEN_UP: ExactText("Model is not ready: {model}"),
    reasons.SCALED_TO_NONE: ExactText("All model workers has been shutdown: {model}", "WlmShutdownException"),
    reasons.QUEUE_FULL: ExactText("Worker queue capacity exceeded for model: {model}"),
    reasons.NO_MEMORY: ExactText("No enough memory to load the model."),
    reasons.DIED_WITH_MANY: ExactText("Inference Engine Failure", status=500),
    reasons.REGISTERED_TWICE: ExactText("Workflow {model} is already registered."),
    reasons.NO_FUNCTION: ExactText("LoRA is not enabled."),
    reasons.UNKNOWN_CALL: ExactText("The adapter {topic} has not been registered"),
}
"""The original's text of an error that the core has raised, by its reason."""

_NO_TENSORS = ExactText("Input is not a NDList data type", "TranslateException", 400)
_NO_JSON = ExactText("Input is not a supported json format", "TranslateException", 400)
_NO_NAME = ExactText("Parameter model_name is required.")
_NO_METHOD = ExactText("Requested method is not allowed, please refer to API document.")
_NO_ROUTE = ExactText("Requested resource is not found, please refer to API document.")

_MANAGED: Mapping[str, ExactText] = {
    reason: ExactText("Model or workflow is not ready: {model}", "ServiceUnavailableException")
    for reason in (reasons.NOT_SERVING, reasons.GIVEN_UP)
}
"""The same, where models are managed."""


_NONE: Mapping[Code, int] = {}


def exactly(error: ServeError, manages: bool = False) -> ExactText | None:
    """Return what the original says of an error; None where it has no text of its own. `manages`: of a request that
    manages models.
    """
    if isinstance(error, DjlRefusal) and error.exact is not None:
        return error.exact
    if error.code is Code.UNSUPPORTED_MEDIA or error.reason == data_reasons.UNDECODED:
        return _NO_JSON if error.metadata.get("media_type") == signatures.JSON else _NO_TENSORS
    if error.reason == reasons.TRANSLATION:
        words = wire_text(str(error.metadata.get("words", "")))
        return ExactText(words) if words else None
    if error.code is Code.INVALID and error.reason == reasons.UNKNOWN_MODEL:
        return _NO_NAME
    table = {**_EXACT, **_MANAGED} if manages else _EXACT
    row = table.get(error.reason)
    if row is None:
        return None
    facts = {name: wire_text(str(value)) for name, value in error.metadata.items()}
    return replace(row, text=row.text.format(**{"model": "", "version": "", **facts}))


def no_route(error: ServeError, request_id: str) -> "DjlRefusal":
    """Return the refusal of a path at which nothing is served."""
    refusal = DjlRefusal(Code.NOT_FOUND, error.message, b"", ROUTE_TYPE, request_id, _NO_ROUTE)
    refusal.status, refusal.retry_after = error.status, error.retry_after
    return refusal


def no_method(error: RouteRefusal) -> "DjlRefusal":
    """Return the refusal of a method under which a path is not served."""
    return DjlRefusal(Code.METHOD, error.message, error.fields, exact=_NO_METHOD)


def refuse(
    error: ServeError,
    request_id: str,
    exact: bool = False,
    manages: bool = False,
    statuses: Mapping[Code, int] = _NONE,
) -> HttpAnswer:
    """The error as a whole answer, behind which the connection closes. `exact`: in the words of the original, where it
    has some; see `exactly`. `statuses` go before those of the table.
    """
    if isinstance(error, LmiRefusal):
        body = lmi_body(error)
        status = error.status or GENERATION_FAILED
        return HttpAnswer(status, uncached_lines(request_id) + JSON, (body,), len(body), closes=True)
    status, type_name = _row(error)
    status = statuses.get(error.code, status)
    row = exactly(error, manages) if exact else None
    if row is not None:
        status, type_name = row.status or status, row.type_name or type_name
    status = error.status or status
    fields = uncached_lines(request_id)
    if error.retry_after is not None:
        fields += b"Retry-After: %d\r\n" % ceil(error.retry_after)
    if isinstance(error, DjlRefusal):
        fields += error.fields
        type_name = error.type_name or type_name
    if error.code is Code.TOO_LARGE and error.status is None:
        return HttpAnswer(status, fields, (), 0, closes=True)
    if error.code is Code.OUT_OF_MEMORY and error.reason not in (reasons.NO_MEMORY, reasons.NOT_LOADED):
        return HttpAnswer(status, fields, (), 0, reason=reason_phrase(error.message), closes=True)
    reason = HANDLER_FAILED.encode() if _is_handlers(error) else None
    body = _body(error, status, type_name, "" if row is None else row.text)
    return HttpAnswer(status, fields + JSON, (body,), len(body), reason=reason, closes=True)


def chunk(error: ServeError) -> bytes:
    """The error as the last piece of an answer whose status has been sent."""
    status, type_name = _row(error)
    return _body(error, error.status or status, type_name)


def _row(error: ServeError) -> tuple[int, str]:
    """Return the status and the type name of an error: those of translators and of definitions have their own."""
    code = error.code
    if code is Code.OUT_OF_MEMORY and error.reason == reasons.NOT_LOADED:
        code = Code.LOAD_FAILED  # what lacked memory was the handler's code, as it was loaded
    return _ROWS.get(error.reason, TABLE[code])


def _is_handlers(error: ServeError) -> bool:
    return error.code is Code.MODEL_FAILED and error.reason != reasons.TRANSLATION


def _body(error: ServeError, status: int, type_name: str, exact: str = "") -> bytes:
    message = wire_text(exact or error.message)
    if _is_handlers(error):
        return indented({"code": status, "message": HANDLER_FAILED, "error": message})
    return indented({"code": status, "type": type_name, "message": message})
