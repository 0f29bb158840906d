"""Errors in TorchServe's protocol: the one table from codes to statuses, type names and texts.

Source: spec sheet `torchserve`, sections 0 and 4.3. The original says little more than that something failed; our own
sentence stands behind its text, unless a profile wants that text alone. A status that a handler asked for goes first.
"""

import logging
from collections.abc import Mapping

from trivium.codecs.error_table import ErrorRow, ErrorTable, Refusal, header_lines, written
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON, uncached_lines, without_controls
from trivium.codecs.json_documents import indented
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.state import VersionState
from trivium.types.wire import HttpAnswer, Target

FAILED_TO_LOAD = "failed to load"
log = logging.getLogger(__name__)

NO_WORKER = (
    'Model "{place}" has no worker to serve inference request. Please use scale workers API to add workers. If this is '
    "a sequence inference, please check if it is closed, or expired; or exceeds maxSequenceJobQueueSize"
)


_FAILED = "InternalServerException"
_BUSY = "ServiceUnavailableException"
_DIED = "Worker died."
NOT_THERE = ErrorRow(404, "ModelNotFoundException", "Model not found: {asked}")
METHOD_TEXT = "Requested method is not allowed, please refer to API document."
METHOD = ErrorRow(405, "MethodNotAllowedException", METHOD_TEXT)
_ROUTE = ErrorRow(
    404, "ResourceNotFoundException", "Requested resource is not found, please refer to API document."
)
_NO_PLACE, _UNNAMED, _KILLED = "no place", "unnamed", "killed"
"""Cases of a reason or a code: see `_case`."""

TABLE = ErrorTable(
    {
        Code.INVALID: ErrorRow(400, "BadRequestException"),
        Code.NOT_FOUND: NOT_THERE,
        Code.UNAUTHENTICATED: ErrorRow(401, "InvalidKeyException"),
        Code.FORBIDDEN: ErrorRow(403, "ForbiddenException"),
        Code.CONFLICT: ErrorRow(409, "ConflictStatusException"),
        Code.METHOD: METHOD,
        Code.TOO_LARGE: ErrorRow(413),
        Code.UNSUPPORTED_MEDIA: ErrorRow(415, "BadRequestException"),
        Code.CANCELLED: ErrorRow(499, _FAILED),  # nobody reads it: the client left
        Code.INTERNAL: ErrorRow(500, _FAILED),
        Code.EXPIRED: ErrorRow(500, _FAILED),  # the original kills the worker; 408 does not occur
        Code.WORKER_DIED: ErrorRow(500, _FAILED, _DIED),
        Code.UNSUPPORTED: ErrorRow(501, _FAILED),
        Code.MODEL_FAILED: ErrorRow(503, _FAILED, "Prediction failed"),
        Code.UNKNOWN: ErrorRow(503, _FAILED, "Prediction failed"),
        Code.NOT_READY: ErrorRow(503, _BUSY, NO_WORKER),
        Code.LOAD_FAILED: ErrorRow(503, _BUSY, NO_WORKER),
        Code.QUEUE_FULL: ErrorRow(503, _BUSY, NO_WORKER),
        Code.DRAINING: ErrorRow(503, _BUSY),
        Code.OUT_OF_MEMORY: ErrorRow(507, _FAILED, "Out of resources"),
        (Code.WORKER_DIED, _KILLED): ErrorRow(507, _FAILED, _DIED),  # as the kernel does it without memory
        reasons.ITEM_DEADLINE: ErrorRow(408, "RequestTimeoutException"),  # the original says nothing at all
        reasons.ANSWER_SIZE: ErrorRow(500, _FAILED, _DIED),  # the original's worker does die of it
        reasons.NOT_HTTP: ErrorRow(400, "BadRequestException", "Invalid HTTP message."),
        (reasons.UNKNOWN_MODEL, _UNNAMED): ErrorRow(
            400, "BadRequestException", "Parameter model_name is required."
        ),
        (reasons.NOT_SERVING, FAILED_TO_LOAD): NOT_THERE,
        reasons.NO_ROUTE: _ROUTE,
        (Code.NOT_FOUND, _NO_PLACE): _ROUTE,
        (reasons.UNKNOWN_VERSION, _NO_PLACE): _ROUTE,
        reasons.UNKNOWN_VERSION: ErrorRow(
            404,
            "ModelVersionNotFoundException",
            "Model version: {asked_version} does not exist for model: {asked}",
        ),
    }
)
_TOO_LARGE = 413

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


