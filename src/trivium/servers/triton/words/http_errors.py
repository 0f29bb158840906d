"""Errors of the v2 protocol over HTTP in Triton's words, with its statuses and content types."""

import json

import msgspec

from trivium.codecs import grpc_status
from trivium.codecs.error_table import HTTP_STATUS as OWN_STATUS
from trivium.codecs.error_table import ErrorRow, ErrorTable, Wording
from trivium.codecs.header_text import JSON
from trivium.servers.triton.words.error_codes import CODES, HTTP_STATUS, NOT_THE_ORIGINALS
from trivium.servers.triton.words.texts import PLAIN, ROWS, error_text
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.errors import EVENTS, in_words
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.words import ErrorTranslator

_NEED_BODY = frozenset({Verb.GENERATE, Verb.GENERATE_STREAM, Verb.LOG_SETTINGS, Verb.TRACE_SETTINGS})
_NEED_BODY |= {Verb.REGISTER, Verb.DEVICE_REGISTER}
_UNSERVED = (reasons.UNKNOWN_MODEL, reasons.UNKNOWN_VERSION, reasons.NOT_SERVING)
_LONGEST_TEXT = 2**16
"""Bytes of JSON in which the id of a refused request is looked for."""
_PLAIN_METHODS = ("/infer", "/ready", "/live")
_HEAD = "head"
"""The verb of a request that is refused by its head."""

_NO_STATISTICS = ErrorRow(grpc_status.INVALID_ARGUMENT, text="requested model '{route}' is not available")
_NO_TRACE = ErrorRow(grpc_status.INVALID_ARGUMENT, text="Request for unknown model : {route}")
TABLE = ErrorTable(
    {
        **ROWS,
        (request_reasons.RESTRICTED_API, _HEAD): ErrorRow(
            grpc_status.PERMISSION_DENIED, text="This API is restricted, expecting header '{header}'"
        ),
        **{
            (reason, verb): msgspec.structs.replace(ROWS[reason], content_type=PLAIN)
            for reason in _UNSERVED
            for verb in (_HEAD, Verb.INFER)
        },
        (reasons.UNKNOWN_MODEL, Verb.STATISTICS): _NO_STATISTICS,
        (reasons.NOT_SERVING, Verb.STATISTICS): _NO_STATISTICS,
        (reasons.UNKNOWN_VERSION, Verb.STATISTICS): ErrorRow(
            grpc_status.INVALID_ARGUMENT,
            text="requested model version is not available for model '{route}'",
        ),
        (reasons.UNKNOWN_MODEL, Verb.TRACE_SETTINGS): _NO_TRACE,
        (reasons.NOT_SERVING, Verb.TRACE_SETTINGS): _NO_TRACE,
        (reasons.UNKNOWN_REGION, Verb.REGIONS): ErrorRow(
            grpc_status.NOT_FOUND, text="Unable to find system shared memory region: '{region}'"
        ),
    }
)
"""The statuses are those of gRPC: see `HTTP_STATUS`."""

_LOADED = frozenset({reasons.NOT_BY_CLIENTS, reasons.NOT_LOADED, reasons.NOT_CACHEABLE, reasons.NO_ENGINE})
"""Reasons for which a model is not loaded whose folder could be read."""

NOT_FOUND = in_words(Wording(404, content_type=PLAIN), "Not Found")
"""No route."""
NOT_READY = in_words(Wording(400, content_type=PLAIN), "Model version not ready")


class TritonErrors(ErrorTranslator):
    """Translates into Triton's texts, statuses and content types: spec sheet `triton`, sections 4.1 to
    4.14.
    """

    def of_head(self, error: ServeError) -> ServeError:
        """The original names neither routes nor methods."""
        reason = error.reason
        if reason == reasons.NO_METHOD:
            is_plain = str(error.metadata["path"]).endswith(_PLAIN_METHODS)
            kind = PLAIN if is_plain else JSON
            return in_words(Wording(405, content_type=kind, phrase=b"Not Allowed"), "Method Not Allowed")
        if error.code is Code.NOT_FOUND and error.status is None and reason not in _UNSERVED:
            return NOT_FOUND
        return _worded(error, error_text(error, {}, TABLE, _HEAD) if reason else Wording())

    def of_request(
        self, error: ServeError, target: Target, text: bytes | memoryview, size: int
    ) -> ServeError:
        """Translate by the error's facts."""
        return _worded(error, error_text(error, {"model": target.model, "id": id_in(text), "size": size}))

    def of_answer(self, error: ServeError, verb: str, model: str, request_id: str = "") -> ServeError:
        """Translate by what the route makes of the errors, then by the error's facts."""
        about = {"model": model, "route": model, "id": request_id}
        return _by_route(error, verb, model) or _worded(
            error, error_text(error, about, TABLE, verb), not error.reason
        )

    def forgives(self, error: ServeError, verb: str) -> bool:
        """Return True for a name that is not there: it may be unloaded."""
        reason = error.reason
        return verb == Verb.UNLOAD and reason in (reasons.UNKNOWN_MODEL, reasons.NOT_SERVING)

    def needs_body(self, verb: str) -> bool:
        """Return True on generate, for settings, and for shared memory."""
        return verb in _NEED_BODY


def id_in(text: bytes | memoryview) -> str:
    """The id of an infer request in this JSON; empty where it has none, or cannot be read."""
    try:
        document = json.loads(bytes(text)) if len(text) <= _LONGEST_TEXT else None
    except (ValueError, RecursionError):
        return ""
    found = document.get("id") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def _by_route(error: ServeError, verb: str, model: str) -> ServeError | None:
    """Return the translation of what is said of nearly all errors of a route."""
    reason, code = error.reason, error.code
    if verb == Verb.READY:
        return NOT_READY
    if not reason and verb in (Verb.GENERATE, Verb.GENERATE_STREAM) and code is not Code.QUEUE_FULL:
        told = Wording(400, content_type=EVENTS if verb == Verb.GENERATE_STREAM else JSON)
        return in_words(told, error.message, error.retry_after)
    if (
        reason == reasons.UNKNOWN_VERSION
        and verb != Verb.INFER
        and not str(error.metadata["version"]).isdigit()
    ):
        return NOT_FOUND
    if verb == Verb.LOAD and reason not in _LOADED and code not in (Code.LOAD_FAILED, Code.DRAINING):
        return in_words(Wording(500), f"failed to load '{model}', failed to poll from model repository")
    return None


def _worded(error: ServeError, told: Wording, is_plain: bool = False) -> ServeError:
    if told.status:
        status = HTTP_STATUS[told.status]
    elif error.status is not None:
        status = 400 if error.status == 409 else error.status  # there is already such a thing
    elif error.code in NOT_THE_ORIGINALS:
        status = OWN_STATUS[error.code]
    else:
        status = HTTP_STATUS[CODES[error.code]]
    kind = PLAIN if is_plain else told.content_type
    return in_words(Wording(status, content_type=kind), told.text or error.message, error.retry_after)
