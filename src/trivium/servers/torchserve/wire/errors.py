"""Errors in TorchServe's protocol: the one table from codes to statuses, type names and texts.

Source: spec sheet `torchserve`, sections 0 and 4.3. The original says little more than that something failed; our own
sentence stands behind its text, unless a profile wants that text alone. A status that a handler asked for goes first.
"""

import logging
from collections.abc import Mapping
from math import ceil

import msgspec

from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON, uncached_lines, without_controls
from trivium.codecs.json_documents import indented
from trivium.codecs.routes import RouteRefusal
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.state import VersionState
from trivium.types.wire import HttpAnswer, Target

log = logging.getLogger(__name__)

NO_WORKER = (
    'Model "{place}" has no worker to serve inference request. Please use scale workers API to add workers. If this is '
    "a sequence inference, please check if it is closed, or expired; or exceeds maxSequenceJobQueueSize"
)


class ErrorRow(msgspec.Struct, frozen=True, gc=False):
    """A status, the name of the exception, and the original's text, if it has a fixed one."""

    status: int
    type_name: str
    text: str = ""


_FAILED = "InternalServerException"
_BUSY = "ServiceUnavailableException"
TABLE: Mapping[Code, ErrorRow] = {
    Code.INVALID: ErrorRow(400, "BadRequestException"),
    Code.NOT_FOUND: ErrorRow(404, "ModelNotFoundException", "Model not found: {model}"),
    Code.UNAUTHENTICATED: ErrorRow(401, "InvalidKeyException"),
    Code.FORBIDDEN: ErrorRow(403, "ForbiddenException"),
    Code.CONFLICT: ErrorRow(409, "ConflictStatusException"),
    Code.METHOD: ErrorRow(
        405,
        "MethodNotAllowedException",
        "Requested method is not allowed, please refer to API document.",
    ),
    Code.TOO_LARGE: ErrorRow(413, ""),
    Code.UNSUPPORTED_MEDIA: ErrorRow(415, "BadRequestException"),
    Code.CANCELLED: ErrorRow(499, _FAILED),  # nobody reads it: the client left
    Code.INTERNAL: ErrorRow(500, _FAILED),
    Code.EXPIRED: ErrorRow(500, _FAILED),  # the original kills the worker; 408 does not occur
    Code.WORKER_DIED: ErrorRow(500, _FAILED, "Worker died."),
    Code.UNSUPPORTED: ErrorRow(501, _FAILED),
    Code.MODEL_FAILED: ErrorRow(503, _FAILED, "Prediction failed"),
    Code.UNKNOWN: ErrorRow(503, _FAILED, "Prediction failed"),
    Code.NOT_READY: ErrorRow(503, _BUSY, NO_WORKER),
    Code.LOAD_FAILED: ErrorRow(503, _BUSY, NO_WORKER),
    Code.QUEUE_FULL: ErrorRow(503, _BUSY, NO_WORKER),
    Code.DRAINING: ErrorRow(503, _BUSY),
    Code.OUT_OF_MEMORY: ErrorRow(507, _FAILED, "Out of resources"),
}
METHOD = TABLE[Code.METHOD]
CLIENT_TIMEOUT = ErrorRow(408, "RequestTimeoutException")
"""What is said once a model's clientTimeoutInMills has passed; the original says nothing at all."""
_TOO_LARGE = 413
TOO_LARGE_ANSWER = ErrorRow(500, _FAILED, "Worker died.")
"""What is said of an answer that is too large; the original's worker does die of it."""
KILLED = ErrorRow(507, _FAILED, "Worker died.")
"""What is said of a worker that was killed as the kernel does it where memory runs out."""

ROUTE = ErrorRow(
    404, "ResourceNotFoundException", "Requested resource is not found, please refer to API document."
)
NAMELESS = ErrorRow(400, "BadRequestException", "Parameter model_name is required.")
NO_HTTP = ErrorRow(400, "BadRequestException", "Invalid HTTP message.")
NAMELESS = ErrorRow(400, "BadRequestException", "Parameter model_name is required.")
VERSION = ErrorRow(
    404, "ModelVersionNotFoundException", "Model version: {version} does not exist for model: {model}"
)

HANDLER_TEXTS = (
    "Prediction failed",
    "Invalid model predict output",
    "number of batch response mismatched",
    "Unsupported model output data type.",
    "Out of resources",
)
"""What the original says of a handler that failed; `trivium_worker.dialects.torchserve` says more behind them."""

_NOBODY = Target("")
_KNOWN = frozenset({*range(400, 418), *range(421, 425), 426, 428, 429, 431, *range(500, 508), 510, 511})
"""Statuses of errors that have a phrase of their own in the original."""