def refusal_of(error: ServeError, target: Target, exact: bool) -> tuple[int, str, str]:
    """Return the status of an error in HTTP's numbers, the name of the exception, and what is said."""
    if isinstance(error, Refusal):
        return error.wording.status, error.wording.type_name, _behind(error.wording.text, error, exact)
    row = TABLE.find(error, _case(error, target))
    status = error.status or row.status
    if error.code is Code.MODEL_FAILED or error.code is Code.OUT_OF_MEMORY:
        ours = wire_text(error.message)
        known = next((text for text in HANDLER_TEXTS if ours.startswith(text)), "")
        if error.status is not None or known:  # a handler of this dialect has said it in its own words
            return status, row.type_name, known if exact and known else ours
    if isinstance(row.text, str) and "{" in row.text and not exact:  # our own sentence names it, too
        return status, row.type_name, wire_text(error.message)
    model = wire_text(str(target.model or error.metadata.get("model", "")))
    version = wire_text(target.version)
    place = f'{model}" Version {version}' if version else model
    about = {"asked": model, "asked_version": version, "place": place}
    return status, row.type_name, _behind(written(row, error, about).text, error, exact)


def refuse(error: ServeError, request_id: str, target: Target = _NOBODY, exact: bool = False) -> HttpAnswer:
    """The error as a whole answer, behind which the connection closes. `target` is what was asked for; `exact`: the
    original's text alone, where it has one. An answer that says that a request is too large is empty; why, and what to
    do, is a line in the log.
    """
    has_words = isinstance(error, Refusal) and error.wording.status != _TOO_LARGE
    if error.code is Code.TOO_LARGE and not has_words:
        log.warning("A request is answered with 413: %s", wire_text(error.message))
        error.is_logged = True
        return HttpAnswer(_TOO_LARGE, b"", (), 0, reason=_PHRASES[_TOO_LARGE], closes=True)
    status, type_name, message = refusal_of(error, target, exact)
    if error.reason == reasons.NOT_HTTP and exact:
        log.warning("What is no HTTP is answered with 400: %s", wire_text(error.message))
        error.is_logged = True
    fields = uncached_lines(request_id) + JSON + header_lines(error)
    body = indented({"code": status, "type": type_name, "message": message})
    return HttpAnswer(status, fields, (body,), len(body), reason=phrase_of(status), closes=True)


def note_refusal(error: ServeError, status: int) -> None:
    """Log why a request is refused before anything is done for it, where the original has a text for that: it teaches
    little. What a client sent makes no lines of its own.
    """
    if isinstance(error, Refusal):
        message = _behind(error.wording.text, error, exact=False)
        log.warning("A request is answered with %d: %s", status, without_controls(message))
        error.is_logged = True


def case_of(error: ServeError) -> str:
    """Return which case of its reason an error is, where the original tells them apart; empty elsewhere."""
    is_failed = error.metadata.get("state") == VersionState.FAILED.value
    return FAILED_TO_LOAD if error.reason == reasons.NOT_SERVING and is_failed else ""


def _case(error: ServeError, target: Target) -> str:
    code = error.code
    if code is Code.WORKER_DIED and error.metadata.get("killed"):
        return _KILLED
    if code is Code.INVALID and error.reason == reasons.UNKNOWN_MODEL:
        return _UNNAMED
    if code is Code.NOT_FOUND and target is _NOBODY:
        return _NO_PLACE
    return case_of(error)


def _behind(text: str, error: ServeError, exact: bool) -> str:
    """Return the original's text with our own sentence behind it; each alone, if it is wanted `exact` or there is but
    one.
    """
    if not text:
        return wire_text(error.message)
    text = wire_text(text)
    return text if exact else f"{text.rstrip('.')}. {wire_text(error.message)}"
