"""Errors in DJL's protocol: the one table from codes to statuses and type names, that of the original's words, and the
bodies.

Source: spec sheet `djl`, sections 4.4 and 4.6, and 8.5 for what a handler does. The type names are those that clients
of DJL know; the texts are our own, and the original's where it is stood in for.
"""

from collections.abc import Mapping
from typing import Final

from trivium.codecs import data_reasons, signatures
from trivium.codecs.chat_answers import encode_json
from trivium.codecs.error_table import SAID, ErrorRow, ErrorTable, Refusal, Rows, Wording, header_lines
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON, reason_phrase, uncached_lines
from trivium.codecs.json_documents import indented
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer

ILLEGAL: Final = "illegal"  # words; an argument that cannot be
NO_NUMBER: Final = "no_number"  # words; an argument that has to be one

AT_HEAD, MANAGES, DESCRIBES = "head", "manage", "describe"
"""Verbs: of a request that is refused by its head, one that manages models, one that describes them."""

_NO_JSON, _NO_TENSORS, _UNNAMED, _BY_HANDLER = "no json", "no tensors", "unnamed", "by handler"
"""Cases of a reason or a code: see `_case`."""

ROUTE_TYPE = "ResourceNotFoundException"
GENERATION_FAILED = 424
"""Status of a request to generate that fails before its first token, whosever fault that is."""

HANDLER_FAILED = "invoke handler failure"

_ILLEGAL = ErrorRow(409, "IllegalArgumentException")
TABLE = ErrorTable(
    {
        Code.INVALID: ErrorRow(400, "BadRequestException"),
        Code.NOT_FOUND: ErrorRow(404, "ModelNotFoundException"),
        Code.UNAUTHENTICATED: ErrorRow(401, "BadRequestException"),
        Code.FORBIDDEN: ErrorRow(403, "BadRequestException"),
        Code.CONFLICT: ErrorRow(409, "BadRequestException"),
        Code.METHOD: ErrorRow(405, "MethodNotAllowedException"),
        Code.TOO_LARGE: ErrorRow(413, "TooLongFrameException"),
        Code.UNSUPPORTED_MEDIA: ErrorRow(415, "TranslateException"),
        Code.CANCELLED: ErrorRow(499, "CancellationException"),  # nobody reads it: the client left
        Code.MODEL_FAILED: ErrorRow(424, "TranslateException"),
        Code.UNKNOWN: ErrorRow(424, "TranslateException"),
        Code.INTERNAL: ErrorRow(500, "InternalServerException"),
        Code.LOAD_FAILED: ErrorRow(500, "EngineException"),
        Code.UNSUPPORTED: ErrorRow(501, "UnsupportedOperationException"),
        Code.NOT_READY: ErrorRow(503, "WlmException"),
        Code.QUEUE_FULL: ErrorRow(503, "WlmCapacityException"),
        Code.EXPIRED: ErrorRow(503, "WlmException"),
        Code.WORKER_DIED: ErrorRow(503, "WlmException"),
        Code.DRAINING: ErrorRow(503, "WlmShutdownException"),
        Code.OUT_OF_MEMORY: ErrorRow(507, "WlmOutOfMemoryException"),
        reasons.TRANSLATION: ErrorRow(400, "TranslateException"),
        reasons.SCORING: ErrorRow(400, "TranslateException"),
        reasons.INVALID_GRAPH: _ILLEGAL,
        ILLEGAL: _ILLEGAL,
        reasons.NO_ROUTE: ErrorRow(404, ROUTE_TYPE),
        (Code.NOT_FOUND, AT_HEAD): ErrorRow(404, ROUTE_TYPE),
        (reasons.NOT_LOADED, _BY_HANDLER): ErrorRow(500, "EngineException"),
    }
)
"""408 and 504 do not occur in this protocol."""

