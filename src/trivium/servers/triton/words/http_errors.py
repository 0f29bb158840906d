"""Errors of the v2 protocol over HTTP in Triton's words, with its statuses and content types."""

import json

from trivium.codecs.routes import RouteRefusal
from trivium.servers.triton.words.error_codes import CODES, NOT_THE_ORIGINALS, STATUS, ErrorCode
from trivium.servers.triton.words.texts import Said, error_text
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.errors import STATUS as OWN_STATUS
from trivium.wires.v2.errors import TranslatedError
from trivium.wires.v2.routes import Verb

_NEED_BODY = frozenset({Verb.GENERATE, Verb.GENERATE_STREAM, Verb.LOG_SETTINGS, Verb.TRACE_SETTINGS})
_NEED_BODY |= {Verb.REGISTER, Verb.DEVICE_REGISTER}
_UNSERVED = (reasons.UNKNOWN_MODEL, reasons.UNKNOWN_VERSION, reasons.NOT_SERVING)
_LONGEST_TEXT = 2**16
"""Bytes of JSON in which the id of a refused request is looked for."""
_PLAIN_METHODS = ("/infer", "/ready", "/live")
NOT_FOUND = TranslatedError(404, "Not Found", is_plain=True)
"""No route."""
NOT_READY = TranslatedError(400, "Model version not ready", is_plain=True)


class TritonErrors:
    """Implements `ErrorTranslator` by Triton's texts, statuses and content types: spec sheet `triton`, sections 4.1 to
    4.14.
    """

    def of_head(self, error: ServeError) -> ServeError:
        """The original names neither routes nor methods."""
        facts = error.metadata
        reason = error.reason
        if error.code is Code.METHOD and isinstance(error, RouteRefusal):
            is_plain = error.head.path.endswith(_PLAIN_METHODS)
            return TranslatedError(405, "Method Not Allowed", is_plain, phrase=b"Not Allowed")
        if reason == request_reasons.RESTRICTED_API:
            return TranslatedError(403, f"This API is restricted, expecting header '{facts['header']}'")
        if reason in _UNSERVED:  # a body that nobody reads
            return _worded(error, error_text(error, False, {"model": facts["model"]}), True)
        if error.code is Code.NOT_FOUND and error.status is None:
            return NOT_FOUND
        return _worded(error, error_text(error, False, {}) if reason else None, False)

    def of_request(
        self, error: ServeError, target: Target, text: bytes | memoryview, size: int
    ) -> ServeError:
        """Translate by the error's facts."""
        about = {"model": target.model, "id": id_in(text), "size": size}
        return _worded(error, error_text(error, False, about), False)

    def of_answer(self, error: ServeError, verb: str, model: str, request_id: str = "") -> ServeError:
        """Translate by what the route makes of the errors, then by the error's facts."""
        about = {"model": model, "id": request_id}
        return _by_route(error, verb, model) or _worded(
            error, error_text(error, False, about), error.info is None
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
    """Return the translation that differs on some routes for one and the same fault."""
    facts = error.metadata
    reason = error.reason
    if verb == Verb.READY:
        return NOT_READY
    if verb == Verb.INFER and reason in _UNSERVED:
        found = error_text(error, False, {"model": model})
        return _worded(error, found, True)
    if not reason and verb in (Verb.GENERATE, Verb.GENERATE_STREAM) and error.code is not Code.QUEUE_FULL:
        told = TranslatedError(400, error.message, retry_after=error.retry_after)
        told.as_event = verb == Verb.GENERATE_STREAM
        return told
    if reason == reasons.UNKNOWN_VERSION and not str(facts["version"]).isdigit():
        return NOT_FOUND
    if verb == Verb.STATISTICS and reason in (reasons.UNKNOWN_MODEL, reasons.NOT_SERVING):
        return TranslatedError(400, f"requested model '{model}' is not available")
    if verb == Verb.STATISTICS and reason == reasons.UNKNOWN_VERSION:
        return TranslatedError(400, f"requested model version is not available for model '{model}'")
    if verb == Verb.TRACE_SETTINGS and reason in (reasons.UNKNOWN_MODEL, reasons.NOT_SERVING):
        return TranslatedError(400, f"Request for unknown model : {model}")
    if verb == Verb.REGIONS and reason == reasons.UNKNOWN_REGION:
        return TranslatedError(404, f"Unable to find system shared memory region: '{facts['region']}'")
    if (
        verb == Verb.LOAD
        and reason
        not in (reasons.NOT_BY_CLIENTS, reasons.NOT_LOADED, reasons.NOT_CACHEABLE, reasons.NO_ENGINE)
        and error.code not in (Code.LOAD_FAILED, Code.DRAINING)
    ):
        return TranslatedError(500, f"failed to load '{model}', failed to poll from model repository")
    return None


def _worded(error: ServeError, found: Said | None, is_plain: bool) -> ServeError:
    if error.status is not None and found is None:
        code = {409: ErrorCode.ALREADY_EXISTS}.get(error.status)
        status = error.status if code is None else STATUS[code]
        return TranslatedError(status, error.message, is_plain, retry_after=error.retry_after)
    if found is None and error.code in NOT_THE_ORIGINALS:  # the original has no code for them
        return TranslatedError(OWN_STATUS[error.code], error.message, is_plain)
    if found is None:
        found = Said(CODES[error.code], error.message, is_plain)
    return TranslatedError(
        STATUS[found.code], found.text, found.is_plain or is_plain, retry_after=error.retry_after
    )