_PHRASES: Mapping[int, bytes] = {
    413: b"Request Entity Too Large",
    414: b"Request-URI Too Long",
    416: b"Requested Range Not Satisfiable",
    422: b"Unprocessable Entity",
    425: b"Unordered Collection",
}
"""Phrases that later standards have changed, as the original has them."""


def phrase_of(status: int) -> bytes | None:
    """Return the phrase of an error's status where the original has another one than the standard's; None elsewhere."""
    if status in _PHRASES:
        return _PHRASES[status]
    if status in _KNOWN:
        return None
    return b"%b Error (%d)" % (b"Client" if status < 500 else b"Server", status)


class ExactRefusal(ServeError):
    """An error whose status, type and text the original has; `row` is what it says."""

    def __init__(self, code: Code, message: str, row: ErrorRow) -> None:
        super().__init__(code, message)
        self.row = row


def refusal_of(error: ServeError, target: Target, exact: bool) -> tuple[int, str, str]:
    """Return the status of an error in HTTP's numbers, the name of the exception, and what is said."""
    row = _row(error, target)
    return error.status or row.status, row.type_name, _message(error, row, target, exact)


def refuse(error: ServeError, request_id: str, target: Target = _NOBODY, exact: bool = False) -> HttpAnswer:
    """The error as a whole answer, behind which the connection closes. `target` is what was asked for; `exact`: the
    original's text alone, where it has one. An answer that says that a request is too large is empty; why, and what to
    do, is a line in the log.
    """
    has_words = isinstance(error, ExactRefusal) and error.row.status != _TOO_LARGE
    if error.code is Code.TOO_LARGE and not has_words:
        log.warning("A request is answered with 413: %s", wire_text(error.message))
        return HttpAnswer(_TOO_LARGE, b"", (), 0, reason=_PHRASES[_TOO_LARGE], closes=True)
    status, type_name, message = refusal_of(error, target, exact)
    if error.reason == reasons.NOT_HTTP and exact:
        log.warning("What is no HTTP is answered with 400: %s", wire_text(error.message))
    fields = uncached_lines(request_id) + JSON
    if error.retry_after is not None:
        fields += b"Retry-After: %d\r\n" % ceil(error.retry_after)
    if isinstance(error, RouteRefusal):
        fields += error.fields
    body = indented({"code": status, "type": type_name, "message": message})
    return HttpAnswer(status, fields, (body,), len(body), reason=phrase_of(status), closes=True)


def note_refusal(error: ServeError, status: int) -> None:
    """Log why a request is refused before anything is done for it, where the original has a text for that: it teaches
    little. What a client sent makes no lines of its own.
    """
    if isinstance(error, ExactRefusal):
        told = _message(error, error.row, _NOBODY, exact=False)
        log.warning("A request is answered with %d: %s", status, without_controls(told))


def _row(error: ServeError, target: Target) -> ErrorRow:
    if isinstance(error, ExactRefusal):
        return error.row
    if error.code is Code.WORKER_DIED and error.metadata.get("killed"):
        return KILLED
    if error.reason == reasons.ITEM_DEADLINE:
        return CLIENT_TIMEOUT
    if error.reason == reasons.ANSWER_SIZE:
        return TOO_LARGE_ANSWER
    if error.reason == reasons.NOT_HTTP:
        return NO_HTTP
    if error.code is Code.INVALID and error.reason == reasons.UNKNOWN_MODEL:
        return NAMELESS
    if error.reason == reasons.NOT_SERVING and error.metadata.get("state") == VersionState.FAILED.value:
        return TABLE[Code.NOT_FOUND]  # one that did not load is not there
    if error.code is Code.INVALID and error.reason == reasons.UNKNOWN_MODEL:
        return NAMELESS
    if error.code is not Code.NOT_FOUND:
        return TABLE[error.code]
    if isinstance(error, RouteRefusal) or target is _NOBODY:
        return ROUTE
    is_version = error.reason == reasons.UNKNOWN_VERSION
    return VERSION if is_version else TABLE[Code.NOT_FOUND]


def _message(error: ServeError, row: ErrorRow, target: Target, exact: bool) -> str:
    ours = wire_text(error.message)
    if isinstance(error, ExactRefusal):
        text = wire_text(row.text)
        return (text if exact else f"{text.rstrip('.')}. {ours}") if text else ours
    if error.code is Code.MODEL_FAILED or error.code is Code.OUT_OF_MEMORY:
        known = next((text for text in HANDLER_TEXTS if ours.startswith(text)), "")
        if error.status is not None or known:  # a handler of this dialect has said it in its own words
            return known if exact and known else ours
    if exact and row.text:
        told = target.model or error.metadata.get("model", "")
        model, version = wire_text(str(told)), wire_text(target.version)
        place = f'{model}" Version {version}' if version else model
        return row.text.format(model=model, version=version, place=place)
    is_fixed = row.text and "{" not in row.text
    return f"{row.text.rstrip('.')}. {ours}" if is_fixed else ours