_NO_ROUTE = ErrorRow(text="Requested resource is not found, please refer to API document.")
_NOT_JSON = ErrorRow(400, "TranslateException", "Input is not a supported json format")
_NOT_TENSORS = ErrorRow(400, "TranslateException", "Input is not a NDList data type")
_NOT_READY = ErrorRow(text="Model is not ready: {model}")
_NOT_MANAGED = ErrorRow(
    type_name="ServiceUnavailableException", text="Model or workflow is not ready: {model}"
)
_WORDS: Rows = {
    SAID: ErrorRow(text="{words}"),
    ILLEGAL: ErrorRow(text="{words}"),
    NO_NUMBER: ErrorRow(409, "NumberFormatException", "{words}"),
    reasons.TRANSLATION: ErrorRow(text="{words}"),
    reasons.NO_ROUTE: _NO_ROUTE,
    (Code.NOT_FOUND, AT_HEAD): _NO_ROUTE,
    reasons.NO_METHOD: ErrorRow(text="Requested method is not allowed, please refer to API document."),
    reasons.UNKNOWN_MODEL: ErrorRow(text="Model or workflow not found: {model}"),
    (reasons.UNKNOWN_MODEL, _UNNAMED): ErrorRow(text="Parameter model_name is required."),
    (reasons.UNKNOWN_MODEL, DESCRIBES): ErrorRow(text="Workflow not found: {model}"),
    reasons.UNKNOWN_VERSION: ErrorRow(text="Model or workflow not found: {model}/{version}"),
    (reasons.UNKNOWN_VERSION, DESCRIBES): ErrorRow(text="Workflow not found: {model}/{version}"),
    reasons.NOT_SERVING: _NOT_READY,
    reasons.GIVEN_UP: _NOT_READY,
    **{
        (reason, verb): _NOT_MANAGED
        for reason in (reasons.NOT_SERVING, reasons.GIVEN_UP)
        for verb in (MANAGES, DESCRIBES)
    },
    reasons.SCALED_TO_NONE: ErrorRow(
        type_name="WlmShutdownException", text="All model workers has been shutdown: {model}"
    ),
    reasons.QUEUE_FULL: ErrorRow(text="Worker queue capacity exceeded for model: {model}"),
    reasons.NO_MEMORY: ErrorRow(text="No enough memory to load the model."),
    reasons.DIED_WITH_MANY: ErrorRow(500, text="Inference Engine Failure"),
    reasons.REGISTERED_TWICE: ErrorRow(text="Workflow {model} is already registered."),
    reasons.NO_FUNCTION: ErrorRow(text="LoRA is not enabled."),
    reasons.UNKNOWN_CALL: ErrorRow(text="The adapter {topic} has not been registered"),
    **{
        (what, case): row
        for what in (Code.UNSUPPORTED_MEDIA, data_reasons.UNDECODED)
        for case, row in ((_NO_JSON, _NOT_JSON), (_NO_TENSORS, _NOT_TENSORS))
    },
}
WORDS = ErrorTable(_WORDS)
"""What the original says, where it has words of its own, and the status and the type that go with them if they are
not the table's.
"""

_UNSAID = {"model": "", "version": "", "words": ""}
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

_NONE: Mapping[Code, int] = {}


def of_generation(error: ServeError) -> ServeError:
    """Return an error as that of a request to generate, which has a form of its own. What is the server's stays."""
    if error.code not in _GENERATION_FAULTS:
        return error
    told = Wording(error.status or GENERATION_FAILED)
    refusal = Refusal(error.code, error.message, told, error.retry_after, error.info)
    refusal.status = told.status
    return refusal


def lmi_body(error: ServeError) -> bytes:
    """The JSON object of an error of a request to generate."""
    return encode_json({"code": error.status or GENERATION_FAILED, "error": wire_text(error.message)})


def refuse(
    error: ServeError,
    request_id: str,
    exact: bool = False,
    verb: str = "",
    statuses: Mapping[Code, int] = _NONE,
) -> HttpAnswer:
    """The error as a whole answer, behind which the connection closes. `exact`: in the words of the original, where it
    has some. `statuses` go before those of the table.
    """
    if isinstance(error, Refusal):
        body = lmi_body(error)
        return HttpAnswer(
            error.wording.status, uncached_lines(request_id) + JSON, (body,), len(body), closes=True
        )
    case = _case(error, verb)
    told = TABLE.wording(error, case)
    words = WORDS.wording(error, case, _UNSAID) if exact else Wording()
    status = error.status or words.status or statuses.get(error.code, told.status)
    fields = uncached_lines(request_id) + header_lines(error)
    if error.code is Code.TOO_LARGE and error.status is None:
        return HttpAnswer(status, fields, (), 0, closes=True)
    if error.code is Code.OUT_OF_MEMORY and error.reason not in (reasons.NO_MEMORY, reasons.NOT_LOADED):
        return HttpAnswer(status, fields, (), 0, reason=reason_phrase(error.message), closes=True)
    reason = HANDLER_FAILED.encode() if _is_handlers(error) else None
    body = _body(error, status, words.type_name or told.type_name, words.text)
    return HttpAnswer(status, fields + JSON, (body,), len(body), reason=reason, closes=True)


def chunk(error: ServeError) -> bytes:
    """The error as the last piece of an answer whose status has been sent."""
    told = TABLE.wording(error, _case(error, ""))
    return _body(error, error.status or told.status, told.type_name, "")


def _case(error: ServeError, verb: str) -> str:
    """Return which case of its reason or code an error is; the verb where there is but one."""
    code, reason = error.code, error.reason
    if code is Code.UNSUPPORTED_MEDIA or reason == data_reasons.UNDECODED:
        return _NO_JSON if error.metadata.get("media_type") == signatures.JSON else _NO_TENSORS
    if code is Code.INVALID and reason == reasons.UNKNOWN_MODEL:
        return _UNNAMED
    if code is Code.OUT_OF_MEMORY and reason == reasons.NOT_LOADED:
        return _BY_HANDLER  # what lacked memory was the handler's code, as it was loaded
    return verb


def _is_handlers(error: ServeError) -> bool:
    return error.code is Code.MODEL_FAILED and error.reason != reasons.TRANSLATION


def _body(error: ServeError, status: int, type_name: str, words: str) -> bytes:
    message = wire_text(words or error.message)
    if error.reason == reasons.SCORING:  # clients of MLflow's server read its own form
        return indented({"error_code": str(error.metadata["error_code"]), "message": message})
    if _is_handlers(error):
        return indented({"code": status, "message": HANDLER_FAILED, "error": message})
    return indented({"code": status, "type": type_name, "message": message})
